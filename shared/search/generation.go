package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"holdfast/shared/collection"
)

// ErrMisfit says that the index of a generation was made for another one, or
// not by this program at all. It has to be made anew.
var ErrMisfit = errors.New("the index does not fit its generation")

// Ensure creates the generation's index where it is missing and, for an active
// one, gives the family its alias where no index has it, or this one without the
// filter that hides markers. It may be called at any time by any number of
// callers. Moving the alias from one generation to the next is not its decision.
//
// The error is ErrMisfit for an index that is there and does not fit, else of
// kind IndexUnavailable.
func (c *Client) Ensure(ctx context.Context, g collection.Generation) error {
	index := c.IndexName(g)
	c.guard(ctx)
	body, err := json.Marshal(indexBody(g, c.replicas))
	if err != nil {
		return fmt.Errorf("write the mapping of index %s: %w", index, err)
	}
	err = c.change(ctx, http.MethodPut, "/"+index, body)
	var f *failure
	switch {
	case err == nil:
	case errors.As(err, &f) && f.kind == "resource_already_exists_exception":
		made, err := c.description(ctx, index, g)
		switch {
		case err != nil:
			return err
		case made == nil:
			return unavailable(fmt.Errorf("create index %s: it was there and is not any more", index))
		case !made.fits(g):
			return fmt.Errorf("index %s: %w", index, ErrMisfit)
		}
	default:
		return unavailable(fmt.Errorf("create index %s: %w", index, err))
	}
	if g.State != collection.Active {
		return nil
	}
	return c.ensureAlias(ctx, index, g.Family)
}

// Remove deletes the generation's index, with all that is in it. One that is not
// there is none the less removed. Errors are of kind IndexUnavailable.
func (c *Client) Remove(ctx context.Context, g collection.Generation) error {
	index := c.IndexName(g)
	err := c.change(ctx, http.MethodDelete, "/"+index, nil)
	var f *failure
	if err == nil || errors.As(err, &f) && f.kind == missingIndex {
		return nil
	}
	return unavailable(fmt.Errorf("remove index %s: %w", index, err))
}

// Refresh makes what was written to the generations' indexes searchable. A
// missing index has nothing to make so.
func (c *Client) Refresh(ctx context.Context, generations []collection.Generation) error {
	for _, g := range generations {
		index := c.IndexName(g)
		a, err := c.read(ctx, http.MethodPost, "/"+index+"/_refresh?ignore_unavailable=true", nil)
		if err != nil {
			return unavailable(fmt.Errorf("refresh index %s: %w", index, err))
		}
		if f := a.failed(); f != nil && f.status != http.StatusNotFound {
			return unavailable(fmt.Errorf("refresh index %s: %w", index, f))
		}
	}
	return nil
}

// MappedFields are the fields that the generation's index has, for the
// reduction that leaves new ones out.
func (c *Client) MappedFields(ctx context.Context, g collection.Generation) (Fields, error) {
	index := c.IndexName(g)
	var mapping mappingAnswer
	if err := c.ask(ctx, http.MethodGet, "/"+index+"/_mapping", nil, &mapping); err != nil {
		return nil, fmt.Errorf("read the mapping of index %s: %w", index, err)
	}
	known := Fields{}
	mappedLeaves(known, "", mapping[index].Mappings.Properties)
	return known, nil
}
