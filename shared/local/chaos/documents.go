package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// Source is where documents come from.
type Source interface {
	// Len is how many there are.
	Len() int
	// Document is the n-th, from 0 on. No two have the same id. The tree is the
	// caller's.
	Document(n int) (doc.ID, map[string]any)
	// Collections are those that the documents belong to.
	Collections() []doc.Collection
}

// Made makes documents: orders, each seventh an event below one of them.
func Made(n int, seed uint64) Source { return made{n, seed} }

type made struct {
	n    int
	seed uint64
}

func (m made) Len() int                      { return m.n }
func (m made) Collections() []doc.Collection { return []doc.Collection{"orders", "orders/events"} }

var (
	cities = []string{"Bonn", "Reims", "São Paulo", "Århus", "東京", "Kirkland", "Lüneburg"}
	states = []string{"new", "packed", "shipped", "returned"}
)

func (m made) Document(n int) (doc.ID, map[string]any) {
	chance := rand.New(rand.NewPCG(m.seed, uint64(n)))
	number := func(most int) json.Number { return json.Number(strconv.Itoa(chance.IntN(most))) }
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(chance.IntN(365*24)) * time.Hour).Format(time.RFC3339)
	if n%7 == 6 {
		return doc.ID(fmt.Sprintf("orders/%d/events/%d", n-chance.IntN(6)-1, n)), map[string]any{
			"kind": states[chance.IntN(len(states))], "at": at, "by": map[string]any{"user": number(500)},
		}
	}
	var lines []any
	for range 1 + chance.IntN(4) {
		lines = append(lines, map[string]any{"product": "products/" + number(200).String(), "quantity": number(50), "price": json.Number(fmt.Sprintf("%d.5", chance.IntN(400)))})
	}
	d := map[string]any{
		"number": json.Number(strconv.Itoa(n)), "state": states[chance.IntN(len(states))], "orderedAt": at, "lines": lines,
		"shipTo": map[string]any{"city": cities[chance.IntN(len(cities))], "zip": number(99999), "express": chance.IntN(2) == 0},
		"note":   nil,
	}
	if n%5 == 0 { // one path, two types
		d["shipTo"].(map[string]any)["zip"] = "W" + number(99).String()
	}
	return doc.ID("orders/" + strconv.Itoa(n)), d
}

// Read reads documents from texts {"id","data"}, as import takes them, at most as
// many as most says; 0: all. next gives one after the other, a blank one where
// there is none in a line, and io.EOF in the end. Of several texts of one id the
// first counts.
func Read(next func() ([]byte, error), most int) (Source, error) {
	var r given
	seen := map[doc.ID]bool{}
	for number := 1; most == 0 || len(r.ids) < most; number++ {
		text, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		id, data, err := readText(text)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		r.ids, r.data = append(r.ids, id), append(r.data, data)
		if c := id.Collection(); !slices.Contains(r.collections, c) {
			r.collections = append(r.collections, c)
		}
	}
	switch {
	case len(r.ids) == 0:
		return nil, errors.New("there are no documents")
	case len(r.collections) > mostCollections:
		return nil, fmt.Errorf("the documents belong to %d collections; a query looks at %d at most", len(r.collections), mostCollections)
	}
	return &r, nil
}

// mostCollections is how many collections one query looks at.
const mostCollections = 100

func readText(text []byte) (doc.ID, map[string]any, error) {
	v, err := value.Decode(text, value.MaxDepth+1)
	if err != nil {
		return "", nil, err
	}
	object, _ := v.(map[string]any)
	name, _ := object["id"].(string)
	data, ok := object["data"].(map[string]any)
	if !ok {
		return "", nil, errors.New(`it is not {"id":…,"data":{…}}`)
	}
	id, err := doc.ParseID(name)
	return id, data, err
}

type given struct {
	ids         []doc.ID
	data        []map[string]any
	collections []doc.Collection
}

func (g *given) Len() int                                { return len(g.ids) }
func (g *given) Document(n int) (doc.ID, map[string]any) { return g.ids[n], g.data[n] }
func (g *given) Collections() []doc.Collection           { return g.collections }
