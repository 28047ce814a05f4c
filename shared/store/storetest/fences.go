package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

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
		Family: collection.SharedFamily, Generation: 1, Index: "Zm9v bar", Through: start.Add(-10 * time.Second), At: start, FeedLag: 1500 * time.Millisecond,
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
