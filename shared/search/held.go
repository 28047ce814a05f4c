package search

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

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
		if err := c.addHeld(ctx, held, index, ids[from:min(from+maxVersionIDs, len(ids))]); err != nil {
			return nil, unavailable(fmt.Errorf("read what index %s has of documents: %w", index, err))
		}
	}
	return held, nil
}

// addHeld adds what an index has of at most maxVersionIDs ids.
//
// OpenSearch takes near a millisecond to pick fields from a document that it
// gets, and next to nothing to tell which write it is the outcome of. So what
// searches see of the same write is taken for it, and only what they do not see
// yet is got with its fields.
func (c *Client) addHeld(ctx context.Context, held map[doc.ID]Held, index string, ids []doc.ID) error {
	got, err := c.get(ctx, index, ids)
	if err != nil {
		return err
	}
	there := make(map[doc.ID]gotten, len(ids))
	for i, one := range got {
		if one.Found {
			there[ids[i]] = one
		}
	}
	if len(there) == 0 {
		return nil
	}
	if err := c.addSeen(ctx, held, index, there); err != nil || len(there) == 0 {
		return err
	}
	unseen := slices.Collect(maps.Keys(there))
	if got, err = c.get(ctx, index, unseen, fieldSum, fieldDeleted, fieldPartial); err != nil {
		return err
	}
	for i, one := range got {
		if one.Found {
			held[unseen[i]] = Held{Version: one.Version, Sum: one.Source.Sum, Deleted: one.Source.Deleted, Partial: len(one.Source.Partial) > 0}
		}
	}
	return nil
}

// addSeen adds what searches see of the writes, and takes these out of there.
func (c *Client) addSeen(ctx context.Context, held map[doc.ID]Held, index string, there map[doc.ID]gotten) error {
	body := object{
		"query": object{"ids": object{"values": slices.Collect(maps.Keys(there))}}, "size": len(there), "track_total_hits": false,
		"stored_fields": "_none_", "seq_no_primary_term": true, "docvalue_fields": []string{fieldID, fieldSum, fieldDeleted, fieldPartial},
	}
	var told struct {
		Hits struct {
			Hits []struct {
				write
				Fields struct {
					ID      []doc.ID `json:"$id"`
					Sum     []string `json:"$sum"`
					Deleted []bool   `json:"$deleted"`
					Partial []string `json:"$partial"`
				} `json:"fields"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if _, err := c.look(ctx, index, "preference=_primary&filter_path=hits.hits._seq_no,hits.hits._primary_term,hits.hits.fields", body, &told); err != nil {
		return err
	}
	for _, h := range told.Hits.Hits {
		f := h.Fields
		if len(f.ID) != 1 {
			continue
		}
		one, wanted := there[f.ID[0]]
		if !wanted || one.write != h.write {
			continue
		}
		sum := ""
		if len(f.Sum) == 1 {
			sum = f.Sum[0]
		}
		held[f.ID[0]] = Held{Version: one.Version, Sum: sum, Deleted: slices.Contains(f.Deleted, true), Partial: len(f.Partial) > 0}
		delete(there, f.ID[0])
	}
	return nil
}

// write is what OpenSearch calls one write of one of an index's shards.
type write struct {
	Number int64 `json:"_seq_no"`
	Term   int64 `json:"_primary_term"`
}

// gotten is what an index answers about one id.
type gotten struct {
	Found   bool        `json:"found"`
	Version doc.Version `json:"_version"`
	write
	Source struct {
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
	path := "/_mget?realtime=true&preference=_primary&filter_path=docs._id,docs.found,docs._version,docs._seq_no,docs._primary_term,docs.error.type"
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
