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

const (
	quarantineRoute    = "quarantine" // of its cursors
	standardQuarantine = 100
)

// listQuarantine answers GET /quarantine.
func (a *admin) listQuarantine(ctx context.Context, c *call) (*Response, error) {
	p, err := c.query.page(quarantineRoute, standardQuarantine)
	if err != nil {
		return nil, err
	}
	page, next, err := a.state.Quarantined(ctx, store.QuarantineQuery{Collection: p.collection, After: p.after, Limit: p.limit})
	if err != nil {
		return nil, ofCursor(err)
	}
	// A page is far from the limit of an answer: an entry has an id of at most
	// 512 bytes and a reason of at most 2,000.
	body := append([]byte(nil), `{"entries":[`...)
	for i, entry := range page {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendStanding(body, entry.ID, entry.Version)
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
	return reply(http.StatusOK, typeJSON, append(appendNext(body, p.cursor(next)), '}')), nil
}

// retryRequest is the body of POST /quarantine/retry: ids, or a collection from
// a cursor on.
type retryRequest struct {
	ids        []doc.ID
	collection doc.Collection
	after      string // position; "": the beginning
}

// listing is what a request for a collection goes through: the same as GET
// /quarantine shows of it.
func (r retryRequest) listing() listing { return listingOf(quarantineRoute, string(r.collection)) }

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
		cursor, _ := after.(string)
		r.after, err = r.listing().position(cursor)
	}
	return r, at(err, "/after")
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
	return reply(http.StatusAccepted, typeJSON, append(appendNext(body, r.listing().cursor(next)), '}')), nil
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
