package sim

import (
	"time"

	"holdfast/shared/pipeline"
)

// The engines as one who is no process of a run uses them: without faults and
// without delay.

// Store is a store over the table.
func (w *World) Store() *Store { return newStore(w, nil) }

// IndexPort is a client of the search engine.
func (w *World) IndexPort() *IndexPort { return newIndexPort(w, nil) }

// QueuePort is a client of the queue.
func (w *World) QueuePort() *QueuePort { return newQueuePort(w, nil) }

// Receive takes up to n messages from the queue.
func (w *World) Receive(n int) []pipeline.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Queue.receive(nil, n)
}

// Ack acknowledges a message.
func (w *World) Ack(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Queue.ack(id)
}

// ReapAfter sets how long after its end an item is still in the table.
func (w *World) ReapAfter(d time.Duration) { w.Table.reapDelay = d }
