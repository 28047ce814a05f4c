package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// Held is what an index has of one document.
type Held struct {
	Version doc.Version
	Sum     string // the checksum of its content, as value.Sum makes it; "" of a marker
	Deleted bool   // a marker of a deleted document
	Partial bool   // a form that leaves something of the document out
}

// Held tells what the generation's index has of each document, as of now and
// not as of the last refresh. What it does not have is missing from the answer,
// as everything is where there is no index. There may be any number of ids.
// Errors are of kind IndexUnavailable.
func (c *Client) Held(ctx context.Context, g collection.Generation, ids []doc.ID) (map[doc.ID]Held, error) {
	index := c.IndexName(g)
	held := make(map[doc.ID]Held, len(ids))
	for from := 0; from < len(ids); from += maxVersionIDs {
		chunk := ids[from:min(from+maxVersionIDs, len(ids))]
		got, err := c.get(ctx, index, chunk, fieldSum, fieldDeleted, fieldPartial)
		if err != nil {
			return nil, unavailable(fmt.Errorf("read what index %s has of documents: %w", index, err))
		}
		for i, one := range got {
			if one.Found {
				held[chunk[i]] = Held{
					Version: one.Version, Sum: one.Source.Sum, Deleted: one.Source.Deleted, Partial: len(one.Source.Partial) > 0,
				}
			}
		}
	}
	return held, nil
}

// gotten is what an index answers about one id.
type gotten struct {
	Found   bool        `json:"found"`
	Version doc.Version `json:"_version"`
	Source  struct {
		Sum     string   `json:"$sum"`
		Deleted bool     `json:"$deleted"`
		Partial []string `json:"$partial"`
	} `json:"_source"`
	Error *struct {
		Type string `json:"type"`
	} `json:"error"`
}

// get reads at most maxVersionIDs ids in one index in real time, from the
// primary: an answer for each in their order, with the fields that were asked
// for. A missing index has none of them.
func (c *Client) get(ctx context.Context, index string, ids []doc.ID, fields ...string) ([]gotten, error) {
	source := []byte("false")
	path := "/_mget?realtime=true&preference=_primary&filter_path=docs._id,docs.found,docs._version,docs.error.type"
	if len(fields) > 0 {
		path += ",docs._source"
		var err error
		if source, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	body := []byte(`{"docs":[`)
	for i, id := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"_index":"`...)
		body = append(body, index...)
		body = append(body, `","_source":`...)
		body = append(body, source...)
		body = append(body, `,"_id":`...)
		body = value.AppendString(body, string(id))
		body = append(body, '}')
	}
	body = append(body, "]}"...)
	var told struct {
		Docs []gotten `json:"docs"`
	}
	if err := c.ask(ctx, http.MethodPost, path, body, &told); err != nil {
		return nil, err
	}
	if len(told.Docs) != len(ids) {
		return nil, fmt.Errorf("opensearch answered about %d of %d documents", len(told.Docs), len(ids))
	}
	for i, one := range told.Docs {
		if one.Error != nil {
			if one.Error.Type != missingIndex {
				return nil, &failure{status: http.StatusOK, kind: one.Error.Type}
			}
			told.Docs[i] = gotten{}
		}
	}
	return told.Docs, nil
}
