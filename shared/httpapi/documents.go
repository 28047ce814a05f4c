package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/guid"
	"holdfast/shared/obs"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// DocumentStore is where documents are. Reads are strong. Errors that a client
// is told about are of type *doc.Error.
type DocumentStore interface {
	// Load gives the live document; kind NotFound when there is none.
	Load(ctx context.Context, id doc.ID) (doc.Document, error)
	// LoadMany gives the live ones of distinct ids. An id that is neither among
	// the documents nor among the remaining ones has no live document.
	LoadMany(ctx context.Context, ids []doc.ID, maxBytes int) (store.LoadResult, error)
	// Put creates or replaces.
	Put(ctx context.Context, id doc.ID, data map[string]any, c doc.Condition) (doc.Written, error)
	// Delete removes; of what is absent, it writes nothing and gives no version.
	Delete(ctx context.Context, id doc.ID, c doc.Condition) (doc.Written, error)
	// Create stores under a new id below parent.
	Create(ctx context.Context, parent string, data map[string]any) (doc.Written, error)
	// Prefix gives documents in the order of their ids.
	Prefix(ctx context.Context, q store.PrefixQuery) (store.PrefixPage, error)
	// Changes gives the latest changes in the order of their versions.
	Changes(ctx context.Context, q store.ChangesQuery) (store.ChangesPage, error)
}

// DocumentsOptions are what the documents handler needs.
type DocumentsOptions struct {
	Store   DocumentStore
	Token   func([]doc.Written) string // what lets a query wait for writes
	Log     *slog.Logger               // nil: discarded
	Metrics *obs.Metrics               // nil: none
	Now     func() time.Time           // nil: time.Now; only compared with deadlines
}

// documents answers everything but queries.
type documents struct {
	store DocumentStore
	token func([]doc.Written) string
	now   func() time.Time
	log   *slog.Logger
	ids   *guid.Generator

	item, parent, list, load, bulk, changes, newIDs, openapi *route
}

// Documents makes the handler for /docs, /load, /bulk, /changes, /ids and
// /openapi.json. It answers every other path with no-such-route.
func Documents(o DocumentsOptions) Handler {
	d := &documents{store: o.Store, token: o.Token, now: o.Now, log: o.Log, ids: guid.NewGenerator(nil, nil)}
	if d.now == nil {
		d.now = time.Now
	}
	if d.log == nil {
		d.log = obs.Discard()
	}
	d.item = &route{name: "document", conditional: true, methods: map[string]operation{
		http.MethodGet: d.get, http.MethodHead: d.get, http.MethodPut: d.put, http.MethodDelete: d.delete,
	}}
	d.parent = &route{name: "collection", conditional: true, methods: map[string]operation{
		http.MethodPost: d.create,
		// An id never ends in a slash: these answer with that refusal.
		http.MethodGet: d.get, http.MethodHead: d.get, http.MethodPut: d.put, http.MethodDelete: d.delete,
	}}
	d.list = &route{name: "documents", methods: map[string]operation{
		http.MethodGet: d.prefix, http.MethodHead: d.prefix,
		http.MethodPut: idMissing, http.MethodPost: idMissing, http.MethodDelete: idMissing,
	}}
	d.load = &route{name: "load", methods: map[string]operation{http.MethodPost: d.loadMany}}
	d.bulk = &route{name: "bulk", methods: map[string]operation{http.MethodPost: d.writeBulk}}
	d.changes = &route{name: "changes", methods: map[string]operation{http.MethodGet: d.readChanges, http.MethodHead: d.readChanges}}
	d.newIDs = &route{name: "ids", methods: map[string]operation{http.MethodGet: d.makeIDs, http.MethodHead: d.makeIDs}}
	d.openapi = &route{name: "openapi", methods: map[string]operation{http.MethodGet: serveOpenAPI, http.MethodHead: serveOpenAPI}}
	return newHandler(d.route, o.Log, o.Metrics)
}

// route finds the resource of a path, and for ids the id: what follows /docs/,
// or ?id=.
func (d *documents) route(c *call) (*route, error) {
	id, underDocs := strings.CutPrefix(c.Path, "/docs/")
	var at *route
	switch {
	case underDocs, c.Path == "/docs":
		at = d.list
	case c.Path == "/load":
		at = d.load
	case c.Path == "/bulk":
		at = d.bulk
	case c.Path == "/changes":
		at = d.changes
	case c.Path == "/ids":
		at = d.newIDs
	case c.Path == "/openapi.json":
		at = d.openapi
	default:
		return nil, nil
	}
	var err error
	if c.query, err = parseQuery(c.RawQuery); err != nil {
		return nil, err
	}
	if at != d.list {
		return at, nil
	}
	if text, given := c.query["id"]; given {
		if underDocs {
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "the id is given in the path and as a parameter"), "id")
		}
		if c.query.has("startsWith") {
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "id and startsWith exclude each other"), "startsWith")
		}
		delete(c.query, "id")
		id = text
	} else if !underDocs {
		return d.list, nil
	}
	c.id = id
	if id == "" || strings.HasSuffix(id, "/") {
		return d.parent, nil
	}
	return d.item, nil
}

// idMissing answers a write to /docs that names no document.
func idMissing(context.Context, *call) (*Response, error) {
	return nil, inParameter(doc.Errorf(doc.InvalidRequest, "the document is named in the path, /docs/users/1, or as a parameter, /docs?id=users/1"), "id")
}

// get answers GET and HEAD of one document with its data.
func (d *documents) get(ctx context.Context, c *call) (*Response, error) {
	id, err := doc.ParseID(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only("fields"); err != nil {
		return nil, err
	}
	fields, projected, err := c.query.paths("fields")
	if err != nil {
		return nil, err
	}
	condition, err := readCondition(c.Header)
	if err != nil {
		return nil, err
	}
	found, err := d.store.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := condition.check(found.Version, "the document has another version"); err != nil {
		return nil, err
	}
	res := condition.reply(found.Version, func() []byte {
		data := found.Data
		if projected {
			data = value.Project(data, fields)
		}
		return value.Append(nil, data)
	})
	res.Header.Set("Last-Modified", found.UpdatedAt.UTC().Format(http.TimeFormat))
	return res, nil
}

// put answers PUT.
func (d *documents) put(ctx context.Context, c *call) (*Response, error) {
	id, err := doc.ParseID(c.id)
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
	data, err := value.DecodeDocument(c.Body)
	if err != nil {
		return nil, err
	}
	written, err := d.store.Put(ctx, id, data, demand.Condition)
	if err != nil {
		return nil, demand.explain(writeError(err))
	}
	status := http.StatusOK
	if written.Created {
		status = http.StatusCreated
	}
	return d.wrote(status, written), nil
}

// create answers POST to a collection.
func (d *documents) create(ctx context.Context, c *call) (*Response, error) {
	parent, err := doc.ParseParent(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only(); err != nil {
		return nil, err
	}
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since", "Content-Range"} {
		if len(c.Header.Values(name)) > 0 {
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "a document that gets a new id takes no conditions"), name)
		}
	}
	if err := wantMediaType(c.Header, typeJSON); err != nil {
		return nil, err
	}
	data, err := value.DecodeDocument(c.Body)
	if err != nil {
		return nil, err
	}
	written, err := d.store.Create(ctx, parent, data)
	if err != nil {
		return nil, writeError(err)
	}
	res := d.wrote(http.StatusCreated, written)
	res.Header.Set("Location", c.Base+"/docs/"+escapeID(written.ID))
	return res, nil
}

// delete answers DELETE.
func (d *documents) delete(ctx context.Context, c *call) (*Response, error) {
	id, err := doc.ParseID(c.id)
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
	written, err := d.store.Delete(ctx, id, demand.Condition)
	if err != nil {
		return nil, demand.explain(writeError(err))
	}
	res := replyEmpty(http.StatusNoContent)
	if written.Version != 0 {
		res.Header.Set(headerToken, d.token([]doc.Written{written}))
	}
	return res, nil
}

// wrote is the answer to a write that left a document.
func (d *documents) wrote(status int, w doc.Written) *Response {
	res := reply(status, typeJSON, appendWritten(nil, w))
	res.Header.Set("ETag", etag(w.Version))
	res.Header.Set(headerToken, d.token([]doc.Written{w}))
	return res
}

// writeError makes of a write that ran out of time what it is: one of which
// nobody knows whether it happened.
func writeError(err error) error {
	var told *doc.Error
	if !errors.As(err, &told) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return doc.Errorf(doc.OutcomeUnknown, "time ran out while writing; the write may or may not have happened").Because(err)
	}
	return err
}

func etag(v doc.Version) string { return `"` + v.String() + `"` }

// escapeID is an id as a path, its slashes kept.
func escapeID(id doc.ID) string {
	segments := strings.Split(string(id), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
