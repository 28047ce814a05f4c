package search

import (
	"context"
	"fmt"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
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
			got, err := c.get(ctx, index, ids)
			if err != nil {
				return nil, unavailable(fmt.Errorf("read versions in index %s: %w", index, err))
			}
			for i, id := range ids {
				switch old, again := found[id]; {
				case !got[i].Found:
					lacking[id] = true
				case !again || got[i].Version < old:
					found[id] = got[i].Version
				}
			}
		}
	}
	for id := range lacking {
		delete(found, id)
	}
	return found, nil
}
