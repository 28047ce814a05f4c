package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"holdfast/shared/doc"
)

// outcome is what a writer was told about a write.
type outcome int

const (
	unknown      outcome = iota // nothing, or that nobody knows: it may have happened
	acknowledged                // it has happened
	refused                     // it has not happened
)

// write is one request to change one document.
type write struct {
	id      doc.ID
	delete  bool
	base    doc.Version // that the document had to be at; 0: any, or none
	sum     string      // of its content, which no other write has; "" of a delete
	begun   time.Duration
	ended   time.Duration
	outcome outcome
	answer  string      // when not acknowledged: what was answered instead
	version doc.Version // when acknowledged; 0: a delete that found nothing
}

// sight is what a load showed of a document in the middle of everything.
type sight struct {
	id    doc.ID
	begun time.Duration
	live  bool
	held
}

// ledger is the record of all writes. It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	writes  map[doc.ID][]write
	sights  []sight
	created []int // documents, by their number in the source, whose first write was acknowledged
	counts  struct{ acknowledged, unknown, refused, deletes, conditional int }
	answers map[string]int // instead of acknowledgements
	marks   int64
}

func newLedger() *ledger { return &ledger{writes: map[doc.ID][]write{}, answers: map[string]int{}} }

// mark is a number that is given out once.
func (l *ledger) mark() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks++
	return l.marks
}

// note keeps a write that has an outcome.
func (l *ledger) note(w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[w.id] = append(l.writes[w.id], w)
	if w.outcome != acknowledged {
		l.answers[w.answer]++
	}
	switch w.outcome {
	case unknown:
		l.counts.unknown++
	case refused:
		l.counts.refused++
	case acknowledged:
		l.counts.acknowledged++
		switch {
		case w.delete:
			l.counts.deletes++
		case w.base != 0:
			l.counts.conditional++
		}
	}
}

// saw keeps what a load showed.
func (l *ledger) saw(s sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sights = append(l.sights, s)
}

// imported notes that a document of the source has been written.
func (l *ledger) imported(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created = append(l.created, n)
}

// hot is how many of the newest documents get every third change.
const hot = 40

// pick chooses one of the documents that were written; ok is false while there
// are none.
func (l *ledger) pick(chance *rand.Rand) (n int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := len(l.created)
	if all == 0 {
		return 0, false
	}
	if chance.IntN(3) == 0 {
		return l.created[all-1-chance.IntN(min(hot, all))], true
	}
	return l.created[chance.IntN(all)], true
}

// newest is the highest version of a document that was acknowledged; 0 where the
// newest is a delete, or there is none.
func (l *ledger) newest(id doc.ID) doc.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	var top write
	for _, w := range l.writes[id] {
		if w.outcome == acknowledged && w.version > top.version {
			top = w
		}
	}
	if top.delete {
		return 0
	}
	return top.version
}

// expected is how the documents should stand by what was acknowledged, and of
// which that cannot be told, because the outcome of a write is unknown.
func (l *ledger) expected() (live map[doc.ID]held, doubtful []doc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live = map[doc.ID]held{}
	for id, writes := range l.writes {
		var top write
		sure := true
		for _, w := range writes {
			sure = sure && w.outcome != unknown
			if w.outcome == acknowledged && w.version > top.version {
				top = w
			}
		}
		switch {
		case !sure:
			doubtful = append(doubtful, id)
		case top.version > 0 && !top.delete:
			live[id] = held{version: top.version, sum: top.sum}
		}
	}
	slices.Sort(doubtful)
	return live, doubtful
}

// dump writes all writes to a file, one JSON object a line, for who looks into a
// finding.
func (l *ledger) dump(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(f)
	for _, id := range slices.Sorted(maps.Keys(l.writes)) {
		for _, w := range l.writes[id] {
			err = errors.Join(err, json.NewEncoder(lines).Encode(map[string]any{
				"id": id, "delete": w.delete, "base": w.base, "sum": w.sum, "begun": w.begun.Seconds(), "ended": w.ended.Seconds(),
				"outcome": [...]string{"unknown", "acknowledged", "refused"}[w.outcome], "answer": w.answer, "version": w.version,
			}))
		}
	}
	return errors.Join(err, lines.Flush(), f.Close())
}

// progress is how many documents were imported and how many writes acknowledged.
func (l *ledger) progress() (documents, writes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.created), l.counts.acknowledged
}
