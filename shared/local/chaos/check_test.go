package chaos

import (
	"maps"
	"slices"
	"testing"
	"time"

	"holdfast/shared/doc"
)

// put, remove and their variants are writes of a test. at is when they began and
// ended, in seconds.
func put(id doc.ID, version doc.Version, sum string, at int) write {
	return write{id: id, version: version, sum: sum, outcome: acknowledged, begun: time.Duration(at) * time.Second, ended: time.Duration(at) * time.Second}
}

func remove(id doc.ID, version doc.Version, at int) write {
	w := put(id, version, "", at)
	w.delete = true
	return w
}

func with(w write, o outcome) write {
	w.outcome = o
	if o != acknowledged {
		w.version = 0
	}
	return w
}

func under(w write, base doc.Version) write {
	w.base = base
	return w
}

// healthy is what a run without fault leaves: a/1 with two writes, a/2 deleted,
// twice at once and then by one who found nothing, a/3 by a write whose answer
// was lost, a/4 that was refused, a/5 that was written again after its delete.
func healthy() seen {
	s := seen{
		writes: map[doc.ID][]write{},
		table: map[doc.ID]held{
			"a/1": {20, "one b"}, "a/3": {40, "three"}, "a/5": {53, "five c"},
		},
		feed: map[doc.ID]standing{
			"a/1": {20, false}, "a/2": {31, true}, "a/3": {40, false}, "a/5": {53, false},
		},
		index: []found{{"a/1", held{20, "one b"}}, {"a/3", held{40, "three"}}, {"a/5", held{53, "five c"}}},
	}
	for _, w := range []write{
		put("a/1", 10, "one a", 1), under(put("a/1", 20, "one b", 2), 10),
		put("a/2", 30, "two", 1), remove("a/2", 31, 2), remove("a/2", 31, 2), remove("a/2", 0, 3),
		with(put("a/3", 0, "three", 1), unknown), with(put("a/3", 0, "three too", 1), refused),
		with(put("a/4", 0, "four", 1), refused), with(remove("a/4", 0, 1), unknown),
		put("a/5", 51, "five a", 1), remove("a/5", 52, 2), put("a/5", 53, "five c", 3),
	} {
		s.writes[w.id] = append(s.writes[w.id], w)
	}
	s.sights = []sight{
		{"a/1", 1500 * time.Millisecond, true, held{10, "one a"}}, // before the second write
		{"a/1", 1500 * time.Millisecond, true, held{20, "one b"}}, // or just after
		{"a/2", 2500 * time.Millisecond, false, held{}},
		{"a/3", 2500 * time.Millisecond, true, held{40, "three"}},
		{"a/4", 2500 * time.Millisecond, false, held{}},
		{"a/5", 2500 * time.Millisecond, false, held{}},
	}
	return s
}

func TestWhatIsAsPromisedIsNoFinding(t *testing.T) {
	if f := check(healthy()); !f.None() || len(f.Examples) > 0 {
		t.Errorf("%+v", f)
	}
}

// Each of these breaks a promise, and is seen as what it is and nothing else.
func TestEveryBrokenPromiseIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		breakIt func(s *seen)
		want    Findings
	}{
		"an acknowledged write is gone": {func(s *seen) {
			delete(s.table, "a/1")
			delete(s.feed, "a/1")
			s.index = s.index[1:]
		}, Findings{Lost: 1}},
		"an older version stands": {func(s *seen) {
			s.table["a/1"], s.feed["a/1"], s.index[0].held = held{10, "one a"}, standing{10, false}, held{10, "one a"}
		}, Findings{Lost: 1}},
		"a delete was undone": {func(s *seen) {
			s.table["a/2"], s.feed["a/2"] = held{30, "two"}, standing{30, false}
			s.index = append(s.index, found{"a/2", held{30, "two"}})
		}, Findings{Lost: 1}},
		"a document was deleted by nobody": {func(s *seen) {
			delete(s.table, "a/1")
			s.feed["a/1"] = standing{21, true}
			s.index = s.index[1:]
		}, Findings{Lost: 1}},
		"the content is nobody's": {func(s *seen) {
			s.table["a/1"], s.index[0].held = held{20, "rubbish"}, held{20, "rubbish"}
		}, Findings{Lost: 1}},
		"an acknowledged version has another content": {func(s *seen) {
			s.writes["a/3"][0].version = 0
			s.writes["a/3"] = append(s.writes["a/3"], put("a/3", 40, "another", 2))
		}, Findings{Lost: 1}},
		"a write happened again later": {func(s *seen) {
			s.table["a/1"], s.feed["a/1"], s.index[0].held = held{22, "one b"}, standing{22, false}, held{22, "one b"}
		}, Findings{Duplicated: 1}},
		"two writes have one version": {func(s *seen) {
			s.writes["a/1"] = append(s.writes["a/1"], put("a/1", 20, "one c", 2))
		}, Findings{Duplicated: 1}},
		"a write has the version of a delete": {func(s *seen) {
			s.writes["a/2"] = append(s.writes["a/2"], put("a/2", 31, "two b", 2))
		}, Findings{Duplicated: 1}},
		"a query tells a document twice": {func(s *seen) { s.index = append(s.index, s.index[0]) }, Findings{Duplicated: 1}},
		"a refused write happened": {func(s *seen) {
			s.table["a/3"], s.index[1].held = held{40, "three too"}, held{40, "three too"}
		}, Findings{Disorder: 1}},
		"a refused delete happened": {func(s *seen) {
			s.writes["a/1"] = append(s.writes["a/1"], with(remove("a/1", 0, 3), refused))
			delete(s.table, "a/1")
			s.feed["a/1"] = standing{21, true}
			s.index = s.index[1:]
		}, Findings{Disorder: 1}},
		"a version went back": {func(s *seen) {
			s.writes["a/5"][0].begun, s.writes["a/5"][0].ended = 9*time.Second, 9*time.Second
		}, Findings{Disorder: 2}},
		"a write was lost to a condition": {func(s *seen) {
			s.writes["a/1"] = append(s.writes["a/1"], put("a/1", 15, "one c", 2))
		}, Findings{Disorder: 1}},
		"a load showed what was over": {func(s *seen) { s.sights[1].begun, s.sights[1].held = 3*time.Second, held{10, "one a"} }, Findings{Disorder: 1}},
		"a load showed nothing":       {func(s *seen) { s.sights[0] = sight{"a/1", 3 * time.Second, false, held{}} }, Findings{Disorder: 1}},
		"a load showed a document after its last delete": {func(s *seen) {
			s.sights[2] = sight{"a/2", 3 * time.Second, true, held{30, "two"}}
		}, Findings{Disorder: 1}},
		"a load showed nothing after a re-creation": {func(s *seen) { s.sights[5].begun = 4 * time.Second }, Findings{Disorder: 1}},
		"a load showed what was refused":            {func(s *seen) { s.sights[3].held = held{40, "three too"} }, Findings{Disorder: 1}},
		"a load showed what nobody wrote":           {func(s *seen) { s.sights[0].sum = "rubbish" }, Findings{Disorder: 1}},
		"the feed is behind the table":              {func(s *seen) { s.feed["a/1"] = standing{10, false} }, Findings{Disorder: 1}},
		"the feed knows no delete":                  {func(s *seen) { s.feed["a/2"] = standing{30, false} }, Findings{Disorder: 1, Lost: 1}},
		"a deleted document is found": {func(s *seen) {
			s.index = append(s.index, found{"a/2", held{30, "two"}})
		}, Findings{Extra: 1}},
		"a document is found that nobody wrote": {func(s *seen) {
			s.index = append(s.index, found{"a/9", held{1, "nine"}})
		}, Findings{Extra: 1}},
		"a document is there that nobody wrote": {func(s *seen) {
			s.table["a/9"], s.feed["a/9"] = held{1, "nine"}, standing{1, false}
			s.index = append(s.index, found{"a/9", held{1, "nine"}})
		}, Findings{Extra: 2}},
		"a document is not found": {func(s *seen) { s.index = s.index[1:] }, Findings{Unfound: 1}},
		"a document is found as it was": {func(s *seen) {
			s.index[0].held = held{10, "one a"}
		}, Findings{Unfound: 1}},
		"a document is found with another content": {func(s *seen) { s.index[0].sum = "one a" }, Findings{Unfound: 1}},
	} {
		s := healthy()
		for id, ws := range s.writes {
			s.writes[id] = slices.Clone(ws)
		}
		c.breakIt(&s)
		f := check(s)
		if got := (Findings{Lost: f.Lost, Duplicated: f.Duplicated, Extra: f.Extra, Unfound: f.Unfound, Disorder: f.Disorder}); got.Lost != c.want.Lost ||
			got.Duplicated != c.want.Duplicated || got.Extra != c.want.Extra || got.Unfound != c.want.Unfound || got.Disorder != c.want.Disorder {
			t.Errorf("%s: %+v, want %+v: %v", name, got, c.want, f.Examples)
		}
		if f.None() || len(f.Examples) == 0 {
			t.Errorf("%s: no example", name)
		}
	}
}

// What is waited for is what was acknowledged, as far as that can be told.
func TestWhatIsExpected(t *testing.T) {
	l := newLedger()
	l.writes = healthy().writes
	live, doubtful := l.expected()
	if !maps.Equal(live, map[doc.ID]held{"a/1": {20, "one b"}, "a/5": {53, "five c"}}) || !slices.Equal(doubtful, []doc.ID{"a/3", "a/4"}) {
		t.Errorf("%v, in doubt %v", live, doubtful)
	}
}

func TestKillsAreSpreadAndRepeat(t *testing.T) {
	all := plan(5, 23, time.Minute)
	if !slices.Equal(all, plan(5, 23, time.Minute)) || slices.Equal(all, plan(6, 23, time.Minute)) {
		t.Error("the plan is not the seed's")
	}
	who := map[string]int{}
	var before time.Duration
	for _, d := range all {
		who[d.who]++
		if d.at < before || d.at < 3*time.Second || d.at > 57*time.Second || d.down < 0 || d.down > longestDown {
			t.Errorf("%+v after %s", d, before)
		}
		before = d.at
	}
	for name, n := range who {
		if n < 4 || n > 5 {
			t.Errorf("%d kills of %s", n, name)
		}
	}
	if len(who) != 5 || who[everything] != 4 {
		t.Errorf("%v", who)
	}
	if first := plan(9, 4, time.Minute); len(slices.Collect(maps.Keys(countWho(first)))) != 4 {
		t.Errorf("four kills are %v", first)
	}
	if len(plan(1, 0, time.Minute)) != 0 {
		t.Error("kills where none were asked for")
	}
}

func countWho(all []death) map[string]int {
	who := map[string]int{}
	for _, d := range all {
		who[d.who]++
	}
	return who
}
