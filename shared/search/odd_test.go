package search_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// oddDocuments reads the file of documents that a natural mapping would refuse.
func oddDocuments(t testing.TB) []doc.Document {
	t.Helper()
	text, err := os.ReadFile("testdata/odd.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var docs []doc.Document
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			ID   string          `json:"id"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, document(t, line.ID, string(line.Data)))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return docs
}

// leafValue is a scalar or an empty container with a path that reaches it.
type leafValue struct {
	path  value.Path
	value any
}

// leaves lists the leaves of a document. Steps through arrays are positions.
func leaves(v any, names []string) []leafValue {
	switch v := v.(type) {
	case map[string]any:
		var found []leafValue
		for name, member := range v {
			found = append(found, leaves(member, append(names[:len(names):len(names)], name))...)
		}
		if len(v) > 0 {
			return found
		}
	case []any:
		var found []leafValue
		for i, element := range v {
			found = append(found, leaves(element, append(names[:len(names):len(names)], strconv.Itoa(i)))...)
		}
		if len(v) > 0 {
			return found
		}
	}
	return []leafValue{{value.PathOf(names...), v}}
}

// TestOddDocumentsAreFound writes the odd documents in several orders, each into
// an index of its own, so that each kind of value is first at some path once,
// and then asks for each by its id and by its leaves.
func TestOddDocumentsAreFound(t *testing.T) {
	c := newIndex(t)
	docs := oddDocuments(t)
	const orders = 3
	for order := range orders {
		t.Run(fmt.Sprint("order ", order), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, uint64(order)))
			g := sharedGeneration()
			g.Family = collection.Family(fmt.Sprint("odd", order))
			if err := c.Ensure(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			if order == 1 {
				// Its thousand names were there once; they make all that comes after slow.
				docs = slices.DeleteFunc(docs, func(d doc.Document) bool { return d.ID == "odd/many-names" })
			}
			rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
			index(t, c, g, docs...)
			from := []search.Source{{Collection: "odd", Generation: &g}}
			find := func(e filter.Expr, d doc.Document, what string) {
				t.Helper()
				r, err := c.Search(t.Context(), search.Request{From: from, Filter: e, Limit: 100})
				if err != nil {
					t.Fatalf("%s by %s: %v", d.ID, what, err)
				}
				for _, f := range r.Documents {
					if f.ID == d.ID && value.Equal(f.Data, d.Data) {
						return
					}
				}
				t.Errorf("%s is not found by %s", d.ID, what)
			}
			for _, d := range docs {
				find(filter.Compare{Field: filter.Field{Pseudo: filter.ID}, Op: filter.Eq, Value: string(d.ID)}, d, "its id")
				// All in one filter, because each of its parts must then find it.
				for part := range slices.Chunk(leaves(d.Data, nil), 100) {
					var conditions []filter.Expr
					for _, leaf := range part {
						conditions = append(conditions, filter.Compare{Field: filter.Field{Path: leaf.path}, Op: filter.Eq, Value: leaf.value})
					}
					find(filter.And{Of: conditions}, d, fmt.Sprintf("its leaves from %s on", part[0].path))
				}
			}
		})
	}
}
