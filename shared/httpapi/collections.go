package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
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

// listCollections answers GET /collections: every collection that has documents
// or a definition, in the order of their names.
func (a *admin) listCollections(ctx context.Context, c *call) (*Response, error) {
	p, err := c.query.names("collections")
	if err != nil {
		return nil, err
	}
	known, err := a.state.Collections(ctx)
	if err != nil {
		return nil, err
	}
	definitions, err := a.state.Definitions(ctx)
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
	known = slices.DeleteFunc(known, func(name doc.Collection) bool { return name <= p.after })
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
		if i > 0 && (i == p.limit || !left.take(body[begin:])) {
			body = body[:begin]
			next = p.behind(known[i-1])
			break
		}
	}
	body = append(body, ']')
	return reply(http.StatusOK, typeJSON, append(appendNext(body, next), '}')), nil
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
	condition, err := readCondition(c.Header)
	if err != nil {
		return nil, err
	}
	d, err := a.state.CurrentDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	if !d.Declared() {
		return nil, doc.Errorf(doc.NotFound, "nothing is declared of this collection")
	}
	revision := doc.Version(d.Revision)
	if err := condition.check(revision, "the definition has another revision"); err != nil {
		return nil, err
	}
	return condition.reply(revision, func() []byte { return value.Append(nil, d.Declares()) }), nil
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
		if current.Declared() && reflect.DeepEqual(current.Declares(), d.Declares()) {
			return current, nil // said again
		}
		return a.define(ctx, d, current)
	})
	if err != nil {
		return nil, err
	}
	generations, err := a.state.Generations(ctx, stored.Family())
	if err != nil {
		return nil, err
	}
	number, reindexing := destination(stored, generations)
	body, err := json.Marshal(struct {
		Generation int  `json:"generation"`
		Reindexing bool `json:"reindexing"`
	}{number, reindexing})
	if err != nil {
		return nil, fmt.Errorf("writing the answer about a definition: %w", err)
	}
	res := reply(http.StatusOK, typeJSON, body)
	res.Header.Set("ETag", etag(doc.Version(stored.Revision)))
	return res, nil
}

// define stores a definition in the place of the current one. Where documents
// would be indexed by it in another form than they are, they are read as they
// are until an index in the new form is complete: repair sees to that.
func (a *admin) define(ctx context.Context, d, current collection.Definition) (collection.Definition, error) {
	if !d.SameIndex(current) {
		stored, err := a.state.DefineUnused(ctx, d, current.Revision)
		if doc.KindOf(err) != doc.ReindexRequired {
			return stored, err
		}
	}
	return a.state.PutDefinition(ctx, d.Changed(current, time.Now().UTC()), current.Revision)
}

// destination is the number of the generation that documents are, or will be,
// indexed in by a definition, and whether those that are there are still on
// their way to it. The generations are those of the declared family.
func destination(d collection.Definition, generations []collection.Generation) (number int, reindexing bool) {
	moving := d.Serving != nil && !d.Moved
	read, there := collection.Read(generations)
	form := d.FormIn(d.Family())
	last := 0
	for _, g := range generations {
		last = max(last, g.Number)
		if g.Written() && g.Form().Same(form) {
			number = max(number, g.Number)
		}
	}
	if number == 0 {
		return last + 1, moving || there // not begun yet
	}
	return number, moving || there && number != read.Number
}

// deleteDefinition answers DELETE of a definition. Documents stay. Those that
// have an index of their own move to the shared one, and are read where they are
// until they are there.
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
		return a.define(ctx, removed, current)
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
		current, err := a.state.CurrentDefinition(ctx, name)
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
