package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// mostIDs is the most distinct ids one load reads, and again the most it
// includes: what one BatchGetItem of DynamoDB takes.
const mostIDs = 100

// loadRequest is the body of POST /load.
type loadRequest struct {
	ids     []doc.ID // distinct, in the order asked for
	include []value.Path
}

func parseLoad(body []byte) (loadRequest, error) {
	var r loadRequest
	object, err := readObject(body, doc.InvalidRequest, "ids", "include")
	if err != nil {
		return r, err
	}
	if r.ids, err = readIDs(object["ids"]); err != nil {
		return r, err
	}
	given, has := object["include"]
	if !has {
		return r, nil
	}
	paths, ok := given.([]any)
	if !ok {
		return r, at(doc.Errorf(doc.InvalidRequest, "include is a list of paths"), "/include")
	}
	if len(paths) > mostIDs {
		return r, at(tooMany("paths", len(paths)), "/include")
	}
	r.include = make([]value.Path, 0, len(paths)) // not nil: it was asked for
	for i, v := range paths {
		pointer := value.Pointer("include", strconv.Itoa(i))
		text, ok := v.(string)
		if !ok {
			return r, at(doc.Errorf(doc.InvalidRequest, "a path is a string"), pointer)
		}
		p, err := value.ParsePath(text)
		if err != nil {
			return r, at(err, pointer)
		}
		r.include = append(r.include, p)
	}
	return r, nil
}

// readIDs reads the member ids of a body: a list of at most mostIDs distinct
// ids, in the order given.
func readIDs(given any) ([]doc.ID, error) {
	list, ok := given.([]any)
	if !ok {
		return nil, at(doc.Errorf(doc.InvalidRequest, "ids is a list of document ids"), "/ids")
	}
	var ids []doc.ID
	seen := map[doc.ID]bool{}
	for i, v := range list {
		pointer := value.Pointer("ids", strconv.Itoa(i))
		text, ok := v.(string)
		if !ok {
			return nil, at(doc.Errorf(doc.InvalidRequest, "a document id is a string"), pointer)
		}
		id, err := doc.ParseID(text)
		if err != nil {
			return nil, at(err, pointer)
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) > mostIDs {
		return nil, at(tooMany("ids", len(ids)), "/ids")
	}
	return ids, nil
}

func tooMany(what string, actual int) *doc.Error {
	return doc.Errorf(doc.TooMany, "at most %d distinct %s are taken at once", mostIDs, what).
		With("limit", mostIDs).With("actual", actual)
}

// loadMany answers POST /load.
func (d *documents) loadMany(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	if err := wantMediaType(c.Header, typeJSON); err != nil {
		return nil, err
	}
	r, err := parseLoad(c.Body)
	if err != nil {
		return nil, err
	}
	// The names of what does not fit have their place in any case.
	frame := 256
	for _, id := range r.ids {
		frame += 2*len(id) + 8
	}
	a := &loading{store: d.store, left: newBudget(frame)}
	body := append([]byte(nil), `{"documents":{`...)
	body, loaded, err := a.append(ctx, body, r.ids)
	if err != nil {
		return nil, err
	}
	body = append(body, '}')
	if r.include != nil {
		references, err := referenced(r, loaded)
		if err != nil {
			return nil, err
		}
		for _, id := range references {
			a.left.answer -= 2*len(id) + 8
			a.left.payload -= 4*len(id) + 16
		}
		body = append(body, `,"included":{`...)
		if body, _, err = a.append(ctx, body, references); err != nil {
			return nil, err
		}
		body = append(body, '}')
	}
	if len(a.remaining) > 0 {
		body = appendRemaining(body, a.remaining)
	}
	return reply(http.StatusOK, typeJSON, append(body, '}')), nil
}

// loading is an answer to /load in the making.
type loading struct {
	store     DocumentStore
	left      *budget
	remaining []doc.ID
}

// append loads ids and writes the members of one object: for each id its
// envelope, or null where there is no document. What does not fit is remembered
// as remaining; it is never written as null.
func (a *loading) append(ctx context.Context, dst []byte, ids []doc.ID) ([]byte, []doc.Document, error) {
	if len(ids) == 0 {
		return dst, nil, nil
	}
	if a.left.answer <= 0 || a.left.payload <= 0 {
		a.remaining = append(a.remaining, ids...)
		return dst, nil, nil
	}
	result, err := a.store.LoadMany(ctx, ids, a.left.answer)
	if err != nil {
		return nil, nil, err
	}
	unread := make(map[doc.ID]bool, len(result.Remaining))
	for _, id := range result.Remaining {
		unread[id] = true
	}
	var written []doc.Document
	first := true
	for _, id := range ids {
		if unread[id] {
			a.remaining = append(a.remaining, id)
			continue
		}
		begin := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = appendText(dst, string(id))
		dst = append(dst, ':')
		found, exists := result.Documents[id]
		if exists {
			dst = appendEnvelope(dst, found)
		} else {
			dst = append(dst, "null"...)
		}
		if !a.left.take(dst[begin:]) {
			dst = dst[:begin]
			a.remaining = append(a.remaining, id)
			continue
		}
		first = false
		if exists {
			written = append(written, found)
		}
	}
	return dst, written, nil
}

// referenced are the distinct ids at the paths of the loaded documents, without
// those that were asked for anyway. Values that are no ids are passed over.
func referenced(r loadRequest, loaded []doc.Document) ([]doc.ID, error) {
	seen := make(map[doc.ID]bool, len(r.ids))
	for _, id := range r.ids {
		seen[id] = true
	}
	var ids []doc.ID
	for _, d := range loaded {
		for _, id := range references(d, r.include) {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	if len(ids) > mostIDs {
		return nil, tooManyIncluded(len(ids))
	}
	return ids, nil
}
