package sim

import (
	"encoding/json"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// indexed is what an index document says.
type indexed struct {
	ID         doc.ID         `json:"$id"`
	Collection doc.Collection `json:"$collection"`
	Version    doc.Version    `json:"$version"`
	CreatedAt  int64          `json:"$createdAt"`
	UpdatedAt  int64          `json:"$updatedAt"`
	ExpiresAt  int64          `json:"$expiresAt"`
	Deleted    bool           `json:"$deleted"`
	Partial    []string       `json:"$partial"`
	Sum        string         `json:"$sum"`
	Raw        string         `json:"$raw"`
	Tree       map[string]any `json:"doc"`
}

// read is what the source says.
func (s *shown) read() *indexed {
	if s.parsed == nil {
		s.parsed = &indexed{}
		_ = json.Unmarshal(s.source, s.parsed) // what is in an index was written by this program
	}
	return s.parsed
}

// document is the document that a search answers with.
func (i *indexed) document() (doc.Document, error) {
	data, err := value.DecodeDocument([]byte(i.Raw))
	return doc.Document{
		ID: i.ID, Version: i.Version, CreatedAt: micros(i.CreatedAt), UpdatedAt: micros(i.UpdatedAt), ExpiresAt: micros(i.ExpiresAt), Data: data,
	}, err
}

func micros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// held is what an index has of a document in real time.
func (i *physical) held(id doc.ID) (search.Held, bool) {
	e := i.entries[id]
	if e == nil {
		return search.Held{}, false
	}
	s := e.read()
	return search.Held{Version: e.version, Sum: s.Sum, Deleted: s.Deleted, Partial: len(s.Partial) > 0}, true
}

// fields are the leaves that the documents of the index have.
func (i *physical) fields() search.Fields {
	known := search.Fields{}
	var walk func(path string, tree map[string]any)
	walk = func(path string, tree map[string]any) {
		for name, v := range tree {
			full := path + "." + name
			switch v := v.(type) {
			case map[string]any:
				walk(full, v)
			case []any:
				known[full] = true
				for _, element := range v {
					if m, ok := element.(map[string]any); ok {
						delete(known, full)
						walk(full, m)
					}
				}
			default:
				known[full] = true
			}
		}
	}
	for _, e := range i.entries {
		walk("doc", e.read().Tree)
	}
	return known
}

// walk is one step through what searches see.
func (i *physical) walk(q search.WalkQuery, now time.Time) []search.Standing {
	limit := q.Limit
	if limit <= 0 || limit > search.MaxWalk {
		limit = search.MaxWalk
	}
	var all []search.Standing
	for _, id := range i.shownIDs(now) {
		if id <= q.After || len(all) == limit {
			continue
		}
		s := i.visible(id, now)
		d := s.read()
		if q.Markers && !d.Deleted || q.Before > 0 && s.version >= q.Before {
			continue
		}
		all = append(all, search.Standing{ID: id, Collection: id.Collection(), Version: s.version, Deleted: d.Deleted})
	}
	return all
}

// shownIDs are the ids that searches see something of, in their order.
func (i *physical) shownIDs(now time.Time) []doc.ID {
	ids := map[doc.ID]bool{}
	for id := range i.entries {
		if i.visible(id, now) != nil {
			ids[id] = true
		}
	}
	for id := range i.deletes {
		if i.visible(id, now) != nil {
			ids[id] = true
		}
	}
	return sortedKeys(ids)
}
