package repair_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/pipeline"
	"holdfast/shared/store"
)

// A deployment over a table that is full already indexes all of it, and proves
// it.
func TestFillsAnIndexFromATable(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		r.put(doc.ID("users/"+string(rune('a'+i))), i)
	}
	w := r.put("users/gone", 1)
	if _, err := r.store.Delete(t.Context(), w.ID, doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	// Nobody told an indexer about any of them, nor about those of a collection
	// with an index of its own.
	if _, err := r.store.State().PutDefinition(t.Context(), collection.Definition{Name: "orders", Index: collection.Own}, 0); err != nil {
		t.Fatal(err)
	}
	r.put("orders/1", 1)
	time.Sleep(margin)
	silent := func(o *repair.Options) { o.Table = r.store } // its canaries are lost too
	r.converges(func() bool { _, ok := r.proven("orders", 1); return ok }, silent)
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	if found := r.found("orders"); len(found) != 1 {
		t.Errorf("%v", found)
	}
	if found := r.found("users"); len(found) != 30 {
		t.Errorf("%d documents are found", len(found))
	}
	report := r.run(repair.Prove)
	for _, c := range report.Collections {
		if c.Name == "users" && (c.Indexed != 30 || c.Documents == nil || *c.Documents != 30) {
			t.Errorf("%+v", c)
		}
	}
	if report.LastPass == nil || report.LastPass.Checked < 32 || report.LastPass.Drift != 0 || report.FeedLag == nil {
		t.Errorf("%+v %+v", report, report.LastPass)
	}
}

// scanning counts how often a part of the table is read.
type scanning struct {
	repair.Table
	scans int
	first func() // before the first of them
}

func (s *scanning) Scan(ctx context.Context, q store.ScanQuery) (store.ScanPage, error) {
	if s.scans++; s.scans == 1 && s.first != nil {
		s.first()
	}
	return s.Table.Scan(ctx, q)
}

// A run in which an index begins, by itself or by an indexer meanwhile, does not
// spend its time on comparisons that cannot prove anything: after the one that
// finds the documents and the one that finds the index filled, it is proven.
func TestARunProvesTheIndexThatBeganInIt(t *testing.T) {
	for _, heard := range []bool{false, true} {
		r := newRig(t)
		for i := range 5 {
			r.put(doc.ID("users/"+string(rune('a'+i))), i)
		}
		time.Sleep(margin)
		table := &scanning{Table: r.store} // the canary of which nobody hears
		if heard {
			table.Table = signalling{r.store, r}
			table.first = r.drain // an indexer hears of it when repair has read the generations
		}
		r.run(repair.Prove, func(o *repair.Options) { o.Table, o.Patience = table, 6*time.Second })
		if _, ok := r.proven(collection.SharedFamily, 1); !ok || table.scans > 3*16 {
			t.Errorf("heard %t: proven %t, after %d parts of 16", heard, ok, table.scans)
		}
	}
}

// What the stream lost holds the proof back until it was signalled again, one id
// at most every 15 minutes.
func TestWhatTheStreamLostIsSignalledAgain(t *testing.T) {
	r := newRig(t)
	r.fill("users", 5)
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	lost := r.put("users/3", 33)
	var before store.Proof
	for range 2 {
		report := r.run(repair.Prove)
		if report.Missing == 0 || report.Resignalled > 0 {
			t.Fatalf("%+v", report)
		}
		p, _ := r.proven(collection.SharedFamily, 1)
		if before.Through.IsZero() {
			before = p
		}
		if !p.Through.Equal(before.Through) || p.Missing == 0 || p.OldestMissing.After(time.Now()) || p.Through.After(lost.Version.Time()) {
			t.Errorf("%+v", p)
		}
	}
	signalled := func() int { return r.queue.signals["users/3"] }
	had := signalled()
	r.queue.losing = true
	for i, minutes := range []time.Duration{1, 2, 10, 15, 16, 17, 25, 31} {
		r.run(repair.Prove, later(minutes*time.Minute+time.Second))
		if want := had + []int{1, 1, 1, 1, 2, 2, 2, 3}[i]; signalled() != want {
			t.Errorf("after %d minutes it was signalled %d times, not %d", minutes, signalled(), want)
		}
	}
	r.queue.losing = false
	r.run(repair.Prove, later(47*time.Minute))
	r.converges(func() bool {
		p, _ := r.proven(collection.SharedFamily, 1)
		return p.Missing == 0 && p.Through.After(lost.Version.Time())
	}, later(48*time.Minute))
}

// One run at a time; and one that was paused for so long that another has begun
// writes nothing any more.
func TestOneRunAtATime(t *testing.T) {
	r := newRig(t)
	r.fill("users", 3)
	state := r.store.State()
	if _, ok, err := state.AcquireLease(t.Context(), repair.Name, time.Minute); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, held, err := r.repair().Run(t.Context(), repair.Prove); held || err != nil {
		t.Fatalf("it ran beside another one: %v", err)
	}
}

func TestAWokenRunChangesNothing(t *testing.T) {
	r := newRig(t)
	r.fill("users", 3)
	r.put("users/0", 7) // is missing, so that there would be something to be signalled
	paused := &pausing{Queue: r.queue, then: func() {
		// While the first run sleeps, its lease ends and another one works.
		ahead := doc.NewClock(func() time.Time { return time.Now().Add(time.Hour) })
		o := r.tables
		o.Clock = ahead
		other := store.New(o)
		_, held, err := r.repair(func(o *repair.Options) { o.State = other.State(); o.Now = ahead.Now }).Run(t.Context(), repair.Prove)
		if !held || err != nil {
			t.Errorf("the other one: %v %v", held, err)
		}
	}}
	report, held, err := r.repair(func(o *repair.Options) { o.Queue = paused }).Run(t.Context(), repair.Prove)
	if !held || err == nil {
		t.Errorf("the woken run knows nothing of the other: %v %v", held, err)
	}
	p, _ := r.proven(collection.SharedFamily, 1)
	if p.Fence != 2 {
		t.Errorf("the proof of the other run was replaced: %+v", p)
	}
	if report.Resignalled > 0 {
		t.Errorf("the woken run sent signals: %+v", report)
	}
}

// pausing is a queue that takes long to tell its depth.
type pausing struct {
	pipeline.Queue
	then func()
}

func (p *pausing) Depth(ctx context.Context) (int, error) {
	if then := p.then; then != nil {
		p.then = nil
		then()
	}
	return p.Queue.Depth(ctx)
}
