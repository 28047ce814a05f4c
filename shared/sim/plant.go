package sim

import (
	"context"

	"holdfast/shared/freshness"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/pipeline"
)

// Handler is what the poller of the queue calls.
type Handler = func(context.Context, []pipeline.Message) ([]string, error)

// Plant wraps what production code is given, so that tests can plant a fault
// there and see that it is found. Nil functions wrap nothing.
type Plant struct {
	RelayQueue   func(pipeline.Sender) pipeline.Sender
	IndexerQueue func(pipeline.Sender) pipeline.Sender
	Adopter      func(pipeline.Adopter) pipeline.Adopter
	Table        func(pipeline.Table) pipeline.Table
	Index        func(pipeline.Index) pipeline.Index
	Ledger       func(pipeline.Ledger) pipeline.Ledger
	Registry     func(pipeline.Registry) pipeline.Registry
	Handler      func(*World, Handler) Handler
	Store        func(*Store)
	Repair       func(*repair.Options)
	Waiter       func(*freshness.WaiterOptions)
	Reporter     func(*freshness.ReporterOptions)
	Engines      func(*World) // how an engine is set up otherwise
}

func wrap[T any](f func(T) T, x T) T {
	if f == nil {
		return x
	}
	return f(x)
}

func (p *Plant) relayQueue(q pipeline.Sender) pipeline.Sender   { return wrap(p.RelayQueue, q) }
func (p *Plant) indexerQueue(q pipeline.Sender) pipeline.Sender { return wrap(p.IndexerQueue, q) }
func (p *Plant) adopter(a pipeline.Adopter) pipeline.Adopter    { return wrap(p.Adopter, a) }
func (p *Plant) table(t pipeline.Table) pipeline.Table          { return wrap(p.Table, t) }
func (p *Plant) index(x pipeline.Index) pipeline.Index          { return wrap(p.Index, x) }
func (p *Plant) ledger(l pipeline.Ledger) pipeline.Ledger       { return wrap(p.Ledger, l) }
func (p *Plant) registry(r pipeline.Registry) pipeline.Registry { return wrap(p.Registry, r) }

func (p *Plant) handler(w *World, h Handler) Handler {
	if p.Handler == nil {
		return h
	}
	return p.Handler(w, h)
}

func (p *Plant) repair(o *repair.Options) {
	if p.Repair != nil {
		p.Repair(o)
	}
}

func (p *Plant) waiter(o *freshness.WaiterOptions) {
	if p.Waiter != nil {
		p.Waiter(o)
	}
}

func (p *Plant) reporter(o *freshness.ReporterOptions) {
	if p.Reporter != nil {
		p.Reporter(o)
	}
}

func (p *Plant) store(s *Store) *Store {
	if p.Store != nil {
		p.Store(s)
	}
	return s
}
