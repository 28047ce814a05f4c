package freshness_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/store"
)

// library is a registry with families of different kinds, and what is proven of
// them.
type library struct {
	definitions map[doc.Collection]collection.Definition
	generations map[collection.Family][]collection.Generation
	proofs      []store.Proof
	err         error
	asked       int
	looked      map[collection.Family]int // lookups of generations
	uuids       map[int]string            // of the indexes that are there, by generation
	uuidErr     error
	looks       int
}

func (l *library) UUID(_ context.Context, g collection.Generation) (string, error) {
	l.looks++
	return l.uuids[g.Number], l.uuidErr
}

func (l *library) Definition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	if d, ok := l.definitions[c]; ok {
		return d, nil
	}
	return collection.Definition{Name: c}, nil
}

func (l *library) Generations(_ context.Context, f collection.Family) ([]collection.Generation, error) {
	if l.looked == nil {
		l.looked = map[collection.Family]int{}
	}
	l.looked[f]++
	return l.generations[f], nil
}

func (l *library) Proofs(context.Context) ([]store.Proof, error) {
	l.asked++
	return l.proofs, l.err
}

func TestProofOfWhatQueriesRead(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 5, 1, 12, 0, s, 0, time.UTC) }
	long := at(0).Add(-time.Hour)
	shared := collection.SharedFamily
	l := &library{
		definitions: map[doc.Collection]collection.Definition{
			"own": {Name: "own", Index: collection.Own},
			// On its way to an index of its own, and read in the shared one.
			"moving": {Name: "moving", Text: []string{"t"}, Serving: &collection.Form{}},
			// It has got there, and not everybody knows.
			"moved":    {Name: "moved", Text: []string{"t"}, Serving: &collection.Form{}, Moved: true},
			"empty":    {Name: "empty", Index: collection.Own},
			"new":      {Name: "new", Index: collection.Own},
			"replaced": {Name: "replaced", Index: collection.Own},
			"nameless": {Name: "nameless", Index: collection.Own},
		},
		generations: map[collection.Family][]collection.Generation{
			shared: {
				{Family: shared, Number: 1, State: collection.Retired, Since: long}, {Family: shared, Number: 2, State: collection.Active},
				{Family: shared, Number: 3, State: collection.Building},
			},
			"own":   {{Family: "own", Number: 1, State: collection.Active}, {Family: "own", Number: 2, State: collection.Active}},
			"new":   {{Family: "new", Number: 1, State: collection.Active}},
			"moved": {{Family: "moved", Number: 1, State: collection.Active}},
			// A query may still be reading the one that was given up just now.
			"replaced": {{Family: "replaced", Number: 1, State: collection.Retired, Since: at(0).Add(-30 * time.Second)}, {Family: "replaced", Number: 2, State: collection.Active}},
			"nameless": {{Family: "nameless", Number: 1, State: collection.Active}},
		},
		proofs: []store.Proof{
			{Family: shared, Generation: 1, Index: "a", Through: at(50), At: at(59)},
			{Family: shared, Generation: 2, Index: "b", Through: at(20), At: at(30), FeedLag: time.Second, Margin: 10 * time.Second, Missing: 2, OldestMissing: at(25)},
			{Family: shared, Generation: 3, Index: "c", Through: at(40), At: at(49)},
			{Family: "own", Generation: 1, Index: "d", Through: at(35), At: at(36)},
			{Family: "own", Generation: 2, Index: "e", Through: at(30), At: at(29), FeedLag: 3 * time.Second, Margin: 5 * time.Second, Missing: 1, OldestMissing: at(28)},
			{Family: "new", Generation: 1, Index: "f"}, // dropped
			{Family: "moving", Generation: 1, Index: "g", Through: at(1), At: at(1)},
			{Family: "moved", Generation: 1, Index: "h", Through: at(45), At: at(46)},
			{Family: "replaced", Generation: 1, Index: "i", Through: at(3), At: at(4)},
			{Family: "replaced", Generation: 2, Index: "j", Through: at(45), At: at(46)},
			{Family: "nameless", Generation: 1, Through: at(45), At: at(46)}, // of an index that nobody can tell from others
		},
	}
	now := at(0)
	book := freshness.NewProofBook(l, l, l, func() time.Time { return now })
	read := func(c doc.Collection, f collection.Family, n int) map[doc.Collection]collection.Generation {
		return map[doc.Collection]collection.Generation{c: {Family: f, Number: n}}
	}
	for _, c := range []struct {
		collections []doc.Collection
		read        map[doc.Collection]collection.Generation
		through     time.Time // zero: nothing is proven
		at          time.Time
		lag         time.Duration
		missing     int
		of          string // the indexes
	}{
		{[]doc.Collection{"users"}, nil, at(20), at(30), time.Second, 2, "b"},
		{[]doc.Collection{"users", "others", "moving"}, nil, at(20), at(30), time.Second, 2, "b"},
		{[]doc.Collection{"own"}, nil, at(30), at(29), 3 * time.Second, 1, "de"},
		{[]doc.Collection{"own", "users"}, nil, at(20), at(29), 3 * time.Second, 3, "deb"},
		{[]doc.Collection{"moved"}, nil, at(20), at(30), time.Second, 2, "hb"},
		{[]doc.Collection{"replaced"}, nil, at(3), at(4), 0, 0, "ij"},
		{[]doc.Collection{"users", "new"}, nil, time.Time{}, time.Time{}, 0, 0, ""},
		{[]doc.Collection{"empty"}, nil, time.Time{}, time.Time{}, 0, 0, ""},
		{[]doc.Collection{"nameless"}, nil, time.Time{}, time.Time{}, 0, 0, ""},
		{nil, nil, time.Time{}, time.Time{}, 0, 0, ""},
		// What is read is what counts, whatever else there is by now.
		{[]doc.Collection{"users"}, read("users", shared, 1), at(50), at(59), 0, 0, "a"},
		{[]doc.Collection{"moved"}, read("moved", shared, 2), at(20), at(30), time.Second, 2, "b"},
		{[]doc.Collection{"replaced"}, read("replaced", "replaced", 2), at(45), at(46), 0, 0, "j"},
		{[]doc.Collection{"users", "own"}, read("users", shared, 2), time.Time{}, time.Time{}, 0, 0, ""}, // nowhere
	} {
		p, ok, err := book.Proof(t.Context(), c.collections, c.read)
		if err != nil || ok == c.through.IsZero() {
			t.Errorf("%v: %v %v", c.collections, ok, err)
			continue
		}
		of := ""
		for _, i := range p.Indexes {
			of += i.UUID
		}
		if ok && (!p.Through.Equal(c.through) || !p.At.Equal(c.at) || p.FeedLag != c.lag || p.Missing != c.missing || of != c.of) {
			t.Errorf("%v: %+v", c.collections, p)
		}
	}
	if l.asked != 1 || l.looked[shared] != 1 || l.looked["own"] != 1 {
		t.Errorf("the records were read %d times, the generations %v", l.asked, l.looked)
	}
	now, l.err = at(2), errors.New("does not answer")
	if _, ok, err := book.Proof(t.Context(), []doc.Collection{"users"}, nil); ok || err == nil {
		t.Error("something is proven that could not be read")
	}
}

// A proof stands as long as the very indexes that it is about are there. Looks
// are shared by those who can do with one of the last two seconds.
func TestAProofStandsWithItsIndexes(t *testing.T) {
	l := &library{uuids: map[int]string{1: "one", 2: "two"}}
	now := time.Unix(1_800_000_000, 0)
	book := freshness.NewProofBook(l, l, l, func() time.Time { return now })
	p := freshness.Proof{Indexes: []freshness.ProvenIndex{{Generation: collection.Generation{Number: 1}, UUID: "one"}, {Generation: collection.Generation{Number: 2}, UUID: "two"}}}
	stands := func(what string, age time.Duration, want bool, looks int) {
		t.Helper()
		before := l.looks
		got, err := book.Stands(t.Context(), p, age)
		if got != want || (err != nil) != (l.uuidErr != nil) || l.looks-before != looks {
			t.Errorf("%s: %v %v after %d looks", what, got, err, l.looks-before)
		}
	}
	const life = 2 * time.Second
	stands("both are there", life, true, 2)
	now = now.Add(life - 1)
	stands("they were just there", life, true, 0)
	l.uuids[2] = "three"
	stands("that was before", life, true, 0)
	stands("one is another one", 0, false, 2)
	stands("which is remembered", life, false, 0)
	l.uuids[2] = ""
	stands("one is gone", 0, false, 2)
	now = now.Add(life)
	l.uuids[2] = "two"
	stands("that is long ago", life, true, 2)
	now, l.uuidErr = now.Add(life), errors.New("does not answer")
	stands("nobody answers", life, false, 1)
	stands("that is not tried again", life, false, 0)
	stands("unless it has to be", 0, false, 1)
	l.uuidErr = nil
	now = now.Add(life)
	stands("somebody answers again", life, true, 2)
	now = now.Add(-time.Hour)
	stands("the clock was set back", life, true, 2)
	p.Indexes = nil
	stands("a proof of nothing", life, false, 0)
}

// hanging is an index that does not answer.
type hanging struct{}

func (hanging) UUID(ctx context.Context, _ collection.Generation) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// An index that keeps everybody waiting costs one query a second, not each.
func TestALookDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := collection.SharedFamily
		l := &library{
			generations: map[collection.Family][]collection.Generation{shared: {{Family: shared, Number: 1, State: collection.Active}}},
			proofs:      []store.Proof{{Family: shared, Generation: 1, Index: "one", Through: time.Now(), At: time.Now()}},
		}
		g := &gauges{}
		r := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g, Proofs: freshness.NewProofBook(l, l, hanging{}, nil)})
		began := time.Now()
		for range 10 {
			if s := r.Staleness(t.Context(), []doc.Collection{"users"}, freshness.Waited{}); s.ProvenThrough != nil {
				t.Errorf("%+v", s)
			}
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}
