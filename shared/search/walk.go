package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// MaxWalk is the most entries of one step of a walk: OpenSearch's limit of hits.
const MaxWalk = 10_000

// WalkQuery is one step of a walk through an index.
type WalkQuery struct {
	After   doc.ID      // only ids behind it, in the order of their bytes; "" at the beginning
	Limit   int         // most entries of the step; 0 and whatever is above: MaxWalk
	Markers bool        // only markers of deleted documents
	Before  doc.Version // only versions below it; 0: all
}

// Standing is one entry of an index: a document, or what is left of it.
type Standing struct {
	ID         doc.ID
	Collection doc.Collection
	Version    doc.Version
	Deleted    bool // a marker of a deleted document
}

// Walk tells what is in the generation's index as of its last refresh, documents
// and markers, in the order of their ids. A step with fewer entries than its limit,
// or than MaxWalk, is the last one; a missing index has none. What stands in the index
// without an id in it, because this program did not write it, is passed over.
// Errors are of kind IndexUnavailable.
func (c *Client) Walk(ctx context.Context, g collection.Generation, q WalkQuery) ([]Standing, error) {
	if q.Limit <= 0 || q.Limit > MaxWalk {
		q.Limit = MaxWalk
	}
	scope := []query{present(fieldID)}
	if q.Markers {
		scope = append(scope, term(fieldDeleted, true))
	}
	if q.Before > 0 {
		scope = append(scope, rangeOf(fieldVersion, "lt", int64(q.Before)))
	}
	body := object{
		"query": allOf(scope...).dsl(), "sort": []object{{fieldID: "asc"}}, "size": q.Limit, "track_total_hits": false,
		// All of it is in columns: the documents' text is not read.
		"stored_fields": "_none_", "version": true, "docvalue_fields": []string{fieldDeleted},
	}
	if q.After != "" {
		body["search_after"] = []string{string(q.After)}
	}
	var told struct {
		Hits struct {
			Hits []struct {
				Version doc.Version `json:"_version"`
				Fields  struct {
					Deleted []bool `json:"$deleted"`
				} `json:"fields"`
				Sort []doc.ID `json:"sort"`
			} `json:"hits"`
		} `json:"hits"`
	}
	index := c.IndexName(g)
	there, err := c.look(ctx, index, "filter_path=hits.hits._version,hits.hits.fields,hits.hits.sort", body, &told)
	if err != nil {
		return nil, unavailable(fmt.Errorf("walk through index %s: %w", index, err))
	}
	if !there {
		return nil, nil
	}
	standings := make([]Standing, len(told.Hits.Hits))
	for i, h := range told.Hits.Hits {
		if len(h.Sort) != 1 {
			return nil, unavailable(fmt.Errorf("walk through index %s: an entry has no place in the order", index))
		}
		id := h.Sort[0]
		standings[i] = Standing{ID: id, Collection: id.Collection(), Version: h.Version, Deleted: slices.Contains(h.Fields.Deleted, true)}
	}
	return standings, nil
}

// countPage is how many collections one request counts.
const countPage = 1000

// Counts are the numbers of documents in the generation's index by collection,
// as of its last refresh. Markers of deleted documents do not count; documents
// that have expired do. Collections without any are missing, as all are where
// there is no index. Errors are of kind IndexUnavailable.
func (c *Client) Counts(ctx context.Context, g collection.Generation) (map[doc.Collection]int, error) {
	index := c.IndexName(g)
	counts := map[doc.Collection]int{}
	composite := object{"size": countPage, "sources": []object{{"c": object{"terms": object{"field": fieldCollection}}}}}
	body := object{
		"query": not(term(fieldDeleted, true)).dsl(), "size": 0, "track_total_hits": false,
		"aggs": object{"counts": object{"composite": composite}},
	}
	for {
		var told struct {
			Aggregations struct {
				Counts struct {
					AfterKey json.RawMessage `json:"after_key"`
					Buckets  []struct {
						Key struct {
							Collection doc.Collection `json:"c"`
						} `json:"key"`
						Count int `json:"doc_count"`
					} `json:"buckets"`
				} `json:"counts"`
			} `json:"aggregations"`
		}
		there, err := c.look(ctx, index, "filter_path=aggregations", body, &told)
		if err != nil {
			return nil, unavailable(fmt.Errorf("count the documents in index %s: %w", index, err))
		}
		page := told.Aggregations.Counts
		for _, b := range page.Buckets {
			counts[b.Key.Collection] = b.Count
		}
		if !there || len(page.Buckets) < countPage {
			return counts, nil
		}
		composite["after"] = page.AfterKey
	}
}

// look runs one search in one index. It reports whether the index is there; a
// shard that fails, fails the search.
func (c *Client) look(ctx context.Context, index, options string, body object, v any) (there bool, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	err = c.ask(ctx, http.MethodPost, "/"+index+"/_search?allow_partial_search_results=false&"+options, text, v)
	var f *failure
	if errors.As(err, &f) && f.kind == missingIndex {
		return false, nil
	}
	return err == nil, err
}
