package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// Source is one collection to search, with the generation that its documents
// are read in. A nil one says that there is no index yet, and with it no
// document.
type Source struct {
	Collection doc.Collection
	Generation *collection.Generation
}

// fieldIndex is OpenSearch's own name of the field that tells a document's
// index.
const fieldIndex = "_index"

// reach is where a search looks: in indexes, of which some may turn out to be
// gone.
type reach struct {
	generations map[string]collection.Generation // by index
	indexes     []string                         // that are still looked at
	gone        []collection.Generation
}

func (c *Client) reachOf(from []Source) reach {
	r := reach{generations: map[string]collection.Generation{}}
	for _, s := range from {
		if s.Generation != nil {
			r.generations[c.IndexName(*s.Generation)] = *s.Generation
		}
	}
	r.indexes = slices.Sorted(maps.Keys(r.generations))
	return r
}

// scopeOf finds the documents of the sources: of each index those of the
// collections that are read in it, neither the markers of deleted documents nor
// what has expired. An index may hold documents of a collection that is read in
// another one, while they are on their way from one to the other.
func (c *Client) scopeOf(from []Source, now time.Time) query {
	collections := map[string][]string{}
	for _, s := range from {
		if s.Generation != nil {
			index := c.IndexName(*s.Generation)
			collections[index] = append(collections[index], string(s.Collection))
		}
	}
	var held []query
	for _, index := range slices.Sorted(maps.Keys(collections)) {
		names := collections[index]
		slices.Sort(names)
		q := terms(fieldCollection, slices.Compact(names))
		if len(collections) > 1 {
			q = allOf(term(fieldIndex, index), q)
		}
		held = append(held, q)
	}
	return allOf(anyOf(held...), not(term(fieldDeleted, true)), not(rangeOf(fieldExpiresAt, "lte", now.UnixMicro())))
}

// lose takes indexes out of the reach.
func (r *reach) lose(indexes []string) {
	for _, index := range indexes {
		r.gone = append(r.gone, r.generations[index])
	}
	r.indexes = slices.DeleteFunc(slices.Clone(r.indexes), func(index string) bool { return slices.Contains(indexes, index) })
}

// errIndexGone says that one of the indexes of a search is not there.
var errIndexGone = errors.New("an index is not there")

// searches runs searches over the indexes within reach in one request. One that
// is not there is noted and left out: only who knows why it is gone can tell
// whether its documents are elsewhere.
func (s *search) searches(ctx context.Context, bodies ...object) ([]found, error) {
	for again := false; ; {
		if len(s.reach.indexes) == 0 { // no index is named by every index in OpenSearch
			return make([]found, len(bodies)), nil
		}
		answers, err := s.client.searches(ctx, s.reach.indexes, bodies...)
		if !errors.Is(err, errIndexGone) {
			return answers, err
		}
		gone, err := s.client.absent(ctx, s.reach.indexes)
		switch {
		case err != nil:
			return nil, err
		case len(gone) > 0:
			s.reach.lose(gone)
		case again:
			return nil, unavailable(errIndexGone)
		default: // it has come back
			again = true
		}
	}
}

// absent are those of the indexes that are not there.
func (c *Client) absent(ctx context.Context, indexes []string) ([]string, error) {
	var request []byte
	for _, index := range indexes {
		request = fmt.Appendf(request, "{\"index\":%q}\n{\"size\":0,\"query\":{\"match_none\":{}}}\n", index)
	}
	var told struct {
		Responses []struct {
			Status int `json:"status"`
		} `json:"responses"`
	}
	if err := c.ask(ctx, http.MethodPost, "/_msearch?filter_path=responses.status", request, &told); err != nil {
		return nil, unavailable(fmt.Errorf("look for indexes: %w", err))
	}
	if len(told.Responses) != len(indexes) {
		return nil, unavailable(fmt.Errorf("opensearch told about %d of %d indexes", len(told.Responses), len(indexes)))
	}
	var gone []string
	for i, r := range told.Responses {
		if r.Status == http.StatusNotFound {
			gone = append(gone, indexes[i])
		}
	}
	return gone, nil
}
