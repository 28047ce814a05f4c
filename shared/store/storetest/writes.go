package storetest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
)

// conditions tries every condition against every way an id can stand.
func conditions(t *testing.T, b *bench) {
	const other doc.Version = 12345
	type state int
	const (
		never state = iota
		live
		gone
	)
	for _, c := range []struct {
		name string
		cond func(current doc.Version) doc.Condition
		from state
		ok   bool
		// of a refusal: whether the members are null
		expectedNull, actualNull bool
	}{
		{"nothing/never", func(doc.Version) doc.Condition { return doc.Condition{} }, never, true, false, false},
		{"nothing/live", func(doc.Version) doc.Condition { return doc.Condition{} }, live, true, false, false},
		{"nothing/gone", func(doc.Version) doc.Condition { return doc.Condition{} }, gone, true, false, false},
		{"absent/never", func(doc.Version) doc.Condition { return doc.Condition{Absent: true} }, never, true, false, false},
		{"absent/live", func(doc.Version) doc.Condition { return doc.Condition{Absent: true} }, live, false, true, false},
		{"absent/gone", func(doc.Version) doc.Condition { return doc.Condition{Absent: true} }, gone, true, false, false},
		{"exists/never", func(doc.Version) doc.Condition { return doc.Condition{Exists: true} }, never, false, false, true},
		{"exists/live", func(doc.Version) doc.Condition { return doc.Condition{Exists: true} }, live, true, false, false},
		{"exists/gone", func(doc.Version) doc.Condition { return doc.Condition{Exists: true} }, gone, false, false, true},
		{"version/never", func(doc.Version) doc.Condition { return is(other) }, never, false, false, true},
		{"version/live", func(v doc.Version) doc.Condition { return is(v) }, live, true, false, false},
		{"version/gone", func(v doc.Version) doc.Condition { return is(v) }, gone, false, false, true},
		{"other/live", func(doc.Version) doc.Condition { return is(other) }, live, false, false, false},
		{"one version/live", func(doc.Version) doc.Condition { return is(1) }, live, false, false, false},
		{"list/live", func(v doc.Version) doc.Condition { return is(other, v, 1<<52) }, live, true, false, false},
		{"list without/live", func(doc.Version) doc.Condition { return is(other, 1<<52, 1<<62) }, live, false, false, false},
		{"list/never", func(v doc.Version) doc.Condition { return is(other, 7) }, never, false, false, true},
		{"list/gone", func(v doc.Version) doc.Condition { return is(other, v) }, gone, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, write := range []string{"put", "delete"} {
				id := doc.ID("conditions/" + write + "-" + c.name[:3] + strconv.Itoa(int(c.from)) + strconv.Itoa(len(c.name)))
				var current doc.Version
				if c.from != never {
					current = b.put(t, id, counter(1)).Version
				}
				if c.from == gone {
					current = b.delete(t, id).Version
				}
				cond := c.cond(current)
				var w doc.Written
				var err error
				if write == "put" {
					w, err = b.Store.Put(b.ctx, id, counter(2), cond)
				} else if cond.Absent {
					continue // no delete demands absence
				} else {
					w, err = b.Store.Delete(b.ctx, id, cond)
				}
				if !c.ok {
					e := wantKind(t, err, doc.VersionConflict)
					if null := e.Members["expected"] == nil; null != c.expectedNull {
						t.Errorf("%s: expected %v", write, e.Members["expected"])
					}
					if c.actualNull != (e.Members["actual"] == nil) || !c.actualNull && e.Members["actual"] != current {
						t.Errorf("%s: actual %v, stands at %d", write, e.Members["actual"], current)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", write, err)
				}
				switch {
				case write == "put":
					if w.Version <= current || w.Created != (c.from != live) {
						t.Errorf("put: %+v over version %d", w, current)
					}
					if got := b.load(t, id); got.Version != w.Version {
						t.Errorf("loaded version %d, written %d", got.Version, w.Version)
					}
				case c.from == live:
					if w.Version <= current {
						t.Errorf("delete: %+v over version %d", w, current)
					}
				case w.Version != 0:
					t.Errorf("delete of nothing: %+v", w)
				}
			}
		})
	}
}

func is(versions ...doc.Version) doc.Condition {
	return doc.Condition{Exists: true, AnyOf: versions}
}

// oneWinner lets many create the same document at once.
func oneWinner(t *testing.T, b *bench) {
	for round, prepare := range []func(doc.ID){
		func(doc.ID) {},
		func(id doc.ID) { b.put(t, id, counter(0)); b.delete(t, id) },
	} {
		id := doc.ID(fmt.Sprintf("race/%d", round))
		prepare(id)
		var won atomic.Int32
		var winner atomic.Int64
		together(32, func(n int) {
			w, err := b.Store.Put(b.ctx, id, counter(n), doc.Condition{Absent: true})
			switch doc.KindOf(err) {
			case "":
				won.Add(1)
				winner.Store(int64(n))
				if !w.Created {
					t.Errorf("the winner did not create: %+v", w)
				}
			case doc.VersionConflict:
			default:
				t.Errorf("writer %d: %v", n, err)
			}
		})
		if won.Load() != 1 {
			t.Errorf("round %d: %d of 32 have won", round, won.Load())
		}
		b.same(t, id, counter(int(winner.Load())))
	}
	// Unconditional writes all win, and exactly one of them creates.
	var created atomic.Int32
	together(16, func(n int) {
		w, err := b.Store.Put(b.ctx, "race/blind", counter(n), doc.Condition{})
		if err != nil {
			t.Errorf("writer %d: %v", n, err)
		}
		if w.Created {
			created.Add(1)
		}
	})
	if created.Load() != 1 {
		t.Errorf("%d of 16 unconditional writes say they created the document", created.Load())
	}
	// Of simultaneous deletes one finds something to delete.
	var deleted atomic.Int32
	together(16, func(n int) {
		w, err := b.Store.Delete(b.ctx, "race/blind", doc.Condition{})
		if err != nil {
			t.Errorf("deleter %d: %v", n, err)
		}
		if w.Version != 0 {
			deleted.Add(1)
		}
	})
	if deleted.Load() != 1 {
		t.Errorf("%d of 16 deletes say they deleted the document", deleted.Load())
	}
}

// increments has several writers count under If-Match: none may be lost.
func increments(t *testing.T, b *bench) {
	const writers, each = 8, 10
	const id doc.ID = "increments/1"
	b.put(t, id, counter(0))
	together(writers, func(int) {
		for range each {
			for {
				d, err := b.Store.Load(b.ctx, id)
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				n, _ := strconv.Atoi(string(d.Data["n"].(json.Number)))
				_, err = b.Store.Put(b.ctx, id, counter(n+1), is(d.Version))
				if err == nil {
					break
				}
				if doc.KindOf(err) != doc.VersionConflict {
					t.Errorf("put: %v", err)
					return
				}
			}
		}
	})
	b.same(t, id, counter(writers*each))
}

// versions writes with clocks that step back and forth.
func versions(t *testing.T, b *bench) {
	const id doc.ID = "versions/1"
	var last doc.Version
	grows := func(what string, v doc.Version) {
		t.Helper()
		if v <= last {
			t.Errorf("%s: version %d after %d", what, v, last)
		}
		last = v
	}
	for _, off := range []time.Duration{0, -5 * time.Hour, 3 * time.Hour, -time.Minute, 0, -20 * time.Hour} {
		b.turn(off)
		grows("put", b.put(t, id, counter(1)).Version)
		grows("put again", b.put(t, id, counter(2)).Version)
		w, err := b.Store.Put(b.ctx, id, counter(3), is(last))
		if err != nil {
			t.Fatalf("put under the version: %v", err)
		}
		grows("put under the version", w.Version)
		grows("delete", b.delete(t, id).Version)
		w, err = b.Store.Put(b.ctx, id, counter(4), doc.Condition{Absent: true})
		if err != nil || !w.Created {
			t.Fatalf("re-creation: %+v, %v", w, err)
		}
		grows("re-creation", w.Version)
		if got := b.load(t, id); got.Version != last || got.UpdatedAt != last.Time() {
			t.Errorf("loaded version %d of %s, written %d", got.Version, got.UpdatedAt, last)
		}
	}
	// Many writers without conditions, each with its own idea of the time.
	var mu sync.Mutex
	seen := map[doc.Version]bool{}
	together(8, func(n int) {
		for range 5 {
			b.turn(time.Duration(n-4) * time.Hour)
			w, err := b.Store.Put(b.ctx, id, counter(n), doc.Condition{})
			if err != nil {
				t.Errorf("writer %d: %v", n, err)
				return
			}
			mu.Lock()
			if seen[w.Version] {
				t.Errorf("version %d was given twice", w.Version)
			}
			seen[w.Version] = true
			mu.Unlock()
		}
	})
	for v := range seen {
		last = max(last, v)
	}
	if got := b.load(t, id); got.Version != last {
		t.Errorf("stands at %d, the highest version given is %d", got.Version, last)
	}
}

// deletes looks at what is left of a document.
func deletes(t *testing.T, b *bench) {
	const id doc.ID = "deletes/1/part/2"
	if w := b.delete(t, id); w.Version != 0 || w.ID != id {
		t.Errorf("delete of an absent document: %+v", w)
	}
	first := b.put(t, id, counter(1))
	before := b.load(t, id)
	if !before.CreatedAt.Equal(before.UpdatedAt) {
		t.Errorf("a new document was created %s, updated %s", before.CreatedAt, before.UpdatedAt)
	}
	b.put(t, id, counter(2))
	if got := b.load(t, id); !got.CreatedAt.Equal(before.CreatedAt) || !got.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("replaced: created %s (was %s), updated %s (was %s)", got.CreatedAt, before.CreatedAt, got.UpdatedAt, before.UpdatedAt)
	}
	gone := b.delete(t, id)
	if gone.Version <= first.Version {
		t.Errorf("deleted at %d, created at %d", gone.Version, first.Version)
	}
	if _, err := b.Store.Load(b.ctx, id); doc.KindOf(err) != doc.NotFound {
		t.Errorf("load after delete: %v", err)
	}
	if w := b.delete(t, id); w.Version != 0 {
		t.Errorf("second delete: %+v", w)
	}
	again := b.put(t, id, counter(3))
	if got := b.load(t, id); !again.Created || !got.CreatedAt.After(before.CreatedAt) {
		t.Errorf("re-created: %+v, created %s, the life before %s", again, got.CreatedAt, before.CreatedAt)
	}
}

// againstModel runs random writes against a map that a person can check.
func againstModel(t *testing.T, b *bench) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		type entry struct {
			version doc.Version // of the live document, or 0
			highest doc.Version
			n       int
		}
		model := map[doc.ID]*entry{}
		for step := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			id := doc.ID(fmt.Sprintf("model/%d/part/%d", run, rapid.IntRange(0, 1).Draw(rt, "id")))
			e := model[id]
			if e == nil {
				e = &entry{}
				model[id] = e
			}
			b.turn(time.Duration(rapid.IntRange(-3, 3).Draw(rt, "clock")) * time.Hour)
			var cond doc.Condition
			switch rapid.IntRange(0, 4).Draw(rt, "condition") {
			case 1:
				cond = doc.Condition{Absent: true}
			case 2:
				cond = doc.Condition{Exists: true}
			case 3:
				cond = is(max(e.highest, 1))
			case 4:
				cond = is(99, max(e.version, 1))
			}
			refused := cond.Check(e.version) != nil
			var w doc.Written
			var err error
			if rapid.IntRange(0, 2).Draw(rt, "write") > 0 {
				w, err = b.Store.Put(b.ctx, id, counter(step), cond)
				if err == nil && (refused || w.Created != (e.version == 0) || w.Version <= e.highest) {
					rt.Fatalf("put %+v under %+v over %+v", w, cond, *e)
				}
				if err == nil {
					*e = entry{w.Version, w.Version, step}
				}
			} else {
				if cond.Absent {
					continue
				}
				w, err = b.Store.Delete(b.ctx, id, cond)
				if err == nil && (refused || (w.Version != 0) != (e.version != 0) || w.Version != 0 && w.Version <= e.highest) {
					rt.Fatalf("delete %+v under %+v over %+v", w, cond, *e)
				}
				if err == nil {
					*e = entry{0, max(e.highest, w.Version), 0}
				}
			}
			if err != nil && (!refused || doc.KindOf(err) != doc.VersionConflict) {
				rt.Fatalf("under %+v over %+v: %v", cond, *e, err)
			}
			got, err := b.Store.Load(b.ctx, id)
			switch {
			case e.version == 0 && doc.KindOf(err) != doc.NotFound:
				rt.Fatalf("load of nothing: %+v, %v", got, err)
			case e.version != 0 && (err != nil || got.Version != e.version || got.Data["n"] != counter(e.n)["n"]):
				rt.Fatalf("load: %+v, %v; want %+v", got, err, *e)
			}
		}
	})
}

// together runs f n times at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
