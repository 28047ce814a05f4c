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

// maxVersionIDs is the most ids asked for in one request.
const maxVersionIDs = 1000

// VersionOf names documents whose versions in one generation are wanted.
type VersionOf struct {
	Generation collection.Generation
	IDs        []doc.ID
}

// Versions tells which version of each document the index has, markers of
// deleted ones included, as of now and not as of the last refresh. Where an id
// is wanted of several generations the lowest version counts, and an id that
// one of them lacks is not in the answer. A missing index lacks every id.
// Errors are of kind IndexUnavailable.
func (c *Client) Versions(ctx context.Context, wanted []VersionOf) (map[doc.ID]doc.Version, error) {
	found := map[doc.ID]doc.Version{}
	lacking := map[doc.ID]bool{}
	for _, w := range wanted {
		index := c.IndexName(w.Generation)
		for from := 0; from < len(w.IDs); from += maxVersionIDs {
			ids := w.IDs[from:min(from+maxVersionIDs, len(w.IDs))]
			versions, err := c.versionsIn(ctx, index, ids)
			if err != nil {
				return nil, unavailable(fmt.Errorf("read versions in index %s: %w", index, err))
			}
			for i, id := range ids {
				switch old, again := found[id]; {
				case versions[i] == 0:
					lacking[id] = true
				case !again || versions[i] < old:
					found[id] = versions[i]
				}
			}
		}
	}
	for id := range lacking {
		delete(found, id)
	}
	return found, nil
}

// versionsIn are the versions of the ids in one index, in their order; 0 for
// one that is not there.
func (c *Client) versionsIn(ctx context.Context, index string, ids []doc.ID) ([]doc.Version, error) {
	body := []byte(`{"docs":[`)
	for i, id := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"_index":"`...)
		body = append(body, index...)
		body = append(body, `","_source":false,"_id":`...)
		body = value.AppendString(body, string(id))
		body = append(body, '}')
	}
	body = append(body, "]}"...)
	a, err := c.read(ctx, http.MethodPost,
		"/_mget?realtime=true&preference=_primary&filter_path=docs.found,docs._version,docs.error.type,docs._id", body)
	if err != nil {
		return nil, err
	}
	if f := a.failed(); f != nil {
		return nil, f
	}
	var told struct {
		Docs []struct {
			ID      doc.ID      `json:"_id"`
			Version doc.Version `json:"_version"`
			Found   bool        `json:"found"`
			Error   *struct {
				Type string `json:"type"`
			} `json:"error"`
		} `json:"docs"`
	}
	if err := json.Unmarshal(a.body, &told); err != nil {
		return nil, fmt.Errorf("read the answer of opensearch: %w", err)
	}
	if len(told.Docs) != len(ids) {
		return nil, fmt.Errorf("opensearch answered about %d of %d documents", len(told.Docs), len(ids))
	}
	versions := make([]doc.Version, len(ids))
	for i, d := range told.Docs {
		switch {
		case d.Error != nil && d.Error.Type == "index_not_found_exception":
		case d.Error != nil:
			return nil, &failure{status: a.status, kind: d.Error.Type}
		case d.Found:
			versions[i] = d.Version
		}
	}
	return versions, nil
}
