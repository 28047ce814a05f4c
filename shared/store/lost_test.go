package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

func data(text string) map[string]any { return map[string]any{"text": text} }

// TestLostAnswers makes every kind of write fail in every way and looks whether
// the answer is true.
func TestLostAnswers(t *testing.T) {
	tb := newTables(t)
	plain := tb.open(nil)
	const id doc.ID = "lost/1"
	type write struct {
		name      string
		operation string
		prepare   func(t *testing.T) // the way the id stands before
		run       func(ctx context.Context, s *store.Store) (doc.Written, error)
		created   bool
		gone      bool // afterwards there is no live document
	}
	current := func(t *testing.T) doc.Version {
		d, err := plain.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return d.Version
	}
	absent := func(t *testing.T) {
		if _, err := plain.Delete(t.Context(), id, doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	live := func(t *testing.T) {
		if _, err := plain.Put(t.Context(), id, data("before"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	put := func(cond doc.Condition, text string) func(context.Context, *store.Store) (doc.Written, error) {
		return func(ctx context.Context, s *store.Store) (doc.Written, error) {
			return s.Put(ctx, id, data(text), cond)
		}
	}
	large := strings.Repeat("x", 400<<10-300) // beyond what an update may write
	writes := []write{
		{"create only", "UpdateItem", absent, put(doc.Condition{Absent: true}, "after"), true, false},
		{"blind, over nothing", "UpdateItem", absent, put(doc.Condition{}, "after"), true, false},
		{"blind, over a document", "UpdateItem", live, put(doc.Condition{}, "after"), false, false},
		{"must exist", "UpdateItem", live, put(doc.Condition{Exists: true}, "after"), false, false},
		{"of a version", "UpdateItem", live, func(ctx context.Context, s *store.Store) (doc.Written, error) {
			return s.Put(ctx, id, data("after"), doc.Condition{Exists: true, AnyOf: []doc.Version{current(t)}})
		}, false, false},
		{"large, over nothing", "PutItem", absent, put(doc.Condition{}, large), true, false},
		{"large, over a document", "PutItem", live, put(doc.Condition{}, large), false, false},
		{"delete", "PutItem", live, func(ctx context.Context, s *store.Store) (doc.Written, error) {
			return s.Delete(ctx, id, doc.Condition{})
		}, false, true},
		{"delete of a version", "PutItem", live, func(ctx context.Context, s *store.Store) (doc.Written, error) {
			return s.Delete(ctx, id, doc.Condition{Exists: true, AnyOf: []doc.Version{current(t)}})
		}, false, true},
	}
	for _, w := range writes {
		for name, sequence := range map[string][]fault{
			"refused connection":     {dialRefused},
			"lost before":            {lostBefore},
			"lost after":             {lostAfter},
			"failed after":           {failedAfter},
			"failed plainly":         {failedPlain},
			"cut":                    {cutAfter},
			"throttled":              {throttled, throttled},
			"lost, then throttled":   {lostAfter, throttled, lostBefore},
			"lost twice":             {lostBefore, lostAfter, lostAfter},
			"throttled and lost":     {throttled, lostAfter},
			"unreachable, then lost": {dialRefused, failedAfter, dialRefused},
		} {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				w.prepare(t)
				f := &faults{}
				s := tb.open(f)
				// The records of the process are made, so only the write fails.
				if _, err := s.Put(t.Context(), "lost/other", data(""), doc.Condition{}); err != nil {
					t.Fatal(err)
				}
				f.plan = func(operation string, n int) fault {
					if n -= f.base(operation); operation == w.operation && n < len(sequence) {
						return sequence[n]
					}
					return fine
				}
				f.rebase()
				got, err := w.run(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if got.Created != w.created {
					t.Errorf("created: %t", got.Created)
				}
				after := revision(t, plain, id)
				if after.Deleted != w.gone || after.Version != got.Version {
					t.Errorf("answered version %d; stands at %d, deleted: %t", got.Version, after.Version, after.Deleted)
				}
				if n := f.count(w.operation) - f.base(w.operation); n != len(sequence)+1 {
					t.Errorf("%d requests for %d faults", n, len(sequence))
				}
			})
		}
	}
}

func revision(t *testing.T, s *store.Store, id doc.ID) doc.Document {
	t.Helper()
	var d doc.Document
	err := s.Revisions(t.Context(), []doc.ID{id}, 0, func(found []doc.Document, _ []doc.ID) error {
		if len(found) == 1 {
			d = found[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestUnsettled has another writer follow before the lost answer can be settled.
func TestUnsettled(t *testing.T) {
	tb := newTables(t)
	other := tb.open(nil)
	const id doc.ID = "unsettled/1"
	otherPut := func() doc.Version {
		w, err := other.Put(context.Background(), id, data("other"), doc.Condition{})
		if err != nil {
			t.Errorf("the other writer: %v", err)
		}
		return w.Version
	}
	for _, lost := range []fault{lostBefore, lostAfter} {
		for name, cond := range map[string]doc.Condition{"blind": {}, "must exist": {Exists: true}} {
			for _, remove := range []bool{false, true} {
				v0 := otherPut()
				f := &faults{}
				s := tb.open(f)
				if _, err := s.Put(t.Context(), "unsettled/other", data(""), doc.Condition{}); err != nil {
					t.Fatal(err)
				}
				f.rebase()
				operation := "UpdateItem"
				if remove {
					operation = "PutItem"
				}
				f.plan = func(op string, n int) fault {
					if op == operation && n == f.base(op) {
						return lost
					}
					return fine
				}
				var theirs doc.Version
				f.after = func(op string, n int) {
					if op == operation && n == f.base(op) {
						theirs = otherPut()
					}
				}
				var err error
				if remove {
					_, err = s.Delete(t.Context(), id, cond)
				} else {
					_, err = s.Put(t.Context(), id, data("mine"), cond)
				}
				// Both histories look the same from here: only "unknown" is true.
				if doc.KindOf(err) != doc.OutcomeUnknown {
					t.Errorf("%s, remove %t: %v", name, remove, err)
				}
				if got := revision(t, other, id); got.Version != theirs || theirs <= v0 {
					t.Errorf("%s: stands at %d, the other wrote %d", name, got.Version, theirs)
				}
			}
		}
	}
	// A create-only write that was lost on the way and overtaken by another.
	const fresh doc.ID = "unsettled/fresh"
	f := &faults{}
	s := tb.open(f)
	if _, err := s.Put(t.Context(), "unsettled/other", data(""), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	f.rebase()
	f.plan = func(op string, n int) fault {
		if op == "UpdateItem" && n == f.base(op) {
			return lostBefore
		}
		return fine
	}
	f.after = func(op string, n int) {
		if op == "UpdateItem" && n == f.base(op) {
			if _, err := other.Put(context.Background(), fresh, data("other"), doc.Condition{Absent: true}); err != nil {
				t.Errorf("the other writer: %v", err)
			}
		}
	}
	if _, err := s.Put(t.Context(), fresh, data("mine"), doc.Condition{Absent: true}); doc.KindOf(err) != doc.OutcomeUnknown {
		t.Errorf("create only: %v", err)
	}
}

// TestUnsettledByRemoval has another tool remove the item before the lost answer
// can be settled: that there is nothing does not say that there was no write.
func TestUnsettledByRemoval(t *testing.T) {
	tb := newTables(t)
	other := tb.open(nil)
	const id doc.ID = "unsettled/removed"
	for _, lost := range []fault{lostBefore, lostAfter} {
		w, err := other.Put(t.Context(), id, data("before"), doc.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		f := &faults{}
		s := tb.open(f)
		if _, err := s.Put(t.Context(), "unsettled/other", data(""), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
		f.rebase()
		f.plan = func(op string, n int) fault {
			if op == "UpdateItem" && n == f.base(op) {
				return lost
			}
			return fine
		}
		f.after = func(op string, n int) {
			if op != "UpdateItem" || n != f.base(op) {
				return
			}
			_, err := tb.client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
				TableName: &tb.documents, Key: item{"pk": text(id.Root()), "sk": text(id.Rest())},
			})
			if err != nil {
				t.Errorf("the other tool: %v", err)
			}
		}
		_, err = s.Put(t.Context(), id, data("mine"), doc.Condition{Exists: true, AnyOf: []doc.Version{w.Version}})
		if doc.KindOf(err) != doc.OutcomeUnknown {
			t.Errorf("lost as %d: %v", lost, err)
		}
	}
}

// TestSameVersion has two writers choose the same version, as they do when both
// take one more than the last: the version alone does not say whose write it is.
func TestSameVersion(t *testing.T) {
	tb := newTables(t)
	const id doc.ID = "same/1"
	for name, cond := range map[string]doc.Condition{"blind": {}, "create only": {Absent: true}} {
		f := &faults{}
		st := tb.open(f)
		if _, err := st.Put(t.Context(), "same/other", data(""), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
		tb.remove(t, id)
		f.rebase()
		f.plan = func(op string, n int) fault {
			if op == "UpdateItem" && n == f.base(op) {
				return lostBefore
			}
			return fine
		}
		var theirs string
		f.after = func(op string, n int) {
			if op != "UpdateItem" || n != f.base(op) {
				return
			}
			var request struct {
				ExpressionAttributeValues map[string]struct{ N string }
			}
			// Other values are of other types; only the number is wanted.
			_ = json.Unmarshal([]byte(f.body), &request)
			theirs = request.ExpressionAttributeValues[":version"].N
			tb.put(t, id, item{"version": number(theirs), "bucket": number("0"), "nonce": text("theirs"), "createdAt": number(theirs), "data": object(item{"text": text("theirs")})})
		}
		w, err := st.Put(t.Context(), id, data("mine"), cond)
		got, loadErr := tb.open(nil).Load(t.Context(), id)
		if loadErr != nil {
			t.Fatal(loadErr)
		}
		if cond.Absent {
			if doc.KindOf(err) != doc.VersionConflict || got.Data["text"] != "theirs" {
				t.Errorf("%s: %+v, %v; %v is there", name, w, err, got.Data)
			}
		} else if err != nil || w.Created || w.Version.String() <= theirs || got.Data["text"] != "mine" {
			t.Errorf("%s: %+v, %v; %v is there", name, w, err, got.Data)
		}
	}
}

// TestNotApplied has a refusal that settles an unclear attempt: the id stands
// where it stood, so the attempt was not applied.
func TestNotApplied(t *testing.T) {
	tb := newTables(t)
	f := &faults{}
	s := tb.open(f)
	w, err := s.Put(t.Context(), "not/1", data("before"), doc.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	f.rebase()
	f.plan = func(op string, n int) fault {
		if op == "UpdateItem" && n == f.base(op) {
			return lostBefore
		}
		return fine
	}
	for name, cond := range map[string]doc.Condition{
		"create only": {Absent: true}, "of another version": {Exists: true, AnyOf: []doc.Version{w.Version - 1}},
	} {
		f.rebase()
		_, err := s.Put(t.Context(), "not/1", data("mine"), cond)
		var e *doc.Error
		if doc.KindOf(err) != doc.VersionConflict || !errors.As(err, &e) || e.Members["actual"] != w.Version {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := revision(t, s, "not/1"); got.Version != w.Version {
		t.Errorf("stands at %d, written %d", got.Version, w.Version)
	}
}

// TestNoAnswer has the engine away, or silent, for as long as the caller waits.
func TestNoAnswer(t *testing.T) {
	tb := newTables(t)
	for _, c := range []struct {
		fault fault
		write doc.Kind
		read  doc.Kind
	}{
		{dialRefused, doc.Unavailable, doc.Unavailable},
		{throttled, doc.Throttled, doc.Throttled},
		{lostBefore, doc.OutcomeUnknown, doc.Unavailable},
		{failedPlain, doc.OutcomeUnknown, doc.Unavailable},
		{hang, doc.OutcomeUnknown, doc.Unavailable},
	} {
		f := &faults{}
		s := tb.open(f)
		if _, err := s.Put(t.Context(), "no/1", data("before"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
		f.plan = func(string, int) fault { return c.fault }
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := s.Put(ctx, "no/1", data("after"), doc.Condition{})
		checkEngineError(t, "put", err, c.write)
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		_, err = s.Load(ctx, "no/1")
		checkEngineError(t, "load", err, c.read)
		_, err = s.LoadMany(ctx, []doc.ID{"no/1"}, 0)
		checkEngineError(t, "load many", err, c.read)
		_, err = s.Changes(ctx, store.ChangesQuery{})
		checkEngineError(t, "changes", err, c.read)
		cancel()
	}
}

// checkEngineError sees that an error has a kind, keeps its cause and tells the
// caller nothing of the engine.
func checkEngineError(t *testing.T, what string, err error, kind doc.Kind) {
	t.Helper()
	var e *doc.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("%s: %v, want %s", what, err, kind)
		return
	}
	if e.Unwrap() == nil {
		t.Errorf("%s: no cause", what)
	}
	shown, _ := json.Marshal(e.Members)
	for _, word := range []string{"Dynamo", "operation error", "https response", "RequestID", "Exception", "dial"} {
		if strings.Contains(e.Detail+string(shown), word) {
			t.Errorf("%s: the caller is told %q", what, e.Detail)
		}
	}
}
