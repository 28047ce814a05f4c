package search

import (
	"context"
	"fmt"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// Erase takes entries out of the generation's index, markers or documents: each
// that has the signal's version or an older one. It returns an outcome for each
// in their order: Applied where the index does not have it any more, Stale where
// it has a newer version, which stays. What Write says of requests and of
// Environment holds here too. Signals need an id and a version above 0; anything
// else is an error.
//
// What is erased is forgotten: once OpenSearch has let go of the version too,
// after a minute or with a restart, an older one that is written stays.
func (c *Client) Erase(ctx context.Context, g collection.Generation, signals []doc.Signal) ([]Outcome, error) {
	ops := make([]Operation, len(signals))
	for i, s := range signals {
		if s.ID == "" || s.Version <= 0 {
			return nil, fmt.Errorf("signal %d (%s) lacks an id or a version", i, s.ID)
		}
		ops[i] = Operation{ID: s.ID, Version: s.Version, Generation: g}
	}
	w := bulkWrite{client: c, ops: ops, erases: true, outcomes: make([]Outcome, len(ops)), most: c.bulkBytes}
	return w.run(ctx), nil
}
