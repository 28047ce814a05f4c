package local

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// streamEntry is one record on its way through a lane.
type streamEntry struct {
	record events.DynamoDBEventRecord
	bytes  int
	read   time.Time
	done   bool // guarded by the work's mutex
}

func (e *streamEntry) sequence() string { return e.record.Change.SequenceNumber }

// shardWork is the records of a shard between being read and being done. Each
// lane calls the function with one batch at a time. The checkpoint follows the
// last record before which nothing is open.
type shardWork struct {
	p     *streamPoller
	shard string
	lanes []*lane

	mu      sync.Mutex
	open    []*streamEntry // in the order of the stream, from the first that is not done
	bytes   int            // of all that are open
	less    chan struct{}  // a sign that something was done
	pending int            // not done, of those in open
}

// lane holds what waits for one sequence of invocations.
type lane struct {
	mu    sync.Mutex
	queue []*streamEntry
	more  chan struct{}
}

func newShardWork(p *streamPoller, shard string) *shardWork {
	return &shardWork{p: p, shard: shard, less: make(chan struct{}, 1)}
}

// start begins n lanes. The returned function waits for them; they end with
// ctx, an invocation that is under way first.
func (w *shardWork) start(ctx context.Context, n int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range n {
		l := &lane{more: make(chan struct{}, 1)}
		w.lanes = append(w.lanes, l)
		running.Go(func() {
			for batch := w.next(ctx, l); batch != nil; batch = w.next(ctx, l) {
				w.deliver(ctx, batch)
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// add takes records over in their order and answers with their size. Then it
// waits while too much is open, so a slow function slows the reading.
func (w *shardWork) add(ctx context.Context, records []types.Record) (bytes int) {
	entries := make([]*streamEntry, len(records))
	ofLane := make([][]*streamEntry, len(w.lanes))
	left := 0
	for i, r := range records {
		e := &streamEntry{
			record: eventRecord(r, w.p.eventARN, r.EventName == types.OperationTypeRemove && w.p.removedTTL != nil && w.p.removedTTL(r)),
			read:   w.p.now(), done: changesNothing(r),
		}
		e.bytes = eventBytes(e.record)
		bytes += e.bytes
		entries[i] = e
		if !e.done {
			n := laneOf(recordKey(r.Dynamodb.Keys), len(w.lanes))
			ofLane[n] = append(ofLane[n], e)
			left++
		}
	}
	w.mu.Lock()
	w.open = append(w.open, entries...)
	w.bytes += bytes
	w.pending += left
	full := w.pending >= pendingRecords || w.bytes >= pendingBytes
	w.mu.Unlock()
	if left < len(entries) {
		w.finish(nil) // the checkpoint may pass those that change nothing
	}
	for n, l := range w.lanes {
		l.add(ofLane[n])
	}
	if full {
		w.awaitRoom(ctx)
	}
	return bytes
}

// add queues records, all at once, so that batches are not cut by how fast
// they are handed over.
func (l *lane) add(entries []*streamEntry) {
	if len(entries) == 0 {
		return
	}
	l.mu.Lock()
	l.queue = append(l.queue, entries...)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (w *shardWork) awaitRoom(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		room := w.pending < pendingRecords/2 && w.bytes < pendingBytes/2 || w.pending == 0
		w.mu.Unlock()
		if room {
			return
		}
		select {
		case <-w.less:
		case <-ctx.Done():
		}
	}
}

// drain waits until all is done; false: ctx ended before.
func (w *shardWork) drain(ctx context.Context) bool {
	for {
		w.mu.Lock()
		left := w.pending
		w.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-w.less:
		case <-ctx.Done():
			return false
		}
	}
}

// finish marks records as done and moves the checkpoint.
func (w *shardWork) finish(done []*streamEntry) {
	w.mu.Lock()
	for _, e := range done {
		e.done = true
	}
	w.pending -= len(done)
	n := 0
	for n < len(w.open) && w.open[n].done {
		w.bytes -= w.open[n].bytes
		n++
	}
	if n > 0 {
		after := w.open[n-1].sequence()
		w.open = slices.Delete(w.open, 0, n)
		w.p.save(w.shard, shardPoint{After: after}) // under the mutex: checkpoints never go back
	}
	w.mu.Unlock()
	select {
	case w.less <- struct{}{}:
	default:
	}
}

// next is the next batch of a lane; nil when ctx has ended.
func (w *shardWork) next(ctx context.Context, l *lane) []*streamEntry {
	most := w.p.mapping.BatchSize
	if most <= 0 {
		most = 100
	}
	for ctx.Err() == nil {
		l.mu.Lock()
		n, bytes := 0, 0
		for n < len(l.queue) && n < most && (n == 0 || bytes+l.queue[n].bytes <= maxPayload) {
			bytes += l.queue[n].bytes
			n++
		}
		// A batch is ready when it is full or has been gathered long enough.
		ready := n > 0 && (n == most || n < len(l.queue))
		var wait time.Duration
		if n > 0 && !ready {
			wait = w.p.mapping.Window - w.p.now().Sub(l.queue[0].read)
			ready = wait <= 0
		}
		if ready {
			batch := slices.Clone(l.queue[:n])
			l.queue = slices.Delete(l.queue, 0, n)
			l.mu.Unlock()
			return batch
		}
		l.mu.Unlock()
		if n == 0 {
			select {
			case <-l.more:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-l.more:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// deliver calls the function until every record of the batch is done or given
// up, or ctx ends.
func (w *shardWork) deliver(ctx context.Context, batch []*streamEntry) {
	m := w.p.mapping
	retry := backoff{first: retryFirst, last: retryLast}
	tries, requestID := 0, ""
	for len(batch) > 0 && ctx.Err() == nil {
		if old := w.tooOld(batch); old > 0 {
			if !w.giveUp(ctx, batch[:old], "RecordAgeExceeded", requestID, tries) {
				return
			}
			batch = batch[old:]
			continue
		}
		requestID = newRequestID()
		tries++
		handled, err := w.call(ctx, batch, requestID)
		if handled > 0 {
			w.finish(batch[:handled])
			batch = batch[handled:]
			tries = 0
			retry.reset()
		}
		if len(batch) == 0 {
			return
		}
		if err != nil {
			w.p.log.Warn("a batch of a stream failed and will be tried again", "function", m.Function.Name, "records", len(batch), "tries", tries, "error", err)
		}
		// A function that says where it failed needs no search for the place.
		if m.Bisect && len(batch) > 1 && err != nil {
			if !sleep(ctx, retry.pause()) {
				return
			}
			half := len(batch) / 2
			w.deliver(ctx, batch[:half])
			w.deliver(ctx, batch[half:])
			return
		}
		if m.Retries >= 0 && tries > m.Retries {
			if !w.giveUp(ctx, batch, "RetryAttemptsExhausted", requestID, tries) {
				return
			}
			return
		}
		sleep(ctx, retry.pause())
	}
}

// call invokes the function once and answers with how many records, from the
// first on, were handled.
func (w *shardWork) call(ctx context.Context, batch []*streamEntry, requestID string) (handled int, err error) {
	m := w.p.mapping
	event := events.DynamoDBEvent{Records: make([]events.DynamoDBEventRecord, len(batch))}
	for i, e := range batch {
		event.Records[i] = e.record
	}
	answer, err := invoke(ctx, m.Function, requestID, w.p.log, m.Handler, event)
	if err != nil {
		return 0, err
	}
	if !m.Partial || len(answer.BatchItemFailures) == 0 {
		return len(batch), nil
	}
	handled = len(batch)
	for _, f := range answer.BatchItemFailures {
		i := slices.IndexFunc(batch, func(e *streamEntry) bool { return e.sequence() == f.ItemIdentifier })
		// An identifier that is not in the batch fails all of it, as on AWS.
		handled = min(handled, max(0, i))
	}
	return handled, nil
}

// tooOld is how many records from the first on are older than they may be.
func (w *shardWork) tooOld(batch []*streamEntry) int {
	if w.p.mapping.MaxAge <= 0 {
		return 0
	}
	n := 0
	for n < len(batch) && w.p.now().Sub(batch[n].record.Change.ApproximateCreationDateTime.Time) > w.p.mapping.MaxAge {
		n++
	}
	return n
}

// giveUp tells the destination on failure, until it has heard, and counts the
// records as done. False: ctx ended before.
func (w *shardWork) giveUp(ctx context.Context, batch []*streamEntry, reason, requestID string, tries int) bool {
	m := w.p.mapping
	first, last := batch[0], batch[len(batch)-1]
	given := GivenUp{
		RequestID: requestID, Reason: reason, Invocations: tries, Function: m.Function.arn(), Stream: w.p.eventARN, Shard: w.shard,
		First: first.sequence(), Last: last.sequence(), Records: len(batch),
		Arrived:     first.record.Change.ApproximateCreationDateTime.Time,
		LastArrived: last.record.Change.ApproximateCreationDateTime.Time,
	}
	retry := backoff{first: retryFirst, last: retryLast}
	for m.GiveUp != nil {
		err := m.GiveUp(ctx, given)
		if err == nil {
			break
		}
		w.p.log.Error("the destination on failure cannot be told", "function", m.Function.Name, "error", err)
		if !sleep(ctx, retry.pause()) {
			return false
		}
	}
	w.p.log.Error("records of a stream were given up", "function", m.Function.Name, "reason", reason,
		"shard", w.shard, "first", given.First, "last", given.Last, "records", given.Records)
	w.finish(batch)
	return true
}
