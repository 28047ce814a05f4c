package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"holdfast/shared/jobs/repair"
)

// Result is what a run did and found.
type Result struct {
	Clean bool    `json:"clean"` // everything is as promised
	Seed  uint64  `json:"seed"`
	Rate  float64 `json:"faultRate"`

	Documents int          `json:"documents"` // that were imported
	Live      int          `json:"live"`      // that were there in the end
	Gone      int          `json:"gone"`      // that were deleted in the end
	Writes    WriteFigures `json:"writes"`

	Loads int `json:"loads"` // of documents, in the middle of it, that were answered

	Kills    map[string]int            `json:"kills"`    // by what was killed
	Stacks   int                       `json:"stacks"`   // processes of the stack that served, one after the other
	Requests map[string]int            `json:"requests"` // between functions and engines, by engine
	Faults   map[string]map[string]int `json:"faults"`   // that these met, by engine and fault
	Seconds  Seconds                   `json:"seconds"`

	// Backlog is about how many documents the index lacked, or had as they were,
	// when the faults ended.
	Backlog    int                 `json:"backlog"`
	Repair     RepairFigures       `json:"repair"`
	Comparison *repair.PassFigures `json:"comparison"` // of everything, in the end

	Findings
	Problems []string `json:"problems,omitempty"` // what else is not as it should be
}

// WriteFigures count writes by what their writers were told. A write that is tried
// again is another one.
type WriteFigures struct {
	Acknowledged int `json:"acknowledged"`
	Deletes      int `json:"deletes"`     // of these
	Conditional  int `json:"conditional"` // of these, under the condition of a version
	Unknown      int `json:"unknown"`     // may have happened
	Refused      int `json:"refused"`     // have not happened

	// Answers count those that were not acknowledged by the kind of the answer.
	Answers map[string]int `json:"answers"`
}

// Seconds are how long the parts of a run took.
type Seconds struct {
	Start    float64 `json:"start"`    // of the engines and the first stack
	Import   float64 `json:"import"`   // with kills and faults
	Converge float64 `json:"converge"` // from the end of the faults until index and table agreed
	Prove    float64 `json:"prove"`    // from there, too, until that was proven
	Total    float64 `json:"total"`
}

// sum fills in the figures, and says whether all is as promised.
func (x *run) sum(r *Result) {
	l := x.ledger
	r.Writes = WriteFigures{
		Acknowledged: l.counts.acknowledged, Deletes: l.counts.deletes, Conditional: l.counts.conditional,
		Unknown: l.counts.unknown, Refused: l.counts.refused, Answers: l.answers,
	}
	r.Kills = x.kills.all()
	r.Requests, r.Faults = map[string]int{}, map[string]map[string]int{}
	for _, g := range x.gates {
		r.Requests[string(g.engine)], r.Faults[string(g.engine)] = g.figures()
	}
	r.Repair = x.watch.figures()
	if r.Repair.Drift > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%d documents differed where the index had been proven", r.Repair.Drift))
	}
	lives, _, crashes := x.stack.figures()
	r.Stacks = lives
	for _, c := range crashes {
		r.Problems = append(r.Problems, "the stack ended, and was not killed: "+c)
	}
	if n, err := countPanics(filepath.Join(x.Dir, "log")); err != nil {
		r.Problems = append(r.Problems, "the functions' log cannot be read: "+err.Error())
	} else if n > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("functions panicked %d times, see their log", n))
	}
	r.Seconds.Total = x.age().Seconds()
	for _, s := range []*float64{&r.Seconds.Start, &r.Seconds.Import, &r.Seconds.Converge, &r.Seconds.Prove, &r.Seconds.Total} {
		*s = math.Round(*s*1000) / 1000
	}
	if r.Clean = r.None() && len(r.Problems) == 0; r.Clean {
		return
	}
	if err := l.dump(filepath.Join(x.Dir, recordName)); err != nil {
		r.Problems = append(r.Problems, "the record of the writes cannot be kept: "+err.Error())
	}
}

// recordName is the file in the run's directory that gets the record of all
// writes where something is not as promised.
const recordName = "writes.ndjson"

// countPanics counts the panics in the logs of the functions.
func countPanics(dir string) (n int, err error) {
	for _, name := range []string{"functions.log.1", "functions.log"} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return n, err
		}
		lines := bufio.NewReader(f)
		for {
			line, err := lines.ReadString('\n')
			if strings.Contains(line, "a function panicked") {
				n++
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					return n, errors.Join(err, f.Close())
				}
				break
			}
		}
		if err := f.Close(); err != nil {
			return n, err
		}
	}
	return n, nil
}
