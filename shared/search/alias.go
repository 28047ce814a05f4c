package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"holdfast/shared/collection"
)

// The alias of a family is for people and for other tools. It leads to the
// generation that is read, through a filter that hides the markers of deleted
// documents. Queries name indexes and have that filter themselves.

// ErrNotSwapped says that a family's alias leads elsewhere than whoever wanted
// to move it thought: somebody else has moved it since.
var ErrNotSwapped = errors.New("the alias was moved by somebody else")

// Swap moves the family's alias, in one step, to the index of a generation from
// those of the others. It does nothing where the alias leads there alone, and
// adds one that leads nowhere. Where it leads to an index of neither, nothing is
// changed and the error is ErrNotSwapped: of two who move it at once from one
// generation to different ones, one succeeds. Other errors are of kind
// IndexUnavailable; what has become of the alias is then unknown.
func (c *Client) Swap(ctx context.Context, to collection.Generation, from []collection.Generation) error {
	index, alias := c.IndexName(to), to.Family.Alias(c.prefix)
	held, err := c.holders(ctx, to.Family)
	if err != nil {
		return err
	}
	if held.only(index) {
		return nil
	}
	var actions []object
	for _, holder := range slices.Sorted(maps.Keys(held)) {
		switch {
		case holder == index:
		case slices.ContainsFunc(from, func(g collection.Generation) bool { return c.IndexName(g) == holder }):
			actions = append(actions, object{"remove": object{"index": holder, "alias": alias, "must_exist": true}})
		default:
			return fmt.Errorf("move alias %s to %s: it leads to %s: %w", alias, index, holder, ErrNotSwapped)
		}
	}
	err = c.aliases(ctx, append(actions, addAlias(index, alias))...)
	var f *failure
	if errors.As(err, &f) && f.kind == "aliases_not_found_exception" {
		// It was moved in between, perhaps to where it should go.
		if held, err = c.holders(ctx, to.Family); err != nil {
			return err
		}
		if held.only(index) {
			return nil
		}
		return fmt.Errorf("move alias %s to %s: %w", alias, index, ErrNotSwapped)
	}
	if err != nil {
		return unavailable(fmt.Errorf("move alias %s to %s: %w", alias, index, err))
	}
	return nil
}

// ensureAlias gives the family its alias where no index has it, or this one
// alone without its filter.
func (c *Client) ensureAlias(ctx context.Context, index string, family collection.Family) error {
	held, err := c.holders(ctx, family)
	if err != nil {
		return err
	}
	if filtered, holds := held[index]; len(held) > 0 && (!holds || filtered) {
		return nil
	}
	alias := family.Alias(c.prefix)
	if err := c.aliases(ctx, addAlias(index, alias)); err != nil {
		return unavailable(fmt.Errorf("add alias %s to %s: %w", alias, index, err))
	}
	return nil
}

// aliases changes aliases: all of the actions or none.
func (c *Client) aliases(ctx context.Context, actions ...object) error {
	body, err := json.Marshal(object{"actions": actions})
	if err != nil {
		return err
	}
	return c.change(ctx, http.MethodPost, "/_aliases", body)
}

func addAlias(index, alias string) object {
	return object{"add": object{"index": index, "alias": alias, "filter": markerFilter()}}
}

func markerFilter() object {
	return object{"bool": object{"must_not": object{"term": object{fieldDeleted: true}}}}
}

// holders are the indexes that an alias leads to, and whether with its filter.
type holders map[string]bool

// only reports whether the alias leads to the index as it should, and to no
// other.
func (h holders) only(index string) bool { return len(h) == 1 && h[index] }

// holders finds where the family's alias leads.
func (c *Client) holders(ctx context.Context, family collection.Family) (holders, error) {
	alias := family.Alias(c.prefix)
	var told map[string]struct {
		Aliases map[string]struct {
			Filter any `json:"filter"`
		} `json:"aliases"`
	}
	err := c.ask(ctx, http.MethodGet, "/_alias/"+alias, nil, &told)
	var f *failure
	switch {
	case errors.As(err, &f) && f.status == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, unavailable(fmt.Errorf("look at alias %s: %w", alias, err))
	}
	held := holders{}
	for index, a := range told {
		filter, err := json.Marshal(a.Aliases[alias].Filter)
		wanted, wantedErr := json.Marshal(markerFilter())
		held[index] = errors.Join(err, wantedErr) == nil && string(filter) == string(wanted)
	}
	return held, nil
}
