package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
	"holdfast/shared/store"
)

// QuarantineStore keeps the notes about documents that are not indexed in full.
type QuarantineStore interface {
	// Quarantined is a page of them; kind InvalidCursor for a cursor that is not
	// its own.
	Quarantined(ctx context.Context, q store.QuarantineQuery) (page []doc.Quarantined, next string, err error)
	// Quarantine gives those about some documents.
	Quarantine(ctx context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error)
	CountQuarantined(ctx context.Context, collections []doc.Collection) (int, error)
}

// Signals is the queue on which signals travel to the indexer: a pipeline.Queue.
type Signals interface {
	Send(ctx context.Context, out []pipeline.Outgoing) []error
	Depth(ctx context.Context) (int, error)
}

const standardQuarantine = 100

// listQuarantine answers GET /quarantine.
func (a *admin) listQuarantine(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only("collection", "after", "limit"); err != nil {
		return nil, err
	}
	var q store.QuarantineQuery
	var err error
	if name, given := c.query["collection"]; given {
		if q.Collection, err = doc.ParseCollection(name); err != nil {
			return nil, inParameter(err, "collection")
		}
	}
	if q.After, err = c.query.cursor(); err != nil {
		return nil, err
	}
	if q.Limit, err = c.query.limit(standardQuarantine, largestPage); err != nil {
		return nil, err
	}
	page, next, err := a.state.Quarantined(ctx, q)
	if err != nil {
		if doc.KindOf(err) == doc.InvalidCursor {
			err = inParameter(err, "after")
		}
		return nil, err
	}
	// A page is far from the limit of an answer: an entry has an id of at most
	// 512 bytes and a reason of at most 2,000.
	body := append([]byte(nil), `{"entries":[`...)
	for i, entry := range page {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"id":`...)
		body = appendText(body, string(entry.ID))
		body = append(body, `,"version":`...)
		body = appendVersion(body, entry.Version)
		body = append(body, `,"reason":`...)
		body = appendText(body, entry.Reason)
		body = append(body, `,"attempts":`...)
		body = strconv.AppendInt(body, int64(entry.Attempts), 10)
		body = append(body, `,"since":`...)
		body = appendTime(body, entry.Since)
		body = append(body, `,"partial":`...)
		body = append(strconv.AppendBool(body, entry.Partial), '}')
	}
	body = append(body, ']')
	if next != "" {
		body = append(body, `,"next":`...)
		body = appendText(body, next)
	}
	return reply(http.StatusOK, typeJSON, append(body, '}')), nil
}

// retryRequest is the body of POST /quarantine/retry: ids, or a collection from
// a cursor on.
type retryRequest struct {
	ids        []doc.ID
	collection doc.Collection
	after      string
}

func parseRetry(body []byte) (retryRequest, error) {
	var r retryRequest
	object, err := readObject(body, doc.InvalidRequest, "ids", "collection", "after")
	if err != nil {
		return r, err
	}
	ids, byID := object["ids"]
	name, byCollection := object["collection"]
	after, continued := object["after"]
	switch {
	case byID == byCollection:
		return r, at(doc.Errorf(doc.InvalidRequest, "the body has either ids or collection"), "")
	case byID && continued:
		return r, at(doc.Errorf(doc.InvalidRequest, "after goes with collection"), "/after")
	case byID:
		r.ids, err = readIDs(ids)
		return r, err
	}
	text, ok := name.(string)
	if !ok {
		return r, at(doc.Errorf(doc.InvalidRequest, "collection is a string"), "/collection")
	}
	if r.collection, err = doc.ParseCollection(text); err != nil {
		return r, at(err, "/collection")
	}
	if continued {
		if r.after, ok = after.(string); !ok || r.after == "" {
			return r, at(doc.Errorf(doc.InvalidCursor, "after is the next of an earlier answer"), "/after")
		}
	}
	return r, nil
}

// retryQuarantine answers POST /quarantine/retry: it sends the signals of
// entries again. What comes of it shows in the quarantine.
func (a *admin) retryQuarantine(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	if err := wantMediaType(c.Header, typeJSON); err != nil {
		return nil, err
	}
	r, err := parseRetry(c.Body)
	if err != nil {
		return nil, err
	}
	var entries []doc.Quarantined
	next := ""
	if r.collection != "" {
		entries, next, err = a.state.Quarantined(ctx, store.QuarantineQuery{Collection: r.collection, After: r.after, Limit: largestPage})
		if doc.KindOf(err) == doc.InvalidCursor {
			err = at(err, "/after")
		}
	} else {
		var found map[doc.ID]doc.Quarantined
		found, err = a.state.Quarantine(ctx, r.ids)
		for _, id := range r.ids { // in their order
			if entry, there := found[id]; there {
				entries = append(entries, entry)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := a.signal(ctx, entries); err != nil {
		return nil, err
	}
	body := append([]byte(nil), `{"signalled":`...)
	body = strconv.AppendInt(body, int64(len(entries)), 10)
	if next != "" {
		body = append(body, `,"next":`...)
		body = appendText(body, next)
	}
	return reply(http.StatusAccepted, typeJSON, append(body, '}')), nil
}

// signal sends signals about entries. The indexer reads each document again and
// clears the entry, or counts another attempt.
func (a *admin) signal(ctx context.Context, entries []doc.Quarantined) error {
	signals := make([]doc.Signal, len(entries))
	for i, entry := range entries {
		signals[i] = doc.Signal{ID: entry.ID, Version: entry.Version}
	}
	packed, err := pipeline.PackAgain(signals)
	if err != nil {
		return err
	}
	out := make([]pipeline.Outgoing, len(packed))
	for i, p := range packed {
		out[i] = pipeline.Outgoing{Body: p.Body}
	}
	for _, err := range a.signals.Send(ctx, out) {
		if err != nil {
			return doc.Errorf(doc.Unavailable, "not all signals could be sent; asking again does no harm").Because(err)
		}
	}
	return nil
}
