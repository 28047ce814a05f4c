package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// TestRecordsWithLostAnswers makes every write of the jobs' records fail in
// every way that passes: what is answered is what is so.
func TestRecordsWithLostAnswers(t *testing.T) {
	tb := newTables(t)
	plain := tb.open(nil).State()
	ctx := t.Context()
	run := 0
	for name, sequence := range map[string][]fault{
		"lost before": {lostBefore}, "lost after": {lostAfter}, "cut": {cutAfter}, "failed after": {failedAfter}, "lost twice": {lostAfter, lostAfter},
		"throttled and lost": {throttled, lostAfter}, "unreachable": {dialRefused}, "lost, then throttled": {lostAfter, throttled, lostBefore},
	} {
		run++
		f := &faults{}
		s := tb.open(f).State()
		f.plan = func(op string, n int) fault {
			if n -= f.base(op); n < len(sequence) && op != "Query" && op != "GetItem" {
				return sequence[n]
			}
			return fine
		}
		job := fmt.Sprint("job ", run)
		check := func(what string, ok bool, err error) {
			t.Helper()
			if err != nil || !ok {
				t.Errorf("%s: %s: %t, %v", name, what, ok, err)
			}
			f.rebase()
		}
		l, ok, err := s.AcquireLease(ctx, job, time.Hour)
		check("acquire", ok && l.Token == 1, err)
		l, ok, err = s.RenewLease(ctx, l, 2*time.Hour)
		check("renew", ok && time.Until(l.Until) > 110*time.Minute, err)
		if other, taken, err := plain.AcquireLease(ctx, job, time.Hour); err != nil || taken {
			t.Errorf("%s: another one took it: %+v, %v", name, other, err)
		}
		check("release", true, s.ReleaseLease(ctx, l))
		next, ok, err := plain.AcquireLease(ctx, job, time.Hour)
		check("the next", ok && next.Token == 2, err)
		p := store.Proof{Family: collection.Family(job), Generation: 1, Through: time.Now().UTC(), Fence: 5}
		ok, err = s.PutProof(ctx, p)
		check("proof", ok, err)
		ok, err = s.DropProof(ctx, p.Family, 1, 5)
		check("drop of a proof", ok, err)
		ok, err = s.PutJob(ctx, store.JobRecord{Name: job, Fence: 5, Body: json.RawMessage(`{}`)})
		check("job", ok, err)
		r, ok, err := s.RequestJob(ctx, store.JobRequest{Name: job})
		check("request", ok, err)
		waiting, err := plain.JobRequests(ctx, job)
		check("the request waits", len(waiting) == 1 && waiting[0] == r, err)
		check("drop of a request", true, s.DropJobRequest(ctx, r))
		waiting, err = plain.JobRequests(ctx, job)
		check("no request waits", len(waiting) == 0, err)
		g := collection.First(collection.Definition{Name: doc.Collection(job), Index: collection.Own}, 1)
		check("generation", true, s.PutGeneration(ctx, g, nil))
		check("drop of a generation", true, s.DropGeneration(ctx, g))
		gone, err := plain.Generations(ctx, g.Family)
		check("no generation", len(gone) == 0, err)
		d, err := plain.PutDefinition(ctx, collection.Definition{Name: doc.Collection(job)}, 0)
		check("definition", true, err)
		moved := d
		moved.Moved = true
		check("amendment", true, s.AmendDefinition(ctx, moved, d))
	}
}

// TestOvertaken has somebody else be in between a lost answer and the
// repetition: the repetition neither undoes that nor takes it for its own.
func TestOvertaken(t *testing.T) {
	tb := newTables(t)
	other := tb.open(nil).State()
	ctx := context.Background()
	for _, lost := range []fault{lostBefore, lostAfter} {
		f := &faults{}
		s := tb.open(f).State()
		between := func(operation string, do func()) {
			f.rebase()
			first := func(op string, n int) bool { return op == operation && n == f.base(op) }
			f.plan = func(op string, n int) fault {
				if first(op, n) {
					return lost
				}
				return fine
			}
			f.after = func(op string, n int) {
				if first(op, n) {
					do()
				}
			}
		}
		name := fmt.Sprint("overtaken ", lost)
		if lost == lostBefore {
			var theirs store.Lease
			between("UpdateItem", func() { theirs, _, _ = other.AcquireLease(ctx, name, time.Hour) })
			mine, ok, err := s.AcquireLease(ctx, name, time.Hour)
			if err != nil || ok || theirs.Token != 1 {
				t.Errorf("acquire: %+v, %t, %v; theirs %+v", mine, ok, err, theirs)
			}
			if err := other.ReleaseLease(ctx, theirs); err != nil {
				t.Error(err)
			}
		}
		f.plan, f.after = nil, nil
		mine, ok, err := s.AcquireLease(ctx, name, time.Hour)
		if err != nil || !ok {
			t.Fatalf("%+v, %t, %v", mine, ok, err)
		}
		var theirs store.Lease
		between("UpdateItem", func() {
			if err := other.ReleaseLease(ctx, mine); err != nil { // as the lost request may have, and did or did not
				t.Error(err)
			}
			if theirs, ok, err = other.AcquireLease(ctx, name, time.Hour); err != nil || !ok {
				t.Errorf("theirs: %+v, %t, %v", theirs, ok, err)
			}
		})
		if err := s.ReleaseLease(ctx, mine); err != nil {
			t.Error(err)
		}
		if l, ok, err := other.RenewLease(ctx, theirs, time.Hour); err != nil || !ok || l.Token != mine.Token+1 {
			t.Errorf("theirs is gone: %+v, %t, %v", l, ok, err)
		}
		if _, ok, err := s.RenewLease(ctx, mine, time.Hour); err != nil || ok {
			t.Errorf("renewed what is theirs: %t, %v", ok, err)
		}

		body := func(text string) json.RawMessage { return json.RawMessage(`"` + text + `"`) }
		between("PutItem", func() {
			if ok, err := other.PutJob(ctx, store.JobRecord{Name: name, Fence: 9, Body: body("theirs")}); err != nil || !ok {
				t.Errorf("theirs: %t, %v", ok, err)
			}
		})
		if ok, err := s.PutJob(ctx, store.JobRecord{Name: name, Fence: 8, Body: body("mine")}); err != nil || ok {
			t.Errorf("job: %t, %v", ok, err)
		}
		if r, _, err := other.Job(ctx, name); err != nil || r.Fence != 9 || string(r.Body) != `"theirs"` {
			t.Errorf("%+v, %v", r, err)
		}

		asked, _, err := other.RequestJob(ctx, store.JobRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		var again store.JobRequest
		between("DeleteItem", func() {
			if err := other.DropJobRequest(ctx, asked); err != nil {
				t.Error(err)
			}
			if again, ok, err = other.RequestJob(ctx, store.JobRequest{Name: name}); err != nil || !ok {
				t.Errorf("again: %t, %v", ok, err)
			}
		})
		if err := s.DropJobRequest(ctx, asked); err != nil {
			t.Error(err)
		}
		if left, err := other.JobRequests(ctx, name); err != nil || len(left) != 1 || left[0] != again {
			t.Errorf("%+v, %v; want %+v", left, err, again)
		}
	}
}
