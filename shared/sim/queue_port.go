package sim

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"holdfast/shared/pipeline"
)

// QueuePort is one process's client of the queue.
type QueuePort struct {
	w *World
	p *Process
}

func newQueuePort(w *World, p *Process) *QueuePort { return &QueuePort{w: w, p: p} }

const (
	callEntries = 10
	callBytes   = 256 << 10
)

var errBody = errors.New("the queue refuses the body")

// Send sends messages in calls of ten, each entry with an outcome of its own.
func (q *QueuePort) Send(ctx context.Context, out []pipeline.Outgoing) []error {
	errs := make([]error, len(out))
	bad := false
	for start := 0; start < len(out); {
		end, size := start, 0
		for end < len(out) && end-start < callEntries && (end == start || size+len(out[end].Body) <= callBytes) {
			size += len(out[end].Body)
			end++
		}
		v := q.w.call(ctx, q.p, QueueEngine, "send", true, func() {
			for i := start; i < end; i++ {
				errs[i] = q.entry(out[i])
				bad = bad || errs[i] != nil
			}
		})
		if v != told {
			bad = true
			for i := start; i < end; i++ {
				errs[i] = fmt.Errorf("send messages:%s", v)
			}
		}
		start = end
	}
	if !bad {
		return nil
	}
	return errs
}

func (q *QueuePort) entry(m pipeline.Outgoing) error {
	if !sendable(m.Body) {
		return errBody
	}
	if q.p != nil && !q.p.immune && q.p.chance(q.w.rates.Fail[QueueEngine]) {
		q.p.injured++
		q.w.faults["queue entry"]++
		return errEngine
	}
	q.w.Queue.send(q.p, m)
	return nil
}

// sendable tells what SQS takes: the characters of XML.
func sendable(body string) bool {
	if body == "" || !utf8.ValidString(body) {
		return false
	}
	for _, r := range body {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

// Depth is how many messages there are, waiting, taken and delayed.
func (q *QueuePort) Depth(ctx context.Context) (n int, err error) {
	v := q.w.call(ctx, q.p, QueueEngine, "depth", false, func() { n = len(q.w.Queue.messages) })
	if v != told {
		return 0, fmt.Errorf("read the queue's depth:%s", v)
	}
	return n, nil
}
