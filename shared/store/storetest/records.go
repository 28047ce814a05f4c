package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Records are what jobs keep in the state table.
type Records interface {
	AcquireLease(ctx context.Context, name string, life time.Duration) (store.Lease, bool, error)
	RenewLease(ctx context.Context, l store.Lease, life time.Duration) (store.Lease, bool, error)
	ReleaseLease(ctx context.Context, l store.Lease) error
	Proofs(ctx context.Context) ([]store.Proof, error)
	PutProof(ctx context.Context, p store.Proof) (bool, error)
	DropProof(ctx context.Context, f collection.Family, generation int, fence int64) (bool, error)
	Job(ctx context.Context, name string) (store.JobRecord, bool, error)
	Jobs(ctx context.Context) ([]store.JobRecord, error)
	PutJob(ctx context.Context, r store.JobRecord) (bool, error)
	RequestJob(ctx context.Context, r store.JobRequest) (store.JobRequest, bool, error)
	JobRequests(ctx context.Context, name string) ([]store.JobRequest, error)
	DropJobRequest(ctx context.Context, r store.JobRequest) error
}

// OpenRecords gives what another process has of the same records: it reads the
// given time and no other. The records are empty when a test begins.
type OpenRecords func(now func() time.Time) Records

// RunRecords runs the suite of the records. open is called once for each part.
func RunRecords(t *testing.T, open func(t *testing.T) OpenRecords) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, OpenRecords)
	}{
		{"Lease", lease},
		{"OneHolder", oneHolder},
		{"LeasesAndClocks", leasesAndClocks},
		{"Proofs", proofs},
		{"Jobs", jobs},
		{"Requests", requests},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, open(t)) })
	}
}

// start is the time of the tests that have their own.
var start = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

func lease(t *testing.T, open OpenRecords) {
	ctx := t.Context()
	now := start
	clock := func() time.Time { return now }
	a, b := open(clock), open(clock)
	first, ok, err := a.AcquireLease(ctx, "repair", time.Minute)
	if err != nil || !ok || first.Name != "repair" || first.Token != 1 || first.Owner == "" || !first.Until.Equal(start.Add(time.Minute)) {
		t.Fatalf("the first: %+v, %t, %v", first, ok, err)
	}
	take := func(who Records, want bool, token int64) store.Lease {
		t.Helper()
		l, ok, err := who.AcquireLease(ctx, "repair", time.Minute)
		if err != nil || ok != want || ok && (l.Token != token || !l.Until.Equal(now.Add(time.Minute))) {
			t.Fatalf("at %s: %+v, %t, %v; want %t, token %d", now.Sub(start), l, ok, err, want, token)
		}
		return l
	}
	renew := func(who Records, l store.Lease, life time.Duration, want bool, until time.Time) store.Lease {
		t.Helper()
		got, ok, err := who.RenewLease(ctx, l, life)
		if err != nil || ok != want || ok && (got.Token != l.Token || got.Owner != l.Owner || got.Name != l.Name || !got.Until.Equal(until)) {
			t.Fatalf("renewed at %s: %+v, %t, %v", now.Sub(start), got, ok, err)
		}
		return got
	}
	take(a, false, 0) // not even by the same process: two runs may be in it
	take(b, false, 0)
	if other, ok, err := b.AcquireLease(ctx, "audit", time.Hour); err != nil || !ok || other.Token != 1 {
		t.Errorf("of another name: %+v, %t, %v", other, ok, err)
	}
	now = start.Add(30 * time.Second)
	first = renew(a, first, time.Minute, true, now.Add(time.Minute))
	first = renew(a, first, time.Second, true, first.Until) // never shorter
	now = start.Add(89 * time.Second)
	take(b, false, 0)
	now = start.Add(91 * time.Second)
	take(b, false, 0) // the other one's clock may be behind
	first = renew(a, first, time.Second, true, now.Add(time.Second))
	now = now.Add(4 * time.Second)
	second := take(b, true, 2)
	renew(a, first, time.Hour, false, now)
	if err := a.ReleaseLease(ctx, first); err != nil { // of who was overtaken: nothing happens
		t.Error(err)
	}
	take(a, false, 0)
	renew(b, second, time.Minute, true, now.Add(time.Minute))
	for range 2 {
		if err := b.ReleaseLease(ctx, second); err != nil {
			t.Error(err)
		}
	}
	renew(b, second, time.Minute, false, now)
	third := take(a, true, 3) // at once
	if err := b.ReleaseLease(ctx, second); err != nil {
		t.Error(err)
	}
	stolen := third
	stolen.Owner = second.Owner
	renew(b, stolen, time.Minute, false, now)
	take(b, false, 0)
}

// oneHolder lets many ask at once.
func oneHolder(t *testing.T, open OpenRecords) {
	for round := range 4 {
		var holders atomic.Int32
		var token atomic.Value
		together(8, func(int) {
			l, ok, err := open(time.Now).AcquireLease(t.Context(), "busy", time.Hour)
			if err != nil {
				t.Error(err)
			}
			if ok {
				holders.Add(1)
				token.Store(l)
			}
		})
		l, _ := token.Load().(store.Lease)
		if holders.Load() != 1 || l.Token != int64(round)+1 {
			t.Fatalf("round %d: %d holders, %+v", round, holders.Load(), l)
		}
		if err := open(time.Now).ReleaseLease(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
}

// leasesAndClocks has processes with clocks of their own take, renew, give back
// and forget a lease in any order.
func leasesAndClocks(t *testing.T, open OpenRecords) {
	const processes = 3
	ctx := t.Context()
	now := start
	var skews [processes]time.Duration
	var who [processes]Records
	read := func(i int) time.Time { return now.Add(skews[i]) }
	for i := range who {
		who[i] = open(func() time.Time { return read(i) })
	}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		name := fmt.Sprintf("lease %d", run)
		// With clocks as wrong as corrected ones can be, nobody takes what another
		// one counts on; however wrong they are, tokens tell who was later.
		wild := rapid.Bool().Draw(rt, "wild clocks")
		skew := func() time.Duration {
			if wild {
				return time.Duration(rapid.IntRange(-600, 600).Draw(rt, "skew s")) * time.Second
			}
			return time.Duration(rapid.IntRange(-999, 999).Draw(rt, "skew ms")) * time.Millisecond
		}
		for i := range skews {
			skews[i] = skew()
		}
		type holding struct {
			store.Lease
			by int
		}
		var held []holding // all that were acquired and not given back, oldest first
		var last int64
		for range rapid.IntRange(3, 12).Draw(rt, "steps") {
			i := rapid.IntRange(0, processes-1).Draw(rt, "process")
			life := time.Duration(rapid.IntRange(1, 20).Draw(rt, "life")) * time.Second
			switch rapid.IntRange(0, 7).Draw(rt, "what") {
			case 0, 1, 2:
				l, ok, err := who[i].AcquireLease(ctx, name, life)
				if err != nil {
					rt.Fatal(err)
				}
				if ok {
					if l.Token != last+1 {
						rt.Fatalf("token %d after %d", l.Token, last)
					}
					last = l.Token
					held = append(held, holding{l, i})
				}
			case 3, 4:
				if len(held) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				l, ok, err := who[held[at].by].RenewLease(ctx, held[at].Lease, life)
				if err != nil {
					rt.Fatal(err)
				}
				if ok != (held[at].Token == last) {
					rt.Fatalf("token %d was renewed: %t; the last is %d", held[at].Token, ok, last)
				}
				if ok {
					if l.Token != held[at].Token || l.Until.Before(held[at].Until) {
						rt.Fatalf("%+v became %+v", held[at], l)
					}
					held[at].Lease = l
				}
			case 5:
				if len(held) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				if err := who[held[at].by].ReleaseLease(ctx, held[at].Lease); err != nil {
					rt.Fatal(err)
				}
				if held[at].Token == last { // now nobody has it
					if l, ok, err := who[i].AcquireLease(ctx, name, life); err != nil || !ok || l.Token != last+1 {
						rt.Fatalf("after a release: %+v, %t, %v", l, ok, err)
					} else {
						last = l.Token
						held = append(held, holding{l, i})
					}
				}
				held = slices.Delete(held, at, at+1)
			case 6:
				now = now.Add(time.Duration(rapid.IntRange(0, 10_000).Draw(rt, "ms")) * time.Millisecond)
			case 7:
				if wild {
					skews[i] = skew()
				}
			}
			counting := 0
			for _, h := range held {
				if read(h.by).Before(h.Until) {
					counting++
				}
			}
			if !wild && counting > 1 {
				rt.Fatalf("%d count on the lease at once: %+v", counting, held)
			}
		}
	})
}

func proofs(t *testing.T, open OpenRecords) {
	ctx := t.Context()
	r := open(time.Now)
	if all, err := r.Proofs(ctx); err != nil || len(all) != 0 {
		t.Fatalf("before any: %v, %v", all, err)
	}
	want := map[string]store.Proof{}
	key := func(p store.Proof) string { return fmt.Sprintf("%s %d", p.Family, p.Generation) }
	check := func() {
		t.Helper()
		all, err := r.Proofs(ctx)
		if err != nil || len(all) != len(want) {
			t.Fatalf("%+v, %v; want %+v", all, err, want)
		}
		for _, p := range all {
			if p != want[key(p)] {
				t.Errorf("%+v, want %+v", p, want[key(p)])
			}
		}
	}
	put := func(p store.Proof, taken bool) {
		t.Helper()
		ok, err := r.PutProof(ctx, p)
		if err != nil || ok != taken {
			t.Fatalf("%+v: %t, %v", p, ok, err)
		}
		if taken {
			want[key(p)] = p
		}
		check()
	}
	drop := func(f collection.Family, n int, fence int64, taken bool) {
		t.Helper()
		ok, err := r.DropProof(ctx, f, n, fence)
		if err != nil || ok != taken {
			t.Fatalf("drop %s %d: %t, %v", f, n, ok, err)
		}
		if p := (store.Proof{Family: f, Generation: n, Fence: fence}); taken {
			want[key(p)] = p
		}
		check()
	}
	p := store.Proof{
		Family: collection.SharedFamily, Generation: 1, Through: start.Add(-10 * time.Second), At: start, FeedLag: 1500 * time.Millisecond,
		Margin: 10 * time.Second, Missing: 3, OldestMissing: start.Add(-time.Minute), Fence: 7,
	}
	put(p, true)
	p.Through, p.Missing, p.OldestMissing = start, 0, time.Time{}
	put(p, true) // the same run again
	older := p
	older.Fence, older.Through = 6, start.Add(time.Hour)
	put(older, false)
	drop(p.Family, 1, 6, false)
	put(store.Proof{Family: p.Family, Generation: 2, Missing: 9, OldestMissing: start, Fence: 1}, true) // a fence is that of one record
	put(store.Proof{Family: "a#1/b", Generation: 1, Through: start, Fence: 1}, true)
	put(store.Proof{Family: "a#1", Generation: 11, Through: start, Fence: 1}, true)
	drop(p.Family, 1, 8, true)
	drop(p.Family, 1, 8, true)
	p.Fence = 7
	put(p, false)
	p.Fence = 8
	put(p, true)
	drop("none", 4, 2, true)
	put(store.Proof{Family: "none", Generation: 4, Fence: 1}, false)
}

func jobs(t *testing.T, open OpenRecords) {
	ctx := t.Context()
	r := open(time.Now)
	if got, ok, err := r.Job(ctx, "repair"); err != nil || ok {
		t.Fatalf("before any: %+v, %t, %v", got, ok, err)
	}
	put := func(rec store.JobRecord, taken bool) {
		t.Helper()
		if ok, err := r.PutJob(ctx, rec); err != nil || ok != taken {
			t.Fatalf("fence %d: %t, %v", rec.Fence, ok, err)
		}
		got, there, err := r.Job(ctx, rec.Name)
		if same := got.Name == rec.Name && got.Fence == rec.Fence && string(got.Body) == string(rec.Body); err != nil || !there || same != taken {
			t.Fatalf("%+v is kept as %+v, %t, %v", rec, got, there, err)
		}
	}
	body := json.RawMessage(`{"at":"9007199254740993","n":12345678901234567890,"list":[1,{"ü":null}]}`)
	put(store.JobRecord{Name: "repair", Fence: 3, Body: body}, true)
	put(store.JobRecord{Name: "repair", Fence: 3, Body: json.RawMessage(`{"again":true}`)}, true)
	put(store.JobRecord{Name: "repair", Fence: 2, Body: body}, false)
	put(store.JobRecord{Name: "repair", Fence: 4, Body: body}, true)
	put(store.JobRecord{Name: "audit", Fence: 0, Body: json.RawMessage(`[]`)}, true)
	largest := json.RawMessage(`"` + strings.Repeat("x", store.MaxJobBody-2) + `"`)
	put(store.JobRecord{Name: "large", Fence: 1, Body: largest}, true)
	all, err := r.Jobs(ctx)
	var names []string
	for _, rec := range all {
		names = append(names, rec.Name)
	}
	if err != nil || !slices.Equal(names, []string{"audit", "large", "repair"}) || string(all[2].Body) != string(body) || all[2].Fence != 4 {
		t.Errorf("%v, %v", names, err)
	}
	_, err = r.PutJob(ctx, store.JobRecord{Name: "repair", Fence: 9, Body: append(slices.Clone(largest[:len(largest)-1]), `x"`...)})
	var e *doc.Error
	if !errors.As(err, &e) || e.Kind != doc.DocumentTooLarge || e.Members["limit"] != store.MaxJobBody || e.Members["actual"] != store.MaxJobBody+1 {
		t.Errorf("a byte too long: %v", err)
	}
	if _, err := r.PutJob(ctx, store.JobRecord{Name: "repair", Fence: 9, Body: json.RawMessage(`{`)}); err == nil {
		t.Error("a body that is no JSON was taken")
	}
	if got, _, err := r.Job(ctx, "repair"); err != nil || got.Fence != 4 {
		t.Errorf("after the refusals: %+v, %v", got, err)
	}
}

func requests(t *testing.T, open OpenRecords) {
	ctx := t.Context()
	now := start
	r := open(func() time.Time { return now })
	ask := func(req store.JobRequest, taken bool) store.JobRequest {
		t.Helper()
		now = now.Add(time.Second)
		got, ok, err := r.RequestJob(ctx, req)
		if err != nil || ok != taken || got.Name != req.Name || got.Mode != req.Mode || got.Collection != req.Collection || got.ID == "" {
			t.Fatalf("%+v: %+v, %t, %v", req, got, ok, err)
		}
		if at := req.At; taken && (at.IsZero() && !got.At.Equal(now) || !at.IsZero() && !got.At.Equal(at)) {
			t.Errorf("asked for at %s", got.At)
		}
		return got
	}
	waiting := func(name string, want ...store.JobRequest) {
		t.Helper()
		if got, err := r.JobRequests(ctx, name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	waiting("repair")
	all := ask(store.JobRequest{Name: "repair", Mode: "compare"}, true)
	one := ask(store.JobRequest{Name: "repair", Mode: "compare", Collection: "users/account"}, true)
	early := ask(store.JobRequest{Name: "repair", Mode: "rebuild", Collection: "users", At: start.Add(-time.Hour)}, true)
	other := ask(store.JobRequest{Name: "audit", Mode: "compare"}, true)
	waiting("repair", early, all, one)
	waiting("audit", other)
	waiting("rep")
	if again := ask(store.JobRequest{Name: "repair", Mode: "compare", ID: "mine"}, false); again != all {
		t.Errorf("the one that waits is %+v, told %+v", all, again)
	}
	drop := func(req store.JobRequest) {
		t.Helper()
		if err := r.DropJobRequest(ctx, req); err != nil {
			t.Error(err)
		}
	}
	drop(all)
	drop(all)
	waiting("repair", early, one)
	later := ask(store.JobRequest{Name: "repair", Mode: "compare"}, true)
	drop(all) // one that asked for the same earlier
	waiting("repair", early, one, later)
	drop(later)
	drop(one)
	drop(early)
	waiting("repair")
	waiting("audit", other)
	// No two pairs of mode and collection are taken for each other.
	for _, pair := range [][2]string{{"a", "b"}, {`a"`, "b"}, {"ab", ""}, {"", "ab"}, {`a"b`, ""}, {"a", `"b`}} {
		ask(store.JobRequest{Name: "pairs", Mode: pair[0], Collection: doc.Collection(pair[1])}, true)
	}
}
