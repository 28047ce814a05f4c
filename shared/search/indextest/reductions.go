package indextest

import (
	"encoding/json"
	"fmt"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// reductions writes one document at each level of reduction and asks for it in
// every way that a whole one is found.
func (s *suite) reductions(t *testing.T) {
	same(t, s.write(t, made("reduced/seed", 1, map[string]any{"known": "x", "sub": map[string]any{"known": json.Number("1")}})), search.Applied)
	known, err := s.index.MappedFields(t.Context(), s.generation)
	if err != nil {
		t.Fatal(err)
	}
	for level := search.Full; level <= search.EnvelopeOnly; level++ {
		t.Run(fmt.Sprint("level ", int(level)), func(t *testing.T) {
			name := doc.Collection(fmt.Sprintf("reduced%d", level))
			d := made(string(name)+"/1", 1, map[string]any{
				"known": "x",
				"sub":   map[string]any{"known": json.Number("7"), fmt.Sprint("new", level): json.Number("12345678901234567890123")},
				"list":  []any{nil, true, map[string]any{}},
			})
			p := search.Reduce(d, s.generation, level, known)
			if whole := len(p.Partial) == 0; whole != (level == search.Full) {
				t.Fatalf("partial %q", p.Partial)
			}
			same(t, s.operate(t, search.Operation{ID: d.ID, Version: d.Version, Generation: s.generation, Source: p.Source}), search.Applied)
			for _, c := range []struct {
				path  string
				value any
			}{
				{"known", "x"}, {"sub.known", json.Number("7")}, {fmt.Sprint("sub.new", level), json.Number("12345678901234567890123")},
				{"list", true}, {"list", nil}, {"list", map[string]any{}}, {"absent", nil}, {"list.1", true},
			} {
				path, err := value.ParsePath(c.path)
				if err != nil {
					t.Fatal(err)
				}
				is := filter.Compare{Field: filter.Field{Path: path}, Op: filter.Eq, Value: c.value}
				if r := s.find(t, search.Request{Filter: is, Count: true, Sort: []search.SortKey{{Path: path}}}, name); len(r.Documents) != 1 || r.Count != 1 || !value.Equal(r.Documents[0].Data, d.Data) {
					t.Errorf("not found by %s = %v", c.path, c.value)
				}
				if r := s.find(t, search.Request{Filter: filter.Not{Of: is}, Count: true}, name); len(r.Documents) != 0 || r.Count != 0 {
					t.Errorf("found by %s not being %v", c.path, c.value)
				}
			}
			byID := filter.Compare{Field: filter.Field{Pseudo: filter.ID}, Op: filter.Eq, Value: string(d.ID)}
			if r := s.find(t, search.Request{Filter: byID}, name); len(r.Documents) != 1 || !r.Documents[0].CreatedAt.Equal(d.CreatedAt) {
				t.Errorf("found by id: %+v", r.Documents)
			}
		})
	}
}
