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
	// longestLine is more than any line of the answer takes: an id, a pointer and
	// a detail, all of them quotes.
	longestLine = 4*doc.MaxIDBytes + 2*longestPointer + 2*longestDetail + 1024
	// windowBytes is what the lines may take that are begun and not answered.
	windowBytes = bulkWindow * longestLine
)

// untriedSize is more than the line of the answer takes that says a line was not
// tried, without its id.
var untriedSize = size{answer: 192, payload: 240}

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
		left:      newBudget(1024),
		written:   map[doc.ID]int{},
	}
	b.reserve(c.Body, lines)
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
	names     []size // what the ids of the lines that are not blank take of the answer; zero where there was no room to name them
	full      bool   // the answer has no more room

	out     []byte
	tokens  []doc.Written  // the newest write of each id
	written map[doc.ID]int // its place in tokens
}

// bulkLine is one line on its way. After done is closed, result and err are set.
type bulkLine struct {
	number int
	id     string // as it was read; "" when it could not be
	kept   size   // what was reserved for its answer
	result doc.Written
	err    error
	done   chan struct{}
}

// reserve keeps room to answer every line as not tried, with its id. The ids of
// a request may be longer than an answer: half of its room is for what is
// written.
func (b *bulk) reserve(body []byte, lines int) {
	b.names = make([]size, 0, lines)
	*b.left = b.left.less(size{answer: lines * untriedSize.answer, payload: lines * untriedSize.payload})
	half := budget{answer: b.left.answer / 2, payload: b.left.payload / 2}
	for text := range bytes.Lines(body) {
		if blank(text) {
			continue
		}
		var name size
		if id := firstID(text); id != "" {
			name = sizeOf(appendText(nil, id))
		}
		if !half.has(name) {
			name = size{}
		}
		half, *b.left = half.less(name), b.left.less(name)
		b.names = append(b.names, name)
	}
}

func (b *bulk) run(ctx context.Context, body []byte) *Response {
	number, filled := 0, -1
	for text := range bytes.Lines(body) {
		number++
		if blank(text) {
			continue
		}
		filled++
		line := &bulkLine{number: number, kept: untriedSize.plus(b.names[filled]), done: make(chan struct{})}
		b.window = append(b.window, line)
		switch {
		case b.full:
			b.untried(line, text, "the answer is full")
		case b.late(ctx):
			b.untried(line, text, "time was up")
		default:
			b.begin(ctx, line, text)
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

// untried answers a line that is not tried. Nothing of it is read but the id,
// which is left out only where the ids of the request are longer than an answer.
func (b *bulk) untried(line *bulkLine, text []byte, why string) {
	line.err = doc.Errorf(doc.Unavailable, "not tried: %s; send this line again", why)
	close(line.done)
	id := firstID(text)
	if id == "" {
		return
	}
	if line.kept == untriedSize {
		name := sizeOf(appendText(nil, id))
		if !b.left.less(size{answer: windowBytes, payload: windowBytes}).has(name) {
			return
		}
		*b.left = b.left.less(name)
		line.kept = line.kept.plus(name)
	}
	line.id = id
}

// begin reads a line and has it written.
func (b *bulk) begin(ctx context.Context, line *bulkLine, text []byte) {
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

// firstID is the id of a line of which nothing behind the id is read; "" where it
// has none that can be told.
func firstID(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		var member json.RawMessage
		if d.Decode(&member) != nil {
			return ""
		}
		if name == "id" {
			v, err := value.Decode(member, 1)
			id, ok := v.(string)
			if err != nil || !ok || len(id) > doc.MaxIDBytes {
				return ""
			}
			return id
		}
	}
	return ""
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
	b.left.answer += line.kept.answer
	b.left.payload += line.kept.payload
	took := b.left.take(b.out[begin:])
	b.left.answer -= tokenBytes(line)
	b.left.payload -= tokenBytes(line)
	// Lines in the window are begun and will need room.
	if !took || b.left.answer < windowBytes || b.left.payload < windowBytes {
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
