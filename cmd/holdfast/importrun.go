package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"holdfast/cmd/holdfast/internal/client"
)

const (
	// A bulk request has few enough lines and bytes to be answered long before a
	// gateway gives up on it.
	bulkLines = 200
	bulkBytes = 1 << 20
	// Where lines travel one by one, a batch only saves work around them.
	singleLines = 10
	// grace is how long requests that are on their way may take to end after an
	// interruption.
	grace = 10 * time.Second
	// readGrace is how long reading may take to notice an interruption.
	readGrace = 500 * time.Millisecond
	// saveEvery is how often the state is kept.
	saveEvery = time.Second
)

// batch is a piece of the input. No id is in it twice.
type batch struct {
	entries []entry
	end     position
	ids     map[string]bool
	bytes   int
	after   []chan struct{} // earlier batches that have one of its ids
	done    chan struct{}
	// Of each entry, once done is closed: its problem, or nil. present marks
	// those that were there already as they are.
	problems []json.RawMessage
	present  []bool
	err      error // the batch could not be carried through
}

// importer sends an input, several requests at once, and acknowledges it in
// order.
type importer struct {
	api         *client.Client
	shape       shape
	concurrency int
	resumed     bool // what comes first may have been sent before
	sleep       func(ctx context.Context, d time.Duration) error
	patience    time.Duration

	// commit is told of each batch that was carried through, in the order of the
	// input.
	commit func(*batch) error

	mu      sync.Mutex
	current map[string]*batch // by the ids on their way
	sent    int64             // the last line that may have been sent
}

// run sends everything. After an error, or when ctx ends, what was committed is
// still exact.
func (im *importer) run(ctx context.Context, in source) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	// Requests on their way are let end, for a while.
	flight, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	// A read of a pipe that nobody writes to cannot be interrupted. It is left
	// alone then.
	stuck, finished := make(chan struct{}), make(chan struct{})
	defer close(finished)
	go func() {
		for _, step := range []struct {
			after time.Duration
			do    func()
		}{{readGrace, func() { close(stuck) }}, {grace - readGrace, abort}} {
			select {
			case <-reading.Done():
			case <-finished:
				return
			}
			select {
			case <-time.After(step.after):
				step.do()
			case <-finished:
				return
			}
		}
	}()

	im.current = map[string]*batch{}
	ordered := make(chan *batch, 2*im.concurrency)
	work := make(chan *batch)
	readErr := make(chan error, 1)
	go func() {
		defer close(ordered)
		readErr <- im.read(in, func(b *batch) bool { return hand(reading, b, ordered, work) })
	}()
	var running sync.WaitGroup
	for range im.concurrency {
		running.Go(func() {
			for {
				select {
				case b := <-work:
					im.carry(reading, flight, b)
				case <-reading.Done():
					return
				}
			}
		})
	}
	err, ended := im.acknowledge(ordered, stuck, stop)
	stop() // the workers have nothing more to do
	running.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || !ended:
		return err
	}
	return <-readErr
}

// hand gives a batch to whoever carries and acknowledges it. It reports whether
// more are wanted.
func hand(reading context.Context, b *batch, ordered, work chan<- *batch) bool {
	select {
	case ordered <- b:
	case <-reading.Done():
		return false
	}
	select {
	case work <- b:
		return true
	case <-reading.Done():
		b.err = context.Canceled
		close(b.done)
		return false
	}
}

// acknowledge commits batches in their order. After the first failure it stops
// the others and commits nothing more. ended says that the input did.
func (im *importer) acknowledge(ordered <-chan *batch, stuck <-chan struct{}, stop func()) (err error, ended bool) {
	take := func(b *batch) {
		<-b.done
		im.release(b)
		if err == nil {
			if err = b.err; err == nil {
				err = im.commit(b)
			}
			if err != nil {
				stop()
			}
		}
	}
	for {
		select {
		case b, more := <-ordered:
			if !more {
				return err, true
			}
			take(b)
			continue
		case <-stuck:
		}
		for { // what there is
			select {
			case b, more := <-ordered:
				if !more {
					return err, true
				}
				take(b)
			default:
				return err, false
			}
		}
	}
}

// read cuts the input into batches until send says that it is enough.
func (im *importer) read(in source, send func(*batch) bool) error {
	most := bulkLines
	if im.shape.insert || im.shape.assigned() {
		most = singleLines
	}
	b := newBatch()
	give := func() bool {
		if b.end == (position{}) {
			return true // nothing was read into it
		}
		im.claim(b)
		ok := send(b)
		b = newBatch()
		return ok
	}
	for {
		r, err := in.next()
		if err != nil {
			sent := give()
			if err == io.EOF || !sent {
				return nil
			}
			return fmt.Errorf("reading the input: %w", err)
		}
		if len(r.text) == 0 {
			b.end = r.end
			continue
		}
		e := im.shape.entryOf(r)
		if b.ids[e.id] || len(b.entries) >= most || b.bytes+len(e.input) > bulkBytes && len(b.entries) > 0 {
			if !give() {
				return nil
			}
		}
		b.entries = append(b.entries, e)
		b.bytes += len(e.input)
		b.end = r.end
		if e.id != "" && e.refused == nil {
			b.ids[e.id] = true
		}
	}
}

func newBatch() *batch { return &batch{ids: map[string]bool{}, done: make(chan struct{})} }

// claim finds the earlier batches that a batch has to wait for: lines of one id
// are written in their order.
func (im *importer) claim(b *batch) {
	im.mu.Lock()
	defer im.mu.Unlock()
	waits := map[*batch]bool{}
	for id := range b.ids {
		if before := im.current[id]; before != nil && !waits[before] {
			waits[before] = true
			b.after = append(b.after, before.done)
		}
		im.current[id] = b
	}
}

func (im *importer) release(b *batch) {
	im.mu.Lock()
	defer im.mu.Unlock()
	for id := range b.ids {
		if im.current[id] == b {
			delete(im.current, id)
		}
	}
}

// carry carries a batch through. begin ends when no more batches are to be
// begun, flight when those on their way are to be given up.
func (im *importer) carry(begin, flight context.Context, b *batch) {
	defer close(b.done)
	for _, before := range b.after {
		<-before
	}
	if begin.Err() != nil {
		b.err = context.Canceled
		return
	}
	im.mu.Lock()
	im.sent = max(im.sent, b.end.Line)
	im.mu.Unlock()
	b.problems = make([]json.RawMessage, len(b.entries))
	b.present = make([]bool, len(b.entries))
	var open []int // entries to send
	for i, e := range b.entries {
		if e.refused != nil {
			b.problems[i] = e.refused
		} else {
			open = append(open, i)
		}
	}
	switch {
	case im.shape.assigned():
		b.err = im.each(begin, flight, b, open, im.create)
	case im.shape.insert:
		b.err = im.each(begin, flight, b, open, im.insert)
	default:
		b.err = im.bulk(begin, flight, b, open)
	}
}

// bulk writes entries through /bulk until each has an outcome.
func (im *importer) bulk(begin, flight context.Context, b *batch, open []int) error {
	begun := time.Now()
	for attempt := 0; len(open) > 0; attempt++ {
		lines := make([][]byte, len(open))
		for i, at := range open {
			lines[i] = b.entries[at].bulk
		}
		outcomes, _, err := im.api.Bulk(flight, lines)
		var p *client.Problem
		if errors.As(err, &p) && p.Status == 413 {
			if len(open) == 1 {
				b.problems[open[0]] = problemText(p)
				return nil
			}
			half := len(open) / 2
			if err := im.bulk(begin, flight, b, open[:half]); err != nil {
				return err
			}
			open = open[half:]
			continue
		}
		if err != nil {
			return err
		}
		var again []int
		var last *client.Problem
		for i, o := range outcomes {
			if len(o.Error) == 0 {
				continue
			}
			if p := client.ParseProblem(o.Error); passes(p) {
				again = append(again, open[i])
				last = p
				continue
			}
			b.problems[open[i]] = o.Error
		}
		if len(again) == len(open) && time.Since(begun) > im.patience {
			return fmt.Errorf("line %d: %w", b.entries[again[0]].line, last)
		}
		if len(again) < len(open) {
			attempt, begun = 0, time.Now() // it goes forward
		}
		if open = again; len(open) > 0 {
			if begin.Err() != nil {
				return context.Canceled
			}
			if err := im.sleep(flight, client.Backoff(attempt)); err != nil {
				return err
			}
		}
	}
	return nil
}

// passes reports whether a line may be accepted when it is sent again.
func passes(p *client.Problem) bool {
	switch p.Slug {
	case "throttled", "unavailable", "outcome-unknown":
		return true
	}
	return false
}

// each writes entries one by one.
func (im *importer) each(begin, flight context.Context, b *batch, open []int, write func(context.Context, *batch, int) error) error {
	for _, i := range open {
		// Documents under assigned ids are not sent twice, so such a batch is
		// carried to its end.
		if begin.Err() != nil && !im.shape.assigned() {
			return context.Canceled
		}
		err := write(flight, b, i)
		var p *client.Problem
		switch {
		case err == nil:
		case errors.As(err, &p) && aboutDocument(p):
			b.problems[i] = problemText(p)
		default:
			return fmt.Errorf("line %d: %w", b.entries[i].line, err)
		}
	}
	return nil
}

// aboutDocument reports whether a refusal is one of this document and no other.
func aboutDocument(p *client.Problem) bool {
	switch p.Status {
	case 400, 409, 412, 413, 422:
		return true
	}
	return false
}

// insert writes a document that is not there yet. Where an earlier attempt may
// have written it, one that is there and equal is it.
func (im *importer) insert(ctx context.Context, b *batch, i int) error {
	e := b.entries[i]
	_, err := im.api.Put(ctx, e.id, e.data, client.Condition{Absent: true}, true)
	var p *client.Problem
	if !errors.As(err, &p) || p.Slug != "version-conflict" || !p.Repeated && !im.resumed {
		return err
	}
	there, _, loadErr := im.api.Get(ctx, e.id, nil)
	if loadErr != nil {
		if client.IsSlug(loadErr, "not-found") {
			return err // it was there a moment ago, so somebody works on it
		}
		return loadErr
	}
	if !equalJSON(there, e.data) {
		return err
	}
	b.present[i] = true
	return nil
}

// create stores a document under an id that the server assigns. One of which
// nobody knows whether it happened is not repeated, which would make two.
func (im *importer) create(ctx context.Context, b *batch, i int) error {
	w, err := im.api.Create(ctx, im.shape.collection+"/", b.entries[i].data)
	if client.Unknown(err) {
		b.problems[i] = refusal(fmt.Errorf("nobody knows whether this document was created, and under which id: %w", err))
		return nil
	}
	b.entries[i].id = w.ID
	return err
}
