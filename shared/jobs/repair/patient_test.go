package repair_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/local/faultproxy"
	"holdfast/shared/obs"
	"holdfast/shared/search"
)

// through lets repair ask the index through a proxy.
func (r *rig) through(p *faultproxy.Proxy) func(*repair.Options) {
	r.t.Helper()
	index, err := search.NewClient(search.Options{URL: p.URL(), Prefix: r.prefix, Log: obs.Discard()})
	if err != nil {
		r.t.Fatal(err)
	}
	return func(o *repair.Options) { o.Index = index }
}

// kindOf is what a request is about: its method and path, without the name of an
// index.
func kindOf(s faultproxy.Seen) string {
	var steps []string
	for step := range strings.SplitSeq(s.Path, "/") {
		if !strings.HasPrefix(step, "repair") {
			steps = append(steps, step)
		}
	}
	return s.Method + " " + strings.Join(steps, "/")
}

// Whatever a run asks the index, a failure that is gone in a moment does not cost
// the run.
func TestAFailureThatPassesCostsNoRun(t *testing.T) {
	r := newRig(t)
	r.fill("users", 5)
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	g := r.generation(collection.SharedFamily, 1)
	extra := func() { // which only the index has, so that it is taken out
		d := doc.Document{ID: "users/extra", Version: doc.VersionAt(time.Now().Add(-time.Hour)), Data: map[string]any{"n": json.Number("1")}}
		outcomes, err := r.index.Write(t.Context(), []search.Operation{{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(d, g).Source}})
		if err != nil || outcomes[0].Kind != search.Applied {
			t.Fatalf("%v %v", outcomes, err)
		}
	}
	p := faultproxy.Start(r.url)
	t.Cleanup(p.Close)
	extra()
	if report := r.run(repair.Compare, r.through(p)); report.Drift != 1 {
		t.Fatalf("%+v", report)
	}
	kinds := map[string]faultproxy.Seen{}
	for _, s := range p.Take() {
		kinds[kindOf(s)] = s
	}
	if len(kinds) < 7 { // the index itself, its name, its UUID, versions, search, refresh, bulk
		t.Errorf("a run makes requests of these kinds only: %v", kinds)
	}
	faults := []faultproxy.Fault{
		faultproxy.Answer(503, `{"error":{"type":"cluster_manager_not_discovered_exception"},"status":503}`),
		faultproxy.Answer(429, `{"error":{"type":"circuit_breaking_exception","reason":"too much"},"status":429}`),
		faultproxy.Answer(502, `<html>Bad gateway</html>`),
		faultproxy.Drop(),
		faultproxy.LoseAnswer(0),
	}
	for kind, s := range kinds {
		for _, fault := range faults {
			extra()
			p.Set(faultproxy.Rule{Path: s.Path, Times: 2, Fault: fault})
			report, held, err := r.repair(r.through(p)).Run(t.Context(), repair.Compare)
			if err != nil || !held || report.Drift > 1 || report.Pass != nil {
				t.Errorf("%s, %s: %v %+v", kind, fault, err, report.Pass)
			}
			met := 0
			for _, seen := range p.Take() {
				if seen.Fault != "" {
					met++
				}
			}
			if met != 2 {
				t.Errorf("%s, %s: it was met %d times", kind, fault, met)
			}
			if held := r.held(g, "users/extra"); held {
				t.Errorf("%s, %s: what is in the index only was not taken out", kind, fault)
			}
		}
	}
}

// held reports whether the index has something under an id.
func (r *rig) held(g collection.Generation, id doc.ID) bool {
	r.t.Helper()
	held, err := r.index.Versions(r.t.Context(), []search.VersionOf{{Generation: g, IDs: []doc.ID{id}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return len(held) > 0
}

// counted is an index that fails at everything and counts how often it is asked.
type counted struct {
	repair.Index
	failure error
	asked   int
}

func (x *counted) Inspect(context.Context, collection.Generation) (search.Inspection, error) {
	x.asked++
	return search.Inspection{}, x.failure
}

func (x *counted) Versions(context.Context, []search.VersionOf) (map[doc.ID]doc.Version, error) {
	x.asked++
	return nil, x.failure
}

// A run does not insist: on what is refused, on an index that does not answer at
// all, or beyond its own time.
func TestARunDoesNotInsist(t *testing.T) {
	down := doc.Errorf(doc.IndexUnavailable, "down")
	for name, c := range map[string]struct {
		failure error
		budget  time.Duration
		asked   int // it is inspected, and asked for versions
		slept   time.Duration
	}{
		"down":                 {down, 0, 3 + 1, 1200 * time.Millisecond},
		"down and out of time": {down, 300 * time.Millisecond, 2, 0},
		"refused":              {refusal(t), 0, 2, 0},
		"a misfit":             {search.ErrMisfit, 0, 2, 0},
	} {
		x := &counted{failure: c.failure}
		var slept time.Duration
		_, r := holding(10, 5, func(o *repair.Options) {
			x.Index, o.Index, o.Budget, o.Jitter = o.Index, x, c.budget, func() float64 { return 0 }
			began := o.Now()
			o.Now = func() time.Time { return began.Add(slept) }
			o.Sleep = func(_ context.Context, d time.Duration) error { slept += d; return nil }
		})
		if _, held, err := r.Run(t.Context(), repair.Prove); err == nil || !held {
			t.Errorf("%s: %v %v", name, held, err)
		}
		if x.asked != c.asked || slept != c.slept {
			t.Errorf("%s: asked %d times, slept %s", name, x.asked, slept)
		}
	}
}

// hanging is an index that keeps everybody waiting.
type hanging struct {
	repair.Index
	asked int
}

func (x *hanging) Inspect(ctx context.Context, _ collection.Generation) (search.Inspection, error) {
	x.asked++
	<-ctx.Done()
	return search.Inspection{}, doc.Errorf(doc.IndexUnavailable, "hangs").Because(ctx.Err())
}

func (x *hanging) Versions(ctx context.Context, _ []search.VersionOf) (map[doc.ID]doc.Version, error) {
	x.asked++
	<-ctx.Done()
	return nil, doc.Errorf(doc.IndexUnavailable, "hangs").Because(ctx.Err())
}

// An index that keeps everybody waiting costs a run little more than its time, so
// that the function is not ended over it.
func TestAHungIndexDoesNotHoldARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, began := &hanging{}, time.Now()
		_, r := holding(10, 5, func(o *repair.Options) {
			start := o.Now()
			x.Index, o.Index, o.Sleep = o.Index, x, nil
			o.Now = func() time.Time { return start.Add(time.Since(began)) }
		})
		_, held, err := r.Run(t.Context(), repair.Prove)
		if took := time.Since(began); !held || doc.KindOf(err) != doc.IndexUnavailable || x.asked < 3 || took > repair.DefaultBudget+15*time.Second {
			t.Errorf("held %v, asked %d times, %s: %v", held, x.asked, took, err)
		}
	})
}

// refusal is how the client of the index tells that it is not allowed to do
// something.
func refusal(t *testing.T) error {
	t.Helper()
	p := faultproxy.Start("http://127.0.0.1:1")
	t.Cleanup(p.Close)
	p.Set(faultproxy.Rule{Fault: faultproxy.Answer(http.StatusForbidden, `{"error":{"type":"security_exception"},"status":403}`)})
	index, err := search.NewClient(search.Options{URL: p.URL(), Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = index.Inspect(t.Context(), collection.First(collection.Definition{}, search.Projector))
	if err == nil {
		t.Fatal("it is allowed")
	}
	return err
}
