package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
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
