package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// maxBulkOperations is the most operations of one bulk request, so that its
// answer stays small whatever the documents' size.
const maxBulkOperations = 2000

// smallestBulk is the least that requests shrink to when OpenSearch finds them
// too large: about one of the largest documents.
const smallestBulk = 1 << 20

// Operation writes one version of a document, or its marker, to the index of a
// generation. The index keeps the newest version it was ever given; an equal
// one is written again.
type Operation struct {
	ID         doc.ID
	Version    doc.Version
	Generation collection.Generation
	Source     []byte // a Projection's; not changed and not kept
}

// OutcomeKind is what became of an operation.
type OutcomeKind int

// The kinds of outcome.
const (
	Applied     OutcomeKind = iota + 1 // the index has this version
	Stale                              // the index has a newer one: success as well
	Refused                            // the document is at fault; the same source will be refused again
	Environment                        // anything else; whether it was applied may be unknown; to be tried again later
)

func (k OutcomeKind) String() string {
	switch k {
	case Applied:
		return "applied"
	case Stale:
		return "stale"
	case Refused:
		return "refused"
	case Environment:
		return "environment"
	}
	return "outcome " + strconv.Itoa(int(k))
}

// Outcome is what became of one operation.
type Outcome struct {
	Kind         OutcomeKind
	Reason       string // for Refused and Environment; without any of the document's content
	Field        string // for Refused: the index field that was refused, where OpenSearch named it
	Status       int    // OpenSearch's status; 0 when there was no answer
	IndexMissing bool   // for Environment: the generation's index is not there
}

// Write carries the operations out and returns an outcome for each, in their
// order. It sends as many bulk requests as their bytes need, one after the
// other, and holds one request in memory besides the sources. When a request
// fails as a whole for a reason that the next would meet too, the operations
// that were not sent share its outcome. The error is non-nil only for
// operations that cannot be written down.
func (c *Client) Write(ctx context.Context, ops []Operation) ([]Outcome, error) {
	for i, op := range ops {
		if op.ID == "" || op.Version <= 0 || len(op.Source) == 0 {
			return nil, fmt.Errorf("operation %d (%s) lacks an id, a version or a source", i, op.ID)
		}
	}
	w := bulkWrite{client: c, ops: ops, outcomes: make([]Outcome, len(ops)), most: c.bulkBytes}
	return w.run(ctx), nil
}

// run sends all operations, one request after the other.
func (w *bulkWrite) run(ctx context.Context) []Outcome {
	for from := 0; from < len(w.ops); {
		to := w.cut(from)
		if broken := w.send(ctx, from, to); broken != nil {
			w.fill(to, len(w.ops), *broken)
			break
		}
		from = to
	}
	return w.outcomes
}

// bulkWrite is one call of Write or Erase.
type bulkWrite struct {
	client   *Client
	ops      []Operation
	erases   bool // the operations, which have no source then, take out
	outcomes []Outcome
	most     int // bytes of a request; halved when one is too large
}

func (w *bulkWrite) fill(from, to int, o Outcome) {
	for i := from; i < to; i++ {
		w.outcomes[i] = o
	}
}

// cut is the end of the request that begins at from. One operation always fits.
func (w *bulkWrite) cut(from int) (to int) {
	size := 0
	for to = from; to < len(w.ops) && to-from < maxBulkOperations; to++ {
		size += w.lineBytes(w.ops[to])
		if size > w.most && to > from {
			break
		}
	}
	return to
}

// lineBytes is about what an operation takes in a request.
func (w *bulkWrite) lineBytes(op Operation) int {
	return len(op.Source) + len(op.ID) + len(op.Generation.Family) + len(w.client.prefix) + 160
}

// send sends the operations from from to to and sets their outcomes. Where the
// request as a whole met something that has nothing to do with them, it returns
// the outcome of all that is not sent yet.
func (w *bulkWrite) send(ctx context.Context, from, to int) (broken *Outcome) {
	a, err := w.client.perform(ctx, http.MethodPost,
		"/_bulk?filter_path=items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by", w.body(from, to))
	if err != nil {
		o := Outcome{Kind: Environment, Reason: "opensearch could not be reached"}
		w.client.log.WarnContext(ctx, "bulk request failed", "operations", to-from, "error", err)
		w.fill(from, to, o)
		return &o
	}
	f := a.failed()
	if f == nil {
		w.take(a, from, to)
		return nil
	}
	w.client.log.WarnContext(ctx, "bulk request refused", "operations", to-from, "status", f.status, "type", f.kind)
	switch {
	case f.status == http.StatusRequestEntityTooLarge, f.status == http.StatusBadRequest && !aboutCluster(f.kind, f.reason):
		// Too large, or something in it that OpenSearch cannot read at all: the
		// halves tell which operation it is.
		if f.status == http.StatusRequestEntityTooLarge {
			w.most = max(w.most/2, smallestBulk)
		}
		if to-from > 1 {
			middle := from + (to-from)/2
			if broken = w.send(ctx, from, middle); broken != nil {
				w.fill(middle, to, *broken)
				return broken
			}
			return w.send(ctx, middle, to)
		}
		o := Outcome{Kind: Refused, Status: f.status, Reason: "the request with this document alone was refused: " + f.kind}
		if f.status == http.StatusRequestEntityTooLarge {
			o.Reason = "the document's index form is larger than a request may be"
		}
		w.fill(from, to, o)
		return nil
	}
	o := Outcome{Kind: Environment, Status: f.status, Reason: "opensearch refused the request: " + f.kind}
	w.fill(from, to, o)
	return &o
}

// body writes the request. Its bytes are new each time, because the transport
// may still read them when the answer is already there.
func (w *bulkWrite) body(from, to int) []byte {
	size := 0
	for _, op := range w.ops[from:to] {
		size += w.lineBytes(op)
	}
	action := `{"index":{"_index":"`
	if w.erases {
		action = `{"delete":{"_index":"`
	}
	body := make([]byte, 0, size)
	for _, op := range w.ops[from:to] {
		body = append(body, action...)
		body = append(body, w.client.IndexName(op.Generation)...)
		body = append(body, `","_id":`...)
		body = value.AppendString(body, string(op.ID))
		body = append(body, `,"version_type":"external_gte","version":`...)
		body = strconv.AppendInt(body, int64(op.Version), 10)
		body = append(body, "}}\n"...)
		if w.erases {
			continue
		}
		body = append(body, op.Source...)
		body = append(body, '\n')
	}
	return body
}

// bulkItem is the answer about one operation.
type bulkItem struct {
	Index  *bulkResult `json:"index"`
	Delete *bulkResult `json:"delete"`
}

type bulkResult struct {
	Status int          `json:"status"`
	Error  *engineError `json:"error"`
}

// take reads the items of an answer. What it does not tell, because it is cut
// short or garbled, stays unknown.
func (w *bulkWrite) take(a answer, from, to int) {
	w.fill(from, to, Outcome{Kind: Environment, Status: a.status, Reason: "the answer of opensearch did not tell"})
	items := json.NewDecoder(bytes.NewReader(a.body))
	for _, want := range []json.Token{json.Delim('{'), "items", json.Delim('[')} {
		if token, err := items.Token(); err != nil || token != want {
			return
		}
	}
	for i := from; i < to && items.More(); i++ {
		var item bulkItem
		if err := items.Decode(&item); err != nil {
			return
		}
		switch {
		case item.Index != nil:
			w.outcomes[i] = outcomeOf(*item.Index)
		case item.Delete != nil && item.Delete.Status == http.StatusNotFound && item.Delete.Error == nil:
			w.outcomes[i] = Outcome{Kind: Applied, Status: item.Delete.Status} // there was nothing
		case item.Delete != nil:
			w.outcomes[i] = outcomeOf(*item.Delete)
		default:
			w.outcomes[i] = outcomeOf(bulkResult{})
		}
	}
}
