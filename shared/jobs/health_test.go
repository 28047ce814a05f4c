package jobs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	number := func(n int) *int { return &n }
	wait := func(d time.Duration) *time.Duration { return &d }
	read := func(change func(*IndexSituation)) func(*Situation) {
		return func(s *Situation) { change(&s.Indexes[0]) }
	}
	building := func(still time.Duration) func(*Situation) {
		return func(s *Situation) {
			s.Indexes = append(s.Indexes, IndexSituation{Name: "the shared index", Generation: 4, Building: true, Moved: now.Add(-still)})
		}
	}
	job := func(change func(*JobSituation)) func(*Situation) { return func(s *Situation) { change(&s.Jobs[0]) } }
	for name, c := range map[string]struct {
		change func(*Situation)
		want   string // types
		says   string // in the first detail
	}{
		"as it should be": {func(*Situation) {}, "", ""},
		"an old proof": {read(func(x *IndexSituation) { x.Through, x.Missing = now.Add(-6*time.Minute), 3 }),
			"proof-old", "The shared index is proven complete only up to 2026-03-10 11:54:00 UTC, 6 min ago; it lacked 3 changes."},
		"a proof about to be old": {read(func(x *IndexSituation) { x.Through = now.Add(-ProofLife) }), "", ""},
		"a proof of rare runs":    {func(s *Situation) { s.Jobs[0].Every, s.Indexes[0].Through = time.Hour, now.Add(-4*time.Hour) }, "", ""},
		"no proof":                {read(func(x *IndexSituation) { x.Through = time.Time{} }), "not-proven", "about the shared index"},
		"a slow feed":             {func(s *Situation) { s.FeedLag = wait(5001 * time.Millisecond) }, "feed-slow", "was 5 s behind. Nothing is proven while that is above half of its margin of 10 s."},
		"a feed that never shows": {func(s *Situation) { s.FeedLag = nil }, "feed-slow", "was more than 5 s behind"},
		"half a margin":           {func(s *Situation) { s.FeedLag = wait(5 * time.Second) }, "", ""},
		"no feed measured":        {func(s *Situation) { s.FeedLag, s.Margin = nil, 0 }, "", ""},
		"a build that goes on":    {building(BuildLimit), "", ""},
		"a build that does not":   {building(BuildLimit + time.Second), "build-stuck", "generation 4"},
		"no indexes":              {func(s *Situation) { s.Indexes = nil }, "", ""},
		"lag":                     {func(s *Situation) { s.Lag, s.Pending = wait(301*time.Second), number(1) }, "lag", "take 5 min to the index, and about 1 message waits."},
		"a little lag":            {func(s *Situation) { s.Lag = wait(LagLimit) }, "", ""},
		"no lag known":            {func(s *Situation) { s.Lag = nil }, "", ""},
		"quarantine":              {func(s *Situation) { s.Quarantined = 1 }, "quarantine", "1 document is not indexed in full. Loads and saves are as always."},
		"dead letters":            {func(s *Situation) { s.DeadLetters = number(2) }, "dead-letters", "2 messages"},
		"changes given up":        {func(s *Situation) { s.GivenUp = number(1) }, "changes-given-up", "1 message says where"},
		"queues that are silent":  {func(s *Situation) { s.Pending, s.DeadLetters, s.GivenUp = nil, nil, nil }, "queues-unknown", ""},
		"differences":             {func(s *Situation) { s.Differences, s.Unhealed, s.ComparedAt = 3, 1, now.Add(-time.Hour) }, "differences", "comparison of 2026-03-10 11:00:00 UTC found 3 differences between table and index, of which 1 is not healed yet."},
		"differences healed":      {func(s *Situation) { s.Differences, s.ComparedAt = 3, now.Add(-time.Hour) }, "", ""},
		"a failing job":           {job(func(j *JobSituation) { j.Failed, j.Error = true, "no answer" }), "job-failing", "The last run of repair failed: no answer."},
		"a job that never ran":    {job(func(j *JobSituation) { j.Started = time.Time{} }), "job-never-ran", "repair has never run. It is to run every 60 s."},
		"a late job":              {job(func(j *JobSituation) { j.Started = now.Add(-5*time.Minute - time.Second) }), "job-late", "last ran at 2026-03-10 11:54:59 UTC"},
		"a job just in time":      {job(func(j *JobSituation) { j.Started = now.Add(-5 * time.Minute) }), "", ""},
		"a job by hand":           {job(func(j *JobSituation) { j.Every, j.Started = 0, time.Time{} }), "", ""},
		"a failing job by hand":   {job(func(j *JobSituation) { j.Every, j.Failed = 0, true }), "job-failing", ""},
		"several at once": {func(s *Situation) {
			s.Jobs[0].Started, s.Quarantined, s.DeadLetters, s.Lag = time.Time{}, 7, number(1), wait(time.Hour)
			s.Indexes[0].Through = time.Time{}
		}, "job-never-ran dead-letters not-proven lag quarantine", ""},
	} {
		s := Situation{
			Now: now, FeedLag: wait(time.Second), Margin: 10 * time.Second, Lag: wait(time.Second), Pending: number(0), DeadLetters: number(0), GivenUp: number(0),
			Indexes: []IndexSituation{{Name: "the shared index", Generation: 3, Through: now.Add(-time.Minute)}},
			Jobs:    []JobSituation{{Name: "repair", Every: time.Minute, Started: now.Add(-time.Minute)}},
		}
		c.change(&s)
		problems := Judge(s)
		var got []string
		for _, p := range problems {
			got = append(got, p.Type)
			if p.Detail == "" || p.Action == "" || !strings.HasSuffix(p.Detail, ".") || !strings.HasSuffix(p.Action, ".") {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		if c.says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Detail, c.says)) {
			t.Errorf("%s: %+v does not say %q", name, problems, c.says)
		}
	}
}

func TestLengthsOfTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0 s", 119 * time.Second: "119 s", 2 * time.Minute: "2 min", 119 * time.Minute: "119 min", 50 * time.Hour: "50 h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
