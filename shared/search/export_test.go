package search

import (
	"context"
	"encoding/json"

	"holdfast/shared/filter"
)

// ForbidAutoCreation is what Ensure does before it creates the first index.
func ForbidAutoCreation(ctx context.Context, c *Client) error { return c.forbidAutoCreation(ctx) }

// What the tests look at from outside.
var (
	PlainName = plainName
	OrderKey  = orderKey
	QueryName = queryName
)

// Compile reads a filter on collections that declare nothing but this.
func Compile(e filter.Expr, from ...Source) reading { return compile(e, declaredBy(from)) }

// MayAndSure are the ids that either reading of each filter finds, at most a
// thousand.
func MayAndSure(ctx context.Context, c *Client, r Request, filters []filter.Expr) (may, sure []map[string]bool, err error) {
	var bodies []object
	var last *search
	for _, e := range filters {
		r.Filter = e
		s := newSearch(c, r)
		last = s
		for _, q := range []query{s.reading.may, s.reading.sure} {
			bodies = append(bodies, object{"query": allOf(s.scope, q).dsl(), "size": 1000, "_source": false, "track_total_hits": false, "sort": []string{fieldID}})
		}
	}
	answers, err := last.searches(ctx, bodies...)
	if err != nil {
		return nil, nil, err
	}
	for i, a := range answers {
		found := map[string]bool{}
		for _, h := range a.Hits.Hits {
			p, _ := sortValues(h.Sort)
			found[p[0].(string)] = true
		}
		if i%2 == 0 {
			may = append(may, found)
		} else {
			sure = append(sure, found)
		}
	}
	return may, sure, nil
}

// AppendName is the field name of a member name.
func AppendName(name string) string { return string(appendName(nil, name)) }

// ReadingText is a reading's two queries as JSON.
func ReadingText(r reading) (may, sure string) {
	text := func(q query) string {
		b, _ := json.Marshal(q.dsl())
		return string(b)
	}
	return text(r.may), text(r.sure)
}

// Forbidding is the new value of the cluster's setting.
var Forbidding = forbidding

// LimitExamined gives the client a smaller budget of documents to look at.
func LimitExamined(c *Client, most int) { c.budget = most }

// EncodeCursor makes a cursor.
func EncodeCursor(key []byte, query string, after []any) (string, error) {
	return encodeCursor(key, query, &mark{at: after})
}

// DecodeCursor reads a cursor of a query with so many keys.
func DecodeCursor(key []byte, cursor, query string, keys int) ([]any, error) {
	m, err := decodeCursor(key, cursor, query, make([]orderBy, keys))
	if err != nil {
		return nil, err
	}
	return m.at, nil
}
