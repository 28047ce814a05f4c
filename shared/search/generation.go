package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"holdfast/shared/collection"
)

// Ensure creates the generation's index where it is missing and, for one that
// is read, sees that the family has its alias. It may be called at any time by
// any number of callers. An index that was made for another projection is an
// error.
func (c *Client) Ensure(ctx context.Context, g collection.Generation) error {
	index := c.IndexName(g)
	c.guard(ctx)
	body, err := json.Marshal(indexBody(g, c.prefix, c.replicas))
	if err != nil {
		return fmt.Errorf("write the mapping of index %s: %w", index, err)
	}
	a, err := c.perform(ctx, http.MethodPut, "/"+index, body)
	if err != nil {
		return fmt.Errorf("create index %s: %w", index, err)
	}
	f := a.failed()
	switch {
	case f == nil:
		return nil
	case f.kind != "resource_already_exists_exception":
		return fmt.Errorf("create index %s: %w", index, f)
	}
	if err := c.checkMade(ctx, index, g); err != nil {
		return err
	}
	if g.State != collection.Active {
		return nil
	}
	return c.ensureAlias(ctx, index, g.Family)
}

// checkMade compares the generation that an index says it was made for.
func (c *Client) checkMade(ctx context.Context, index string, g collection.Generation) error {
	a, err := c.read(ctx, http.MethodGet, "/"+index+"/_mapping?filter_path=*.mappings._meta", nil)
	if err != nil {
		return fmt.Errorf("look at index %s: %w", index, err)
	}
	if f := a.failed(); f != nil {
		return fmt.Errorf("look at index %s: %w", index, f)
	}
	var mapping mappingAnswer
	if err := json.Unmarshal(a.body, &mapping); err != nil {
		return fmt.Errorf("look at index %s: %w", index, err)
	}
	var made collection.Generation
	if err := json.Unmarshal(mapping[index].Mappings.Meta[metaKey], &made); err != nil {
		return fmt.Errorf("index %s does not say which generation it holds: %w", index, err)
	}
	if made.Family != g.Family || made.Number != g.Number || made.Projector != g.Projector || made.Revision != g.Revision {
		return fmt.Errorf("index %s was made for another generation: projector %d and revision %d, not %d and %d",
			index, made.Projector, made.Revision, g.Projector, g.Revision)
	}
	return nil
}

// ensureAlias gives the family its alias where no generation has it. Moving it
// from one generation to the next is not this client's decision.
func (c *Client) ensureAlias(ctx context.Context, index string, family collection.Family) error {
	alias := family.Alias(c.prefix)
	a, err := c.read(ctx, http.MethodGet, "/_alias/"+alias, nil)
	if err != nil {
		return fmt.Errorf("look at alias %s: %w", alias, err)
	}
	f := a.failed()
	switch {
	case f == nil:
		return nil
	case f.status != http.StatusNotFound:
		return fmt.Errorf("look at alias %s: %w", alias, f)
	}
	body, err := json.Marshal(aliasFilter())
	if err != nil {
		return fmt.Errorf("write alias %s: %w", alias, err)
	}
	if a, err = c.perform(ctx, http.MethodPut, "/"+index+"/_alias/"+alias, body); err != nil {
		return fmt.Errorf("add alias %s: %w", alias, err)
	}
	if f := a.failed(); f != nil {
		return fmt.Errorf("add alias %s: %w", alias, f)
	}
	return nil
}

// autoCreate is the cluster's setting that makes a write to a missing index
// create it, with a mapping nobody chose.
const autoCreate = "action.auto_create_index"

// guard turns automatic creation off for our prefix, once per client. A
// cluster that does not let us is warned about and used all the same.
func (c *Client) guard(ctx context.Context) {
	c.creation.Lock()
	defer c.creation.Unlock()
	if c.guarded {
		return
	}
	if err := c.forbidAutoCreation(ctx); err != nil {
		c.log.WarnContext(ctx, "automatic index creation could not be turned off", "prefix", c.prefix, "error", err)
		return
	}
	c.guarded = true
}

func (c *Client) forbidAutoCreation(ctx context.Context) error {
	a, err := c.read(ctx, http.MethodGet, "/_cluster/settings?flat_settings=true&include_defaults=true&filter_path="+
		url.QueryEscape("*."+strings.ReplaceAll(autoCreate, ".", `\.`)+",*."+autoCreate), nil)
	if err != nil {
		return err
	}
	if f := a.failed(); f != nil {
		return f
	}
	var settings struct {
		Persistent, Transient, Defaults map[string]any
	}
	if err := json.Unmarshal(a.body, &settings); err != nil {
		return fmt.Errorf("read the cluster's settings: %w", err)
	}
	current := "true"
	for _, level := range []map[string]any{settings.Transient, settings.Persistent, settings.Defaults} {
		if v, ok := level[autoCreate]; ok {
			current = fmt.Sprint(v)
			break
		}
	}
	wanted, change := forbidding(current, c.prefix)
	if !change {
		return nil
	}
	body, err := json.Marshal(object{"persistent": object{autoCreate: wanted}})
	if err != nil {
		return err
	}
	if a, err = c.perform(ctx, http.MethodPut, "/_cluster/settings?flat_settings=true", body); err != nil {
		return err
	}
	if f := a.failed(); f != nil {
		return f
	}
	return nil
}

// forbidding is the setting's value that adds our prefix to what is not
// created, and whether that changes anything. The value is true, false or a
// list of patterns of which the first that fits decides; what fits none is not
// created.
func forbidding(current, prefix string) (wanted string, change bool) {
	ours := "-" + prefix + "-*"
	switch current {
	case "false":
		return current, false
	case "true", "":
		return ours + ",+*", true
	}
	for pattern := range strings.SplitSeq(current, ",") {
		pattern = strings.TrimSpace(pattern)
		if base, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(base, "-") && strings.HasPrefix(ours, base) {
			return current, false
		}
	}
	return ours + "," + current, true
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
	a, err := c.read(ctx, http.MethodGet, "/"+index+"/_mapping", nil)
	if err != nil {
		return nil, fmt.Errorf("read the mapping of index %s: %w", index, err)
	}
	if f := a.failed(); f != nil {
		return nil, fmt.Errorf("read the mapping of index %s: %w", index, f)
	}
	var mapping mappingAnswer
	if err := json.Unmarshal(a.body, &mapping); err != nil {
		return nil, fmt.Errorf("read the mapping of index %s: %w", index, err)
	}
	known := Fields{}
	mappedLeaves(known, "", mapping[index].Mappings.Properties)
	return known, nil
}
