package sim

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/pipeline"
)

// Timeouts of the functions, and how many of them run at once.
const (
	functionTime = time.Minute
	consumers    = 2
)

// invoke runs one invocation of a function in its process, which ends with the
// function's time. It reports whether the process is still alive.
func (w *World) invoke(p *Process, timeout time.Duration, run func(ctx context.Context)) bool {
	done := make(chan bool, 1)
	p.kill = w.now().Add(timeout)
	w.work(func() {
		finished := false
		defer func() { done <- finished }()
		ctx, cancel := context.WithDeadline(context.Background(), p.kill)
		defer cancel()
		run(ctx)
		finished = true
	})
	return <-done
}

// container makes the process of a function, with a clock of its own.
func (w *World) container(name string) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.spawned[name]
	w.spawned[name]++
	p := &Process{w: w, name: fmt.Sprintf("%s.%d", name, n), mortal: true}
	p.rng = w.random(p.name)
	skew := time.Duration(p.rng.IntN(1_200_000)-600_000) * time.Millisecond
	if p.rng.IntN(2) == 0 {
		skew = time.Duration(p.rng.IntN(200)-100) * time.Millisecond
	}
	p.skew = &skew
	return p
}

// rest lets a poller sleep, through a pause of all functions if there is one.
func (w *World) rest(p *Process, d time.Duration) {
	p.sleep(d)
	for w.paused() {
		p.sleep(time.Minute * 10)
	}
}

// lane is the poller of one lane of the stream.
func (w *World) lane(p *Process, lane int, plant *Plant) {
	var host *Process
	var relay *pipeline.Relay
	for !w.stopping {
		w.rest(p, time.Duration(50+p.rng.IntN(400))*time.Millisecond)
		w.mu.Lock()
		n := 1 + p.rng.IntN(100)
		records := w.Table.Stream.batch(lane, n)
		w.mu.Unlock()
		if len(records) == 0 {
			p.await(w.Table.Stream.bells[lane], w.now().Add(time.Hour))
			continue
		}
		if host == nil {
			host = w.container(fmt.Sprintf("relay%d", lane))
			relay = newRelay(w, host, plant)
		}
		var failed []string
		var err error
		alive := w.invoke(host, functionTime, func(ctx context.Context) { failed, err = relay.Handle(ctx, records) })
		w.mu.Lock()
		switch {
		case !alive:
			host = nil
		case err != nil:
		case p.chance(w.rates.AgainRecord): // the poller lost its place
			w.faults["records again"]++
		case len(failed) > 0:
			w.Table.Stream.done(lane, len(records), failed[0])
		default:
			w.Table.Stream.done(lane, len(records), "")
		}
		w.mu.Unlock()
	}
}

func newRelay(w *World, p *Process, plant *Plant) *pipeline.Relay {
	return pipeline.NewRelay(pipeline.RelayOptions{
		Queue: plant.relayQueue(newQueuePort(w, p)), Adopter: plant.adopter(plant.store(newStore(w, p))), Now: p.Now,
	})
}

// consumer is a poller of the queue.
func (w *World) consumer(p *Process, plant *Plant) {
	bell := newBell()
	w.mu.Lock()
	w.Queue.bells = append(w.Queue.bells, bell)
	w.mu.Unlock()
	var host *Process
	var handle func(context.Context, []pipeline.Message) ([]string, error)
	for !w.stopping {
		w.rest(p, time.Duration(20+p.rng.IntN(300))*time.Millisecond)
		w.mu.Lock()
		messages := w.Queue.receive(p, 1+p.rng.IntN(10))
		until := w.now().Add(time.Hour)
		if next := w.Queue.nextVisible(); !next.IsZero() && next.Before(until) {
			until = next
		}
		w.mu.Unlock()
		if len(messages) == 0 {
			p.await(bell, until)
			continue
		}
		if host == nil {
			host = w.container(p.name)
			handle = plant.handler(w, w.indexer(host, plant))
		}
		var failed []string
		var err error
		alive := w.invoke(host, functionTime, func(ctx context.Context) { failed, err = handle(ctx, messages) })
		if !alive {
			host = nil
			continue
		}
		if err != nil {
			continue
		}
		again := map[string]bool{}
		for _, id := range failed {
			again[id] = true
		}
		w.mu.Lock()
		for _, m := range messages {
			if !again[m.ID] {
				w.Queue.ack(m.ID)
			}
		}
		w.mu.Unlock()
	}
}

// indexer makes an indexer whose invocations are looked at: where nothing of the
// environment failed, a poison document must not have kept back any other.
func (w *World) indexer(p *Process, plant *Plant) func(context.Context, []pipeline.Message) ([]string, error) {
	store := newStore(w, p)
	index := plant.index(newIndexPort(w, p))
	x := pipeline.NewIndexer(pipeline.IndexerOptions{
		Table: plant.table(store), Index: index, Ledger: plant.ledger(store.state), Queue: plant.indexerQueue(newQueuePort(w, p)),
		Generations: pipeline.NewGenerations(plant.registry(store.state), index, p.Now),
		SliceBytes:  2000, Now: p.Now, Jitter: p.rng.Float64,
	})
	return func(ctx context.Context, messages []pipeline.Message) ([]string, error) {
		before, lost := p.injured, w.lossCount
		report, failed := x.Index(ctx, messages)
		if p.injured == before && w.lossCount == lost && ctx.Err() == nil && w.now().Add(pipeline.DefaultMargin).Before(p.kill) && report.Requeued+report.Returned > 0 {
			w.violate(6, "%d signals went back although nothing failed: %+v", report.Requeued+report.Returned, report)
		}
		w.tell(p.name, "indexed %+v, failed %v", report, failed)
		return failed, nil
	}
}
