package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

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
