package repair_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/freshness"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// asked is what the change feed is given when a query waits as of now.
const asked = 500 * time.Millisecond

// asker asks queries that wait for everything as of now, as a function does that
// has answered others before.
type asker struct {
	r        *rig
	waiter   *freshness.Waiter
	reporter *freshness.Reporter
}

func (r *rig) asker() *asker {
	state := r.store.State()
	proofs := freshness.NewProofBook(state, state, r.index, nil)
	return &asker{
		r: r,
		waiter: freshness.NewWaiter(freshness.WaiterOptions{
			Index: r.index, Registry: state, Quarantine: state, Table: r.store, Feed: r.store, Proofs: proofs, Margin: asked,
		}),
		reporter: freshness.NewReporter(freshness.ReporterOptions{Queue: r.queue, Measures: state, Proofs: proofs}),
	}
}

// ask waits, lets something happen, searches, and tells what a client is told.
func (a *asker) ask(between func()) (freshness.Staleness, int) {
	a.r.t.Helper()
	ctx, users := a.r.t.Context(), []doc.Collection{"users"}
	all, err := a.r.store.State().Generations(ctx, collection.SharedFamily)
	if err != nil {
		a.r.t.Fatal(err)
	}
	g, ok := collection.Read(all)
	if !ok {
		a.r.t.Fatal("there is no index to be read")
	}
	waited, err := a.waiter.AsOfNow(ctx, users, nil, freshness.Patience{
		Timeout: 2 * asked, Partly: true, Read: map[doc.Collection]collection.Generation{"users": g},
	})
	if err != nil {
		a.r.t.Fatal(err)
	}
	if between != nil {
		between()
	}
	result, err := a.r.index.Search(ctx, search.Request{From: []search.Source{{Collection: "users", Generation: &g}}, Filter: filter.And{}, Limit: 1000})
	if err != nil {
		a.r.t.Fatal(err)
	}
	return a.reporter.Staleness(ctx, users, waited), len(result.Documents)
}

// However an index is lost and comes back, no answer takes it for the one that
// was proven, until repair has filled it again and proven that.
func TestALostIndexIsToldAtOnce(t *testing.T) {
	r := newRig(t)
	r.fill("users", 20)
	asks := r.asker()
	g := r.generation(collection.SharedFamily, 1)
	name := r.index.IndexName(g)
	lose := func() { r.request(http.MethodDelete, "/"+name, "") }
	remake := func() { // an indexer does, that has something to write
		r.signal(r.put("users/1", 1))
		r.drain()
	}
	copied := func(as string, more string) { // an empty index that looks the same
		var made map[string]struct{ Mappings json.RawMessage }
		if err := json.Unmarshal([]byte(r.request(http.MethodGet, "/"+name+"?filter_path=*.mappings", "")), &made); err != nil {
			t.Fatal(err)
		}
		lose()
		r.request(http.MethodPut, "/"+as, `{"mappings":`+string(made[name].Mappings)+more+`}`)
	}
	fresh := func() bool {
		if _, ok := r.proven(collection.SharedFamily, 1); !ok {
			return false
		}
		s, found := asks.ask(nil)
		return !s.Stale && s.ProvenThrough != nil && found == 20
	}
	for _, c := range []struct {
		what            string
		before, between func()
	}{
		{"it is gone", lose, nil},
		{"an indexer has made it again", func() { lose(); remake() }, nil},
		{"another tool has made it again", func() { copied(name, "") }, nil},
		{"another one is called by its name", func() { copied(r.prefix+"-other", `,"aliases":{"`+name+`":{}}`) }, nil},
		{"it goes before the search", nil, lose},
		{"it is made again before the search", nil, func() { lose(); remake() }},
	} {
		r.converges(fresh)
		if c.before != nil {
			c.before()
		}
		s, found := asks.ask(c.between)
		if !s.Stale || s.ProvenThrough != nil || found >= 20 {
			t.Errorf("%s: %d documents and %+v", c.what, found, s)
		}
		r.request(http.MethodDelete, "/"+r.prefix+"-other?ignore_unavailable=true", "")
	}
	r.converges(fresh)
}

// proving is a state that tells of a proof that was put.
type proving struct {
	repair.State
	put func(p store.Proof)
}

func (s proving) PutProof(ctx context.Context, p store.Proof) (bool, error) {
	ok, err := s.State.PutProof(ctx, p)
	if ok {
		s.put(p)
	}
	return ok, err
}

// An index that is lost between its proof and the moment when queries are to read
// it is not read: the one before has everything.
func TestALostIndexIsNotBegunToBeRead(t *testing.T) {
	r := newRig(t)
	r.declare(collection.Definition{Name: "orders", Index: collection.Own})
	r.fill("orders", 10)
	r.converges(func() bool { _, ok := r.proven("orders", 1); return ok })
	r.declare(collection.Definition{Name: "orders", Text: []string{"note"}})
	lost := 0
	losing := func(o *repair.Options) {
		o.State = proving{o.State, func(p store.Proof) {
			if g := r.generation("orders", p.Generation); p.Family == "orders" && g.Number == 2 && g.State == collection.Building && p.Through.After(g.Since) && lost < 2 {
				lost++
				r.request(http.MethodDelete, "/"+r.index.IndexName(g), "")
			}
		}}
	}
	r.converges(func() bool {
		if found := r.found("orders"); len(found) != 10 {
			t.Errorf("queries find %d documents", len(found))
		}
		all, err := r.store.State().Generations(t.Context(), "orders")
		return err == nil && len(all) == 2 && all[1].State == collection.Active
	}, losing)
	if lost != 2 {
		t.Errorf("it was lost %d times", lost)
	}
}
