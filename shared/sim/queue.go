package sim

import (
	"strconv"
	"time"

	"holdfast/shared/pipeline"
)

// Properties of the queue, as the deployment sets them.
const (
	queueLife    = 14 * 24 * time.Hour
	visibility   = 360 * time.Second
	mostReceives = 10
)

// Queue is the model of a standard queue: every message at least once, in any
// order, hidden while it is worked on, moved to the dead letters when it was
// taken too often, gone after two weeks. Its methods are called with the world's
// lock held.
type Queue struct {
	w        *World
	next     int
	messages []*message
	Dead     []*message
	bells    []*bell
}

type message struct {
	id       string
	body     string
	sent     time.Time
	visible  time.Time
	receives int
	again    bool // comes once more after it was acknowledged
}

func newQueue(w *World) *Queue { return &Queue{w: w} }

// send puts a message on the queue.
func (q *Queue) send(p *Process, out pipeline.Outgoing) {
	now := q.w.now()
	// SQS counts delays in whole seconds.
	delay := min(out.Delay, pipeline.MaxDelay)
	delay = (delay + time.Second - 1) / time.Second * time.Second
	m := &message{id: strconv.Itoa(q.next), body: out.Body, sent: now, visible: now.Add(delay)}
	q.next++
	if p != nil && !p.immune {
		f := &q.w.rates
		switch {
		case p.chance(f.DropMessage):
			q.w.faults["message dropped"]++
			q.w.note("queue", "loses a message")
			return
		case p.chance(f.LateMessage):
			q.w.faults["message late"]++
			m.visible = m.visible.Add(time.Duration(p.rng.Int64N(int64(f.LateMost))))
		}
		m.again = p.chance(f.AgainMessage)
	}
	q.messages = append(q.messages, m)
	for _, b := range q.bells {
		q.w.rung(b)
	}
}

// receive takes up to n messages in no particular order.
func (q *Queue) receive(p *Process, n int) []pipeline.Message {
	now := q.w.now()
	var ready []*message
	kept := q.messages[:0]
	for _, m := range q.messages {
		switch {
		case now.Sub(m.sent) > queueLife:
			q.w.faults["message expired"]++
			continue
		case m.visible.After(now):
		case m.receives >= mostReceives:
			q.Dead = append(q.Dead, m)
			continue
		default:
			ready = append(ready, m)
		}
		kept = append(kept, m)
	}
	clear(q.messages[len(kept):])
	q.messages = kept
	if p != nil && len(ready) > 1 {
		p.rng.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
	}
	var taken []pipeline.Message
	for _, m := range ready[:min(n, len(ready))] {
		m.receives++
		m.visible = now.Add(visibility)
		taken = append(taken, pipeline.Message{ID: m.id, Body: m.body, Sent: m.sent, Receives: m.receives})
	}
	return taken
}

// ack acknowledges a message. One of which there is a second copy comes again.
func (q *Queue) ack(id string) {
	for i, m := range q.messages {
		if m.id != id {
			continue
		}
		if m.again {
			m.again = false
			m.visible = q.w.now().Add(time.Second)
			q.w.faults["message again"]++
			return
		}
		q.messages = append(q.messages[:i], q.messages[i+1:]...)
		return
	}
}

// redrive moves the dead letters back.
func (q *Queue) redrive() int {
	n := len(q.Dead)
	for _, m := range q.Dead {
		m.receives, m.visible, m.sent = 0, q.w.now(), q.w.now()
		q.messages = append(q.messages, m)
	}
	q.Dead = nil
	for _, b := range q.bells {
		q.w.rung(b)
	}
	return n
}

// nextVisible is when the next message can be taken; zero when there is none.
func (q *Queue) nextVisible() time.Time {
	var next time.Time
	for _, m := range q.messages {
		if next.IsZero() || m.visible.Before(next) {
			next = m.visible
		}
	}
	return next
}
