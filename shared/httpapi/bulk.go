package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"
	"unicode/utf8"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

const (
	// mostLines is the most lines of one bulk request that are not blank.
	mostLines = 10_000
	// bulkWriters is how many lines are written to the table at once.
	bulkWriters = 12
	// bulkWindow is how many lines are read ahead of the oldest unanswered one.
	bulkWindow = 2 * bulkWriters
	// bulkReserve is the time before the deadline at which no more lines are
	// tried, so that those begun can end and the answer can be sent.
	bulkReserve = 3 * time.Second
	// untriedBytes is more than the line of the answer takes that says a line
	// was not tried.
	untriedBytes = 256
	// longestLine is more than any line of the answer takes: an id, a pointer and
	// a detail, all of them quotes.
	longestLine = 4*doc.MaxIDBytes + 2*longestPointer + 2*longestDetail + 1024
)

// writeBulk answers POST /bulk. Lines are written several at once, those of one
// id in their order. Once time or the answer's size is used up the remaining
// lines are answered as not tried, so that every line has an answer.
func (d *documents) writeBulk(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	if err := wantMediaType(c.Header, typeNDJSON); err != nil {
		return nil, err
	}
	lines := 0
	for line := range bytes.Lines(c.Body) {
		if !blank(line) {
			lines++
		}
	}
	if lines > mostLines {
		return nil, doc.Errorf(doc.BatchTooLarge, "a bulk request has at most %d lines", mostLines).
			With("limit", mostLines).With("actual", lines)
	}
	b := &bulk{
		documents: d,
		requestID: c.ID,
		slots:     make(chan struct{}, bulkWriters),
		latest:    map[doc.ID]*bulkLine{},
		left:      newBudget(1024 + lines*untriedBytes),
		written:   map[doc.ID]int{},
	}
	return b.run(ctx, c.Body), nil
}

// bulk is one bulk request being answered. Only the goroutine of run touches
// its fields; the writers touch their line.
type bulk struct {
	*documents
	requestID string
	slots     chan struct{}        // one per writer
	latest    map[doc.ID]*bulkLine // the newest line on an id among those in the window
	window    []*bulkLine          // begun and not answered, in order
	left      *budget
	full      bool // the answer has no more room

	out     []byte
	tokens  []doc.Written  // the newest write of each id
	written map[doc.ID]int // its place in tokens
}

// bulkLine is one line on its way. After done is closed, result and err are set.
type bulkLine struct {
	number int
	id     string // as it was read; "" when it could not be
	result doc.Written
	err    error
	done   chan struct{}
}

func (b *bulk) run(ctx context.Context, body []byte) *Response {
	number := 0
	for text := range bytes.Lines(body) {
		number++
		if blank(text) {
			continue
		}
		switch {
		case b.full:
			b.untried(number, "the answer is full")
		case b.late(ctx):
			b.untried(number, "time was up")
		default:
			b.begin(ctx, number, text)
		}
		for len(b.window) >= bulkWindow {
			b.answerOldest(ctx)
		}
	}
	for len(b.window) > 0 {
		b.answerOldest(ctx)
	}
	b.out = append(b.out, `{"token":`...)
	b.out = appendText(b.out, b.token(b.tokens))
	b.out = append(b.out, "}\n"...)
	return reply(http.StatusOK, typeNDJSON, b.out)
}

// late reports whether it is too late to begin another line.
func (b *bulk) late(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && deadline.Sub(b.now()) < bulkReserve
}

// untried answers a line that is not read. Its id is null: nobody looked.
func (b *bulk) untried(number int, why string) {
	line := &bulkLine{number: number, done: make(chan struct{})}
	line.err = doc.Errorf(doc.Unavailable, "not tried: %s; send this line again", why)
	close(line.done)
	b.window = append(b.window, line)
}

// begin reads a line and has it written.
func (b *bulk) begin(ctx context.Context, number int, text []byte) {
	line := &bulkLine{number: number, done: make(chan struct{})}
	b.window = append(b.window, line)
	id, write, err := b.read(line, text)
	if err != nil {
		line.err = err
		close(line.done)
		return
	}
	before := b.latest[id]
	b.latest[id] = line
	b.slots <- struct{}{}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				line.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			<-b.slots
			close(line.done)
		}()
		if before != nil {
			// It was begun earlier, so it has a slot of its own and will end.
			<-before.done
		}
		line.result, line.err = write(ctx)
	}()
}

// read makes a write of a line.
func (b *bulk) read(line *bulkLine, text []byte) (doc.ID, func(context.Context) (doc.Written, error), error) {
	// The line itself is one level around its document.
	v, err := value.Decode(text, value.MaxDepth+1)
	if err != nil {
		line.id = idOf(text, err)
		return "", nil, shallow(err, doc.InvalidRequest)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return "", nil, at(doc.Errorf(doc.InvalidRequest, "a line is a JSON object"), "")
	}
	name, ok := object["id"].(string)
	if !ok {
		return "", nil, at(doc.Errorf(doc.InvalidRequest, "id is a document id, a string"), "/id")
	}
	if len(name) <= doc.MaxIDBytes {
		line.id = name
	}
	if err := onlyMembers(object, doc.InvalidRequest, "", "id", "data", "delete"); err != nil {
		return "", nil, err
	}
	id, err := doc.ParseID(name)
	if err != nil {
		return "", nil, at(err, "/id")
	}
	data, hasData := object["data"]
	remove, hasRemove := object["delete"]
	switch {
	case hasData && hasRemove:
		return "", nil, at(doc.Errorf(doc.InvalidRequest, "a line has either data or delete"), "/delete")
	case hasRemove && remove != true:
		return "", nil, at(doc.Errorf(doc.InvalidRequest, "delete is true or left out"), "/delete")
	case hasRemove:
		return id, func(ctx context.Context) (doc.Written, error) {
			return b.store.Delete(ctx, id, doc.Condition{})
		}, nil
	case !hasData:
		return "", nil, at(doc.Errorf(doc.InvalidRequest, "a line has data, or delete: true"), "/data")
	}
	tree, ok := data.(map[string]any)
	if !ok {
		return "", nil, at(doc.Errorf(doc.NotAnObject, "a document is a JSON object"), "/data")
	}
	return id, func(ctx context.Context) (doc.Written, error) {
		return b.store.Put(ctx, id, tree, doc.Condition{})
	}, nil
}

// idOf is the id of a line that was refused for something else in it, so that
// the answer can name it; "" where the line is no JSON or the id is at fault.
func idOf(text []byte, refusal error) string {
	var e *doc.Error
	if errors.As(refusal, &e) && e.Members["pointer"] == "/id" || !utf8.Valid(text) {
		return ""
	}
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(members["id"], &id) != nil || len(id) > doc.MaxIDBytes {
		return ""
	}
	return id
}

// answerOldest waits for the oldest line and writes its answer.
func (b *bulk) answerOldest(ctx context.Context) {
	line := b.window[0]
	b.window = b.window[1:]
	<-line.done
	if b.latest[doc.ID(line.id)] == line {
		delete(b.latest, doc.ID(line.id))
	}
	begin := len(b.out)
	b.out = append(b.out, `{"line":`...)
	b.out = strconv.AppendInt(b.out, int64(line.number), 10)
	b.out = append(b.out, `,"id":`...)
	if line.id == "" {
		b.out = append(b.out, "null"...)
	} else {
		b.out = appendText(b.out, line.id)
	}
	if line.err != nil {
		b.out = append(b.out, `,"error":`...)
		b.out = b.problem(ctx, line.err).append(b.out)
	} else {
		b.out = append(b.out, `,"version":`...)
		b.out = appendVersion(b.out, line.result.Version)
		b.remember(line.result)
	}
	b.out = append(b.out, "}\n"...)

	// The place reserved for this line is free again, and what it really took is
	// gone: its text, and what its id adds to the token.
	b.left.answer += untriedBytes
	b.left.payload += 2 * untriedBytes
	took := b.left.take(b.out[begin:])
	b.left.answer -= tokenBytes(line)
	b.left.payload -= tokenBytes(line)
	// Lines in the window are begun and will need room.
	const margin = bulkWindow * longestLine
	if !took || b.left.answer < margin || b.left.payload < margin {
		b.full = true
	}
}

// tokenBytes is more than a written line adds to the token: its id and version,
// encoded as text.
func tokenBytes(line *bulkLine) int {
	if line.err != nil || line.result.Version == 0 {
		return 0
	}
	return (len(line.id) + 16) * 4 / 3
}

// problem makes the problem of a line. Its cause is logged where a request that
// failed so would have been.
func (b *bulk) problem(ctx context.Context, err error) problem {
	p := problemOf(writeError(err), b.requestID)
	if p.kind == doc.Internal {
		b.log.ErrorContext(ctx, "a line of a bulk request failed", "error", err)
	}
	return p
}

// remember keeps what the token is made of.
func (b *bulk) remember(w doc.Written) {
	if w.Version == 0 {
		return
	}
	if i, again := b.written[w.ID]; again {
		b.tokens[i] = w
		return
	}
	b.written[w.ID] = len(b.tokens)
	b.tokens = append(b.tokens, w)
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
