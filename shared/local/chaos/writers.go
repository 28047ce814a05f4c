package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// What a round of a writer is made of: one bulk request, a load of some of what it
// wrote, and a single write that demands a version.
const (
	perRound    = 20   // new documents
	updateShare = 0.25 // changes beside each new document
	deleteShare = 0.1
	perLook     = 10 // documents that are loaded
	idleChanges = 4  // changes of a round when there is nothing new at the moment
	idlePause   = 150 * time.Millisecond
	failPause   = 400 * time.Millisecond
)

// markName is the member that makes the content of each write its own.
const markName = "chaos"

// intake hands documents out to writers, at the pace of the run.
type intake struct {
	source Source
	begin  time.Duration // when the import began
	over   time.Duration // how long it is to take

	mu   sync.Mutex
	next int
}

// take gives the numbers of new documents, as many as are due at an age.
func (in *intake) take(most int, age time.Duration) (numbers []int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	due := in.source.Len()
	if age -= in.begin; age < in.over {
		due = int(float64(due) * float64(age) / float64(in.over))
	}
	for ; in.next < due && len(numbers) < most; in.next++ {
		numbers = append(numbers, in.next)
	}
	return numbers
}

func (in *intake) empty() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.next >= in.source.Len()
}

// writer is one client.
type writer struct {
	*run
	intake *intake
	chance *rand.Rand
	again  []int // new documents that were not acknowledged yet
}

// work writes until all documents are in and nothing more is killed.
func (w *writer) work(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.stuck(); err != nil {
			return err
		}
		fresh := w.intake.take(perRound-len(w.again), w.age())
		batch := append(w.again, fresh...)
		w.again = nil
		if len(batch) == 0 && w.intake.empty() && w.calm.Load() {
			return nil
		}
		through, err := w.round(ctx, batch)
		switch {
		case err != nil:
			return err
		case !through:
			sleep(ctx, failPause)
		case len(batch) == 0:
			sleep(ctx, idlePause)
		}
	}
	return ctx.Err()
}

// line is a write on its way. number is that of a new document, else -1.
type line struct {
	write
	number int
	text   []byte
	final  bool // refused for what it is
}

// put makes a write of a document of the source, with a content of its own.
func (w *writer) put(n int) line {
	id, data := w.intake.source.Document(n)
	data = maps.Clone(data)
	data[markName] = json.Number(strconv.FormatInt(w.ledger.mark(), 10))
	text := value.Append([]byte(`{"id":`), string(id))
	text = append(value.Append(append(text, `,"data":`...), data), '}')
	return line{write: write{id: id, sum: value.Sum(data)}, number: -1, text: text}
}

func (w *writer) remove(n int) line {
	id, _ := w.intake.source.Document(n)
	return line{write: write{id: id, delete: true}, number: -1, text: append(value.Append([]byte(`{"id":`), string(id)), `,"delete":true}`...)}
}

// lines are the writes of a round: the new documents, with changes of others in
// between.
func (w *writer) lines(batch []int) (lines []line) {
	taken := map[doc.ID]bool{}
	add := func(l line) {
		if !taken[l.id] {
			taken[l.id] = true
			lines = append(lines, l)
		}
	}
	change := func(share float64, make func(int) line) {
		if w.chance.Float64() >= share {
			return
		}
		if n, ok := w.ledger.pick(w.chance); ok {
			add(make(n))
		}
	}
	for _, n := range batch {
		l := w.put(n)
		l.number = n
		add(l)
		change(updateShare, w.put)
		change(deleteShare, w.remove)
	}
	if len(batch) == 0 {
		for range idleChanges {
			change(1, w.put)
		}
		change(deleteShare*idleChanges, w.remove)
	}
	return lines
}

// round does one round. through tells whether all of its bulk request was
// acknowledged.
func (w *writer) round(ctx context.Context, batch []int) (through bool, err error) {
	lines := w.lines(batch)
	if len(lines) == 0 {
		return true, nil
	}
	through, err = w.bulk(ctx, lines)
	if err != nil {
		return through, err
	}
	w.look(ctx, lines[:min(len(lines), perLook)])
	return through, w.alone(ctx)
}

// look loads what was just written, and perhaps is written again by others, and
// notes what is shown. A load that fails shows nothing.
func (w *writer) look(ctx context.Context, lines []line) {
	ids := make([]doc.ID, len(lines))
	for i, l := range lines {
		ids[i] = l.id
	}
	begun := w.age()
	page, err := w.api.load(ctx, ids)
	if err != nil {
		return
	}
	for id, e := range page.Documents {
		s := sight{id: id, begun: begun}
		if e != nil {
			if s.held, err = e.held(); err != nil {
				s.sum = "none" // which nobody wrote
			}
			s.live = true
		}
		w.ledger.saw(s)
	}
}

// bulk writes lines by one request. through tells whether all of them were
// acknowledged.
func (w *writer) bulk(ctx context.Context, lines []line) (through bool, err error) {
	through = true
	texts := make([][]byte, len(lines))
	for i, l := range lines {
		texts[i] = l.text
	}
	begun := w.age()
	status, answer, err := w.api.send(ctx, http.MethodPost, "/bulk", http.Header{"Content-Type": {"application/x-ndjson"}}, bytes.Join(texts, []byte{'\n'}))
	ended := w.age()
	told := json.NewDecoder(bytes.NewReader(answer))
	for i := range lines {
		l := &lines[i]
		l.begun, l.ended = begun, ended
		if err == nil && status == http.StatusOK {
			l.told(told)
		} else {
			l.failed(status, answer, err)
		}
		if err := w.settle(l); err != nil {
			return false, err
		}
		through = through && l.outcome == acknowledged
	}
	return through, nil
}

// told reads what the answer says about the line. Where it says nothing the
// outcome stays unknown.
func (l *line) told(answer *json.Decoder) {
	var t struct {
		ID      doc.ID
		Version doc.Version
		Error   json.RawMessage
	}
	switch err := answer.Decode(&t); {
	case err != nil || t.ID != l.id:
		l.answer = "cut off"
	case t.Error != nil:
		l.refused(problem(t.Error))
	default:
		l.outcome, l.version = acknowledged, t.Version
	}
}

// failed notes the outcome of a request that was not answered with a success.
func (l *line) failed(status int, answer []byte, err error) {
	switch {
	case errors.As(err, new(unsent)):
		l.outcome, l.answer = refused, "nobody there"
	case err != nil:
		l.answer = "connection lost"
	case problem(answer) == "":
		l.answer = strconv.Itoa(status) + " of the gateway"
	default:
		l.refused(problem(answer))
	}
}

// refused notes a refusal of Holdfast's own. Of its kinds only those of lost
// answers and of errors inside leave open whether the write has happened.
func (l *line) refused(kind string) {
	l.answer, l.final = kind, false
	switch doc.Kind(kind) {
	case doc.OutcomeUnknown, doc.Internal:
	case doc.Throttled, doc.Unavailable, doc.VersionConflict:
		l.outcome = refused
	default:
		l.outcome, l.final = refused, true
	}
}

// settle notes the outcome of a line. The error is that of a document that will
// never be accepted.
func (w *writer) settle(l *line) error {
	w.ledger.note(l.write)
	if l.outcome == acknowledged {
		w.written.Store(int64(l.ended))
	}
	switch {
	case l.final:
		return fmt.Errorf("%s is refused: %s", l.id, l.answer)
	case l.number < 0:
	case l.outcome == acknowledged:
		w.ledger.imported(l.number)
	default: // as a careful client does
		w.again = append(w.again, l.number)
	}
	return nil
}

// alone changes a document under the condition that it is at the version that
// was acknowledged last.
func (w *writer) alone(ctx context.Context) error {
	n, ok := w.ledger.pick(w.chance)
	if !ok {
		return nil
	}
	l := w.put(n)
	if l.base = w.ledger.newest(l.id); l.base == 0 {
		return nil
	}
	_, body, _ := bytes.Cut(l.text, []byte(`,"data":`))
	header := http.Header{"If-Match": {`"` + strconv.FormatInt(int64(l.base), 10) + `"`}}
	l.begun = w.age()
	status, answer, err := w.api.send(ctx, http.MethodPut, "/docs?id="+url.QueryEscape(string(l.id)), header, body[:len(body)-1])
	l.ended = w.age()
	var t struct{ Version doc.Version }
	switch {
	case err != nil || status != http.StatusOK && status != http.StatusCreated:
		l.failed(status, answer, err)
	case json.Unmarshal(answer, &t) == nil && t.Version > 0:
		l.outcome, l.version = acknowledged, t.Version
	default:
		l.answer = "cut off"
	}
	return w.settle(&l)
}
