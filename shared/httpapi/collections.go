package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/obs"
	"holdfast/shared/value"
)

// DefinitionStore is where definitions are kept. Reads are strong. Errors that
// a client is told about are of type *doc.Error.
type DefinitionStore interface {
	// CurrentDefinition gives a definition with the name only where there is none.
	CurrentDefinition(ctx context.Context, c doc.Collection) (collection.Definition, error)
	// PutDefinition replaces the definition that has the expected revision; kind
	// VersionConflict when another one has been put.
	PutDefinition(ctx context.Context, d collection.Definition, expectedRevision int64) (collection.Definition, error)
	// DefineUnused does so in one step with looking whether the collection has,
	// or had, documents; then the kind is ReindexRequired.
	DefineUnused(ctx context.Context, d collection.Definition, expectedRevision int64) (collection.Definition, error)
	// Definitions are all of them, also what is left of removed ones.
	Definitions(ctx context.Context) ([]collection.Definition, error)
	// Collections are all that have, or had, documents.
	Collections(ctx context.Context) ([]doc.Collection, error)
	// Generations are those of an index family, by number.
	Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error)
}

// AdminOptions are what the admin handler needs.
type AdminOptions struct {
	Definitions DefinitionStore
	Log         *slog.Logger // nil: discarded
	Metrics     *obs.Metrics // nil: none
}

// admin answers what operators ask.
type admin struct {
	definitions      DefinitionStore
	list, definition *route
}

// Admin makes the handler for /collections. It answers every other path with
// no-such-route.
func Admin(o AdminOptions) Handler {
	a := &admin{definitions: o.Definitions}
	a.list = &route{name: "collections", methods: map[string]operation{
		http.MethodGet: a.listCollections, http.MethodHead: a.listCollections,
	}}
	a.definition = &route{name: "definition", conditional: true, methods: map[string]operation{
		http.MethodGet: a.getDefinition, http.MethodHead: a.getDefinition,
		http.MethodPut: a.putDefinition, http.MethodDelete: a.deleteDefinition,
	}}
	return newHandler(a.route, o.Log, o.Metrics)
}

func (a *admin) route(c *call) (*route, error) {
	name, named := strings.CutPrefix(c.Path, "/collections/")
	if !named && c.Path != "/collections" {
		return nil, nil
	}
	var err error
	c.query, err = parseQuery(c.RawQuery)
	if !named {
		return a.list, err
	}
	c.id = name
	return a.definition, err
}

// largestList is the most collections of one page.
const largestList = 1000

// listCollections answers GET /collections: every collection that has documents
// or a definition, in the order of their names.
func (a *admin) listCollections(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only("limit", "after"); err != nil {
		return nil, err
	}
	limit, err := c.query.limit(largestList, largestList)
	if err != nil {
		return nil, err
	}
	after, err := a.after(c)
	if err != nil {
		return nil, err
	}
	known, err := a.definitions.Collections(ctx)
	if err != nil {
		return nil, err
	}
	definitions, err := a.definitions.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	declared := map[doc.Collection]collection.Definition{}
	for _, d := range definitions {
		if d.Declared() {
			declared[d.Name] = d
			known = append(known, d.Name)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	known = slices.DeleteFunc(known, func(name doc.Collection) bool { return name <= after })
	left := newBudget(2048)
	body := []byte(`{"collections":[`)
	next := ""
	for i, name := range known {
		begin := len(body)
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"name":`...)
		body = appendText(body, string(name))
		if d, ok := declared[name]; ok {
			body = append(body, `,"revision":`...)
			body = strconv.AppendInt(body, d.Revision, 10)
			body = append(body, `,"definition":`...)
			body = value.Append(body, d.Declares())
		} else {
			body = append(body, `,"revision":null,"definition":null`...)
		}
		body = append(body, '}')
		if i > 0 && (i == limit || !left.take(body[begin:])) {
			body = body[:begin]
			next = base64.RawURLEncoding.EncodeToString([]byte(known[i-1]))
			break
		}
	}
	body = append(body, ']')
	if next != "" {
		body = append(body, `,"next":`...)
		body = appendText(body, next)
	}
	return reply(http.StatusOK, typeJSON, append(body, '}')), nil
}

// after reads the cursor: the name of the last collection that was told.
func (a *admin) after(c *call) (doc.Collection, error) {
	text, err := c.query.cursor()
	if err != nil || text == "" {
		return "", err
	}
	name, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil {
		var after doc.Collection
		if after, err = doc.ParseCollection(string(name)); err == nil {
			return after, nil
		}
	}
	return "", inParameter(doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing"), "after")
}

// getDefinition answers GET and HEAD of a definition.
func (a *admin) getDefinition(ctx context.Context, c *call) (*Response, error) {
	name, err := collection.ParseName(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only(); err != nil {
		return nil, err
	}
	if err := refuseHeaders(c.Header, "If-Unmodified-Since"); err != nil {
		return nil, err
	}
	match, hasMatch, err := parseTags(c.Header, "If-Match")
	if err != nil {
		return nil, err
	}
	none, hasNone, err := parseTags(c.Header, "If-None-Match")
	if err != nil {
		return nil, err
	}
	d, err := a.definitions.CurrentDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	if !d.Declared() {
		return nil, doc.Errorf(doc.NotFound, "nothing is declared of this collection")
	}
	revision := doc.Version(d.Revision)
	if hasMatch && !match.matches(revision) {
		return nil, doc.Errorf(doc.VersionConflict, "the definition has another revision").
			With("expected", match.expected()).With("actual", revision)
	}
	var res *Response
	if hasNone && none.matches(revision) {
		res = replyEmpty(http.StatusNotModified)
		res.Header.Set("Cache-Control", "no-cache")
	} else {
		res = reply(http.StatusOK, typeJSON, value.Append(nil, d.Declares()))
	}
	res.Header.Set("ETag", etag(revision))
	return res, nil
}

// definitionRounds bounds how often a change begins anew because somebody else
// was in between.
const definitionRounds = 5

// putDefinition answers PUT of a definition.
func (a *admin) putDefinition(ctx context.Context, c *call) (*Response, error) {
	name, err := collection.ParseName(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only(); err != nil {
		return nil, err
	}
	demand, err := writeCondition(c.Header, true)
	if err != nil {
		return nil, err
	}
	if err := wantMediaType(c.Header, typeJSON); err != nil {
		return nil, err
	}
	read, err := value.Decode(c.Body, envelopeDepth)
	if err != nil {
		return nil, shallow(err, doc.InvalidDefinition)
	}
	d, err := collection.ParseDefinition(name, read)
	if err != nil {
		return nil, err
	}
	stored, err := a.change(ctx, name, demand, func(current collection.Definition) (collection.Definition, error) {
		switch {
		case current.Declared() && reflect.DeepEqual(current.Declares(), d.Declares()):
			return current, nil // said again
		case d.SameIndex(current):
			return a.definitions.PutDefinition(ctx, d, current.Revision)
		}
		return a.definitions.DefineUnused(ctx, d, current.Revision)
	})
	if err != nil {
		return nil, err
	}
	generations, err := a.definitions.Generations(ctx, stored.Family())
	if err != nil {
		return nil, err
	}
	number := 1 // what the first document begins
	for _, g := range generations {
		if g.State == collection.Active {
			number = g.Number
		}
	}
	body, err := json.Marshal(struct {
		Generation int  `json:"generation"`
		Reindexing bool `json:"reindexing"`
	}{number, false})
	if err != nil {
		return nil, fmt.Errorf("writing the answer about a definition: %w", err)
	}
	res := reply(http.StatusOK, typeJSON, body)
	res.Header.Set("ETag", etag(doc.Version(stored.Revision)))
	return res, nil
}

// deleteDefinition answers DELETE of a definition. Documents stay, and stay
// indexed in the form that they are in: that is kept, unseen, until a definition
// is put again or the index is made anew.
func (a *admin) deleteDefinition(ctx context.Context, c *call) (*Response, error) {
	name, err := collection.ParseName(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only(); err != nil {
		return nil, err
	}
	demand, err := writeCondition(c.Header, false)
	if err != nil {
		return nil, err
	}
	_, err = a.change(ctx, name, demand, func(current collection.Definition) (collection.Definition, error) {
		if !current.Declared() {
			return current, nil
		}
		removed := current.WithoutIndex()
		removed.Removed = true
		if !removed.SameIndex(current) {
			stored, err := a.definitions.DefineUnused(ctx, removed, current.Revision)
			if doc.KindOf(err) != doc.ReindexRequired {
				return stored, err
			}
			removed = current
			removed.Removed = true
		}
		return a.definitions.PutDefinition(ctx, removed, current.Revision)
	})
	if err != nil {
		return nil, err
	}
	return replyEmpty(http.StatusNoContent), nil
}

// change checks the condition against the current definition and makes the
// change, anew where somebody else was faster.
func (a *admin) change(
	ctx context.Context, name doc.Collection, demand demand,
	apply func(current collection.Definition) (collection.Definition, error),
) (collection.Definition, error) {
	for range definitionRounds {
		current, err := a.definitions.CurrentDefinition(ctx, name)
		if err != nil {
			return current, err
		}
		var revision doc.Version
		if current.Declared() {
			revision = doc.Version(current.Revision)
		}
		if err := demand.Check(revision); err != nil {
			var e *doc.Error
			if errors.As(err, &e) {
				e.Detail = "the definition is not at the revision that the condition demands"
			}
			return current, demand.explain(err)
		}
		stored, err := apply(current)
		if doc.KindOf(err) != doc.VersionConflict {
			return stored, err
		}
	}
	return collection.Definition{}, doc.Errorf(doc.Throttled, "too many writers change this definition at once")
}
