package repair_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// drifted is a table of many documents with an index that was proven and has
// lost a few of them since. What is signalled gets indexed.
type drifted struct {
	*stored
	at    []doc.ID // in the order of ids
	held  map[doc.ID]search.Held
	proof store.Proof
	lists []string // what was signalled and erased

	walked []doc.ID // what the index holds, in order
	pass   func(time.Duration)
}

var sameForAll = map[string]any{"a": "b"}

func drift(documents int) (*drifted, *repair.Repair) {
	s, _ := holding(documents, 0)
	d := &drifted{stored: s, held: make(map[doc.ID]search.Held, documents)}
	sum := value.Sum(sameForAll)
	for n := range documents {
		id := doc.ID("users/" + strconv.Itoa(n))
		d.at = append(d.at, id)
		d.held[id] = search.Held{Version: s.version(n), Sum: sum}
	}
	d.proof = store.Proof{Family: collection.SharedFamily, Generation: 1, Index: "one", Through: s.began, At: s.began}
	now := s.began.Add(30 * time.Second)
	d.pass = func(p time.Duration) { now = now.Add(p) }
	return d, repair.New(repair.Options{
		Table: d, Index: d, State: d, Queue: d, Margin: time.Second, Budget: time.Hour,
		Now: func() time.Time { return now }, Sleep: func(_ context.Context, p time.Duration) error { d.pass(p); return nil },
	})
}

func (d *drifted) Refresh(ctx context.Context, generations []collection.Generation) error {
	d.pass(time.Second)
	return d.stored.Refresh(ctx, generations)
}

func (d *drifted) number(id doc.ID) int {
	n, err := strconv.Atoi(string(id[len("users/"):]))
	if err != nil {
		return -1
	}
	return n
}

func (d *drifted) Scan(_ context.Context, q store.ScanQuery) (store.ScanPage, error) {
	from := len(d.at) * q.Segment / q.Segments
	to := len(d.at) * (q.Segment + 1) / q.Segments
	if q.After != "" {
		from, _ = strconv.Atoi(q.After)
	}
	page := store.ScanPage{}
	for n := from; n < min(from+1000, to); n++ {
		page.Items = append(page.Items, store.Scanned{Document: doc.Document{ID: d.at[n], Version: d.version(n), Data: sameForAll}})
	}
	if from+1000 < to {
		page.Next = strconv.Itoa(from + 1000)
	}
	return page, nil
}

func (d *drifted) Standings(_ context.Context, ids []doc.ID) (map[doc.ID]store.Standing, error) {
	standings := map[doc.ID]store.Standing{}
	for _, id := range ids {
		if n := d.number(id); n >= 0 {
			standings[id] = store.Standing{Version: d.version(n)}
		}
	}
	return standings, nil
}

func (d *drifted) Held(_ context.Context, _ collection.Generation, ids []doc.ID) (map[doc.ID]search.Held, error) {
	held := map[doc.ID]search.Held{}
	for _, id := range ids {
		if h, ok := d.held[id]; ok {
			held[id] = h
		}
	}
	return held, nil
}

func (d *drifted) Versions(_ context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	held := map[doc.ID]doc.Version{}
	for _, id := range wanted[0].IDs {
		if h, ok := d.held[id]; ok {
			held[id] = h.Version
		}
	}
	if id := doc.ID("$canary/1"); len(wanted[0].IDs) > 0 && wanted[0].IDs[0] == id {
		held[id] = doc.VersionAt(d.began)
	}
	return held, nil
}

func (d *drifted) Walk(_ context.Context, _ collection.Generation, q search.WalkQuery) ([]search.Standing, error) {
	if d.walked == nil {
		d.walked = slices.Sorted(maps.Keys(d.held))
	}
	ids := d.walked
	from, found := slices.BinarySearchFunc(ids, q.After, func(a, b doc.ID) int { return cmp.Compare(a, b) })
	if found {
		from++
	}
	var page []search.Standing
	for _, id := range ids[from:min(from+q.Limit, len(ids))] {
		if _, there := d.held[id]; !there && id == "users/nobody" {
			continue
		}
		page = append(page, search.Standing{ID: id, Collection: "users", Version: d.held[id].Version})
	}
	return page, nil
}

func (d *drifted) Erase(_ context.Context, _ collection.Generation, signals []doc.Signal) ([]search.Outcome, error) {
	for _, s := range signals {
		d.lists = append(d.lists, "erased "+string(s.ID))
		delete(d.held, s.ID)
	}
	return make([]search.Outcome, len(signals)), nil
}

func (d *drifted) Send(_ context.Context, out []pipeline.Outgoing) []error {
	for _, o := range out {
		signals, _, _ := pipeline.Unpack(o.Body)
		for _, s := range signals {
			d.lists = append(d.lists, "signalled "+string(s.ID))
			d.held[s.ID] = search.Held{Version: d.version(d.number(s.ID)), Sum: value.Sum(sameForAll)}
		}
	}
	return nil
}

func (d *drifted) Quarantine(context.Context, []doc.ID) (map[doc.ID]doc.Quarantined, error) {
	return nil, nil
}
func (d *drifted) Proofs(context.Context) ([]store.Proof, error) { return []store.Proof{d.proof}, nil }
func (d *drifted) PutProof(_ context.Context, p store.Proof) (bool, error) {
	d.proof = p
	return true, nil
}
func (d *drifted) DropProof(_ context.Context, f collection.Family, n int, _ int64) (bool, error) {
	d.lists = append(d.lists, "dropped the proof of "+d.proof.Index)
	d.proof = store.Proof{Family: f, Generation: n}
	return true, nil
}

// Three documents in a hundred thousand: the report says which and why, nothing
// else is touched, and the proof is back when they are.
func TestThreeOfAHundredThousand(t *testing.T) {
	d, r := drift(100_000)
	delete(d.held, "users/4711")
	old := d.held["users/99000"]
	old.Version--
	d.held["users/99000"] = old
	d.held["users/nobody"] = search.Held{Version: d.version(5)}
	report, held, err := r.Run(t.Context(), repair.Compare)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	last := report.LastDrift
	if last == nil || report.Drift != 3 || last.Checked != 100_000 || last.Missing != 1 || last.Older != 1 || last.Extra != 1 || last.Different+last.Ahead+last.Foreign > 0 {
		t.Fatalf("%+v", last)
	}
	reasons := map[doc.ID]string{}
	for _, difference := range last.Differences {
		reasons[difference.ID] = difference.Reason
	}
	if !maps.Equal(reasons, map[doc.ID]string{"users/4711": "missing", "users/99000": "older", "users/nobody": "extra"}) {
		t.Errorf("%v", reasons)
	}
	for range 5 {
		if !d.proof.Through.IsZero() {
			break
		}
		if report, _, err = r.Run(t.Context(), repair.Prove); err != nil || report.Drift > 0 {
			t.Fatal(err, report.LastPass)
		}
	}
	if d.proof.Through.IsZero() || !slices.Equal(d.lists, []string{"dropped the proof of one", "signalled users/4711", "signalled users/99000", "erased users/nobody"}) {
		t.Errorf("%+v %v", d.proof, d.lists)
	}
}

// A proof that speaks of another index than the one that is there is withdrawn,
// also by a repair that remembers nothing; a comparison makes the next one, which
// says what that saw.
func TestAProofOfAnotherIndexIsWithdrawn(t *testing.T) {
	for _, of := range []string{"another", ""} {
		d, r := drift(100)
		d.proof.Index = of
		report, held, err := r.Run(t.Context(), repair.Prove)
		if err != nil || !held || report.LastPass == nil {
			t.Fatalf("%v %v %+v", held, err, report)
		}
		if !slices.Equal(d.lists, []string{"dropped the proof of " + of}) {
			t.Errorf("%v", d.lists)
		}
		began := report.LastPass.Started
		if p := d.proof; p.Index != "one" || !p.At.Equal(began) || !p.Through.Equal(began.Add(-time.Second)) {
			t.Errorf("%+v, by a comparison of %s", p, began)
		}
	}
}
