package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"holdfast/shared/collection"
)

// Inspection is what a look at a generation's index found.
type Inspection struct {
	Exists  bool // the index is there
	Fits    bool // it was made for this generation, and its mapping still is that
	Aliased bool // the family's alias, with its filter, leads to it and to no other
	// UUID is what OpenSearch calls the index besides its name; "" where it is not
	// there. One that was made again under its name, or whose content was replaced
	// by that of a snapshot, has another.
	UUID string
}

// Inspect looks at the generation's index. Errors are of kind IndexUnavailable.
func (c *Client) Inspect(ctx context.Context, g collection.Generation) (Inspection, error) {
	index := c.IndexName(g)
	made, err := c.description(ctx, index, g)
	if err != nil || made == nil {
		return Inspection{}, err
	}
	holders, err := c.holders(ctx, g.Family)
	if err != nil {
		return Inspection{}, err
	}
	return Inspection{Exists: true, Fits: made.fits(g), Aliased: holders.only(index), UUID: made.uuid()}, nil
}

// UUID is that of Inspection, for who wants to know nothing else. It is asked of
// the cluster's manager, so that it is as new as anything that a search has seen
// before. Errors are of kind IndexUnavailable.
func (c *Client) UUID(ctx context.Context, g collection.Generation) (string, error) {
	index := c.IndexName(g)
	var told map[string]*description
	err := c.ask(ctx, http.MethodGet, "/"+index+"/_settings?filter_path="+uuidPath, nil, &told)
	var f *failure
	switch {
	case errors.As(err, &f) && f.kind == missingIndex:
		return "", nil
	case err != nil:
		return "", unavailable(fmt.Errorf("look which index %s is: %w", index, err))
	}
	if told[index] == nil { // an alias of that name leads to another one
		return "", nil
	}
	return told[index].uuid(), nil
}

// uuidPath is where answers have what uuid reads.
const uuidPath = "*.settings.index.uuid,*.settings.index.history.uuid"

// description is what OpenSearch says about an index; nil where it is not there.
type description struct {
	Mappings map[string]any `json:"mappings"`
	Settings struct {
		Index struct {
			UUID    string `json:"uuid"`
			History struct {
				UUID string `json:"uuid"`
			} `json:"history"`
		} `json:"index"`
	} `json:"settings"`
}

// uuid tells the index from any other that has or had its name. A snapshot that
// is restored over a closed index leaves its uuid and begins another history.
func (d *description) uuid() string {
	uuid := d.Settings.Index.UUID
	if history := d.Settings.Index.History.UUID; uuid != "" && history != "" {
		uuid += " " + history
	}
	return uuid
}

// description asks for as much about an index as tells whether it is the
// generation's. What documents added to its mapping is left out where nothing in
// it was declared, because that may be half a megabyte.
func (c *Client) description(ctx context.Context, index string, g collection.Generation) (*description, error) {
	path := "/" + index + "?filter_path=" + uuidPath + ",*.mappings"
	if len(g.Nested) == 0 {
		path += ",-*.mappings.properties." + fieldTree + ".properties"
	}
	var told map[string]*description
	err := c.ask(ctx, http.MethodGet, path, nil, &told)
	var f *failure
	switch {
	case errors.As(err, &f) && f.kind == missingIndex:
		return nil, nil
	case err != nil:
		return nil, unavailable(fmt.Errorf("look at index %s: %w", index, err))
	}
	if made := told[index]; made != nil {
		return made, nil
	}
	// An alias of that name, or an index without any mapping.
	return &description{}, nil
}

// fits compares the index with the one that would be made for the generation.
func (d *description) fits(g collection.Generation) bool {
	meta, _ := d.Mappings["_meta"].(map[string]any)
	text, err := json.Marshal(meta[metaKey])
	var made collection.Generation
	if err != nil || json.Unmarshal(text, &made) != nil || !sameIndex(made, g) {
		return false
	}
	wanted := indexMapping(g)
	delete(wanted, "_meta")
	if text, err = json.Marshal(wanted); err != nil {
		return false
	}
	var plain any
	return json.Unmarshal(text, &plain) == nil && contains(d.Mappings, plain)
}

// sameIndex reports whether two generations are one as far as their index is
// concerned, wherever they stand in their lives.
func sameIndex(a, b collection.Generation) bool {
	return a.Family == b.Family && a.Number == b.Number && a.Projector == b.Projector && a.Revision == b.Revision && a.Form().Same(b.Form())
}

// contains reports whether a mapping has everything that is wanted of it. There
// may be more. OpenSearch tells some constants as text, and does not tell that
// an object with properties is one.
func contains(have, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for name, w := range wanted {
			h, told := have[name]
			if !told && name == "type" && w == "object" {
				continue
			}
			if !told || !contains(h, w) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !contains(have[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(have) == fmt.Sprint(wanted)
}
