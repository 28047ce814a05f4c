package jobs

import (
	"fmt"
	"time"
)

// Situation is what is known at a moment about the way from the table to the
// index. What could not be found out is nil.
type Situation struct {
	Now         time.Time
	Indexes     []IndexSituation // those that queries read, and those that are being built
	FeedLag     *time.Duration   // how long the table's change feed took to show a write; nil: longer than was waited for
	Margin      time.Duration    // what is allowed for it; zero: it was not measured
	Lag         *time.Duration   // how long changes take to the index
	Pending     *int             // messages on their way to the index
	DeadLetters *int             // messages that the indexer failed at again and again
	GivenUp     *int             // messages about changes that never left the table's stream
	Quarantined int              // documents that are not indexed in full
	ComparedAt  time.Time        // when the last full comparison began; zero: there was none
	Differences int              // what it found
	Unhealed    int              // at least so many of them are still there, in indexes that queries read
	Jobs        []JobSituation
}

// IndexSituation is what is known of one generation of an index.
type IndexSituation struct {
	Name       string // for people, such as "the shared index"
	Generation int
	Building   bool      // queries do not read it yet
	Through    time.Time // the index is proven complete up to here; zero: nothing is proven
	Missing    int       // changes that it lacked when it was last compared with the feed
	Moved      time.Time // of one that is being built: when that last went on
}

// JobSituation is what is known of a job.
type JobSituation struct {
	Name    string
	Every   time.Duration // how often it is to run; zero: only when somebody asks for it
	Started time.Time     // of the last run; zero: there was none
	Failed  bool          // the last run that ended failed
	Error   string
}

// Problem is something that is not as it should be.
type Problem struct {
	Type   string `json:"type"`   // stable, for programs
	Detail string `json:"detail"` // a sentence about what is wrong
	Action string `json:"action"` // what a person can do about it
}

// Limits of what is taken for healthy.
const (
	// ProofLife is how old a proof may be, or more where repair runs less often
	// than every minute. Each run makes a new one, which reaches to the feed's
	// margin before its own beginning.
	ProofLife = 5 * time.Minute
	// LagLimit is how long a change may take to the index.
	LagLimit = 5 * time.Minute
	// BuildLimit is how long a build may stand still.
	BuildLimit = 15 * time.Minute
	// missedRuns is how many runs of a schedule may be missed.
	missedRuns = 5
)

// Judge says what is not as it should be, the most urgent first. A situation
// without problems is a healthy one.
func Judge(s Situation) []Problem {
	j := &judgement{now: s.Now}
	for _, job := range s.Jobs {
		j.job(job)
	}
	j.letters(s)
	life := ProofLife
	for _, job := range s.Jobs {
		life = max(life, missedRuns*job.Every)
	}
	for _, index := range s.Indexes {
		j.index(index, life)
	}
	j.feed(s)
	j.lag(s)
	if s.Quarantined > 0 {
		j.add("quarantine", fmt.Sprintf("%s not indexed in full. Loads and saves are as always.", count(s.Quarantined, "document is", "documents are")),
			"Look at the reasons: holdfast quarantine list. Change the documents, or what is declared of their collection; then: holdfast quarantine retry.")
	}
	if s.Unhealed > 0 {
		j.add("differences", fmt.Sprintf("The full comparison of %s found %s between table and index, of which %s.",
			moment(s.ComparedAt), count(s.Differences, "difference", "differences"), count(s.Unhealed, "is not healed yet", "are not healed yet")),
			"See which and why: holdfast jobs repair. They were signalled to be indexed again; compare again: holdfast jobs run repair --mode compare.")
	}
	return j.problems
}

// judgement collects problems.
type judgement struct {
	now      time.Time
	problems []Problem
}

func (j *judgement) add(kind, detail, action string) {
	j.problems = append(j.problems, Problem{Type: kind, Detail: detail, Action: action})
}

func (j *judgement) job(job JobSituation) {
	look := "Look into the log of the function " + job.Name + "."
	switch {
	case job.Failed:
		j.add("job-failing", fmt.Sprintf("The last run of %s failed: %s.", job.Name, job.Error), look)
	case job.Every == 0:
	case job.Started.IsZero():
		j.add("job-never-ran", fmt.Sprintf("%s has never run. It is to run %s.", job.Name, every(job.Every)),
			"Wait for its first run; if that does not come, see whether its schedule is enabled.")
	case j.now.Sub(job.Started) > missedRuns*job.Every:
		j.add("job-late", fmt.Sprintf("%s last ran at %s. It is to run %s.", job.Name, moment(job.Started), every(job.Every)),
			"See whether its schedule is enabled. "+look)
	}
}

func (j *judgement) letters(s Situation) {
	if s.DeadLetters == nil || s.GivenUp == nil || s.Pending == nil {
		j.add("queues-unknown", "The queues do not tell how many messages they hold.", "Ask again. If it stays so, look into the log of the function admin.")
	}
	if n := s.DeadLetters; n != nil && *n > 0 {
		j.add("dead-letters", fmt.Sprintf("The indexer failed at %s again and again.", count(*n, "message", "messages")),
			"See what is in them: holdfast dead-letters list. When the cause is gone: holdfast dead-letters redrive.")
	}
	if n := s.GivenUp; n != nil && *n > 0 {
		j.add("changes-given-up", fmt.Sprintf("The relay gave up changes of the table; %s where.", count(*n, "message says", "messages say")),
			"Find what they were about: holdfast jobs run repair --mode compare. Then: holdfast dead-letters redrive --discard.")
	}
}

func (j *judgement) index(x IndexSituation, life time.Duration) {
	switch age := j.now.Sub(x.Through); {
	case x.Building:
		if still := j.now.Sub(x.Moved); still > BuildLimit {
			j.add("build-stuck", fmt.Sprintf("The build of %s, generation %d, has not gone on for %s.", x.Name, x.Generation, span(still)),
				"See what repair says: holdfast jobs repair.")
		}
	case x.Through.IsZero():
		j.add("not-proven", fmt.Sprintf("Nothing is proven yet about %s.", x.Name),
			"Wait for the first proofs, which take a few minutes. If they do not come: holdfast jobs repair.")
	case age > life:
		detail := fmt.Sprintf("%s is proven complete only up to %s, %s ago", sentence(x.Name), moment(x.Through), span(age))
		if x.Missing > 0 {
			detail += fmt.Sprintf("; it lacked %s", count(x.Missing, "change", "changes"))
		}
		j.add("proof-old", detail+".", "See whether OpenSearch answers, and whether the indexer and repair fail: holdfast jobs repair.")
	}
}

func (j *judgement) feed(s Situation) {
	if s.Margin == 0 || s.FeedLag != nil && *s.FeedLag <= s.Margin/2 {
		return
	}
	behind := "more than " + span(s.Margin/2)
	if s.FeedLag != nil {
		behind = span(*s.FeedLag)
	}
	j.add("feed-slow", fmt.Sprintf("The table's change feed was %s behind. Nothing is proven while that is above half of its margin of %s.", behind, span(s.Margin)),
		"See whether the table's index changes is throttled. If the feed is always so slow, raise HOLDFAST_FEED_MARGIN.")
}

func (j *judgement) lag(s Situation) {
	if s.Lag == nil || *s.Lag <= LagLimit {
		return
	}
	detail := fmt.Sprintf("Changes take %s to the index", span(*s.Lag))
	if s.Pending != nil {
		detail += fmt.Sprintf(", and about %s", count(*s.Pending, "message waits", "messages wait"))
	}
	j.add("lag", detail+".", "After a large import, wait. Otherwise see whether the indexer fails, and whether OpenSearch has room for more indexers.")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// moment is a time as people read it.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// span is a length of time as people say it: seconds up to two minutes, minutes
// up to two hours, then hours.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

func every(d time.Duration) string { return "every " + span(d) }

// sentence is a name at the beginning of one.
func sentence(name string) string {
	if name != "" && name[0] >= 'a' && name[0] <= 'z' {
		return string(name[0]-'a'+'A') + name[1:]
	}
	return name
}
