package chaos

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"holdfast/shared/jobs/repair"
)

// watch follows what repair says about its runs. It sees a run's report until the
// next run ends, so it may miss some.
type watch struct {
	mu          sync.Mutex
	last        string // when the run began that was seen last
	runs        int
	failed      int
	resignalled int
	drift       int
	passes      map[time.Time]bool // comparisons that were seen ended
}

// repairRun is what a stack tells of the last run of repair.
type repairRun struct {
	Started string
	Outcome string
	Error   string
	Detail  json.RawMessage
}

func (r repairRun) report() (report repair.Report, err error) {
	if len(r.Detail) == 0 {
		return report, nil
	}
	return report, json.Unmarshal(r.Detail, &report)
}

// watchEvery is how often repair is looked at.
const watchEvery = time.Second

func (w *watch) run(ctx context.Context, a *api) {
	for sleep(ctx, watchEvery) {
		status, answer, err := a.send(ctx, http.MethodGet, "/jobs/repair", nil, nil)
		var job struct{ Last *repairRun }
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &job) != nil || job.Last == nil {
			continue // the stack is away
		}
		w.note(*job.Last)
	}
}

func (w *watch) note(r repairRun) {
	report, err := r.report()
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Started == w.last {
		return
	}
	w.last = r.Started
	w.runs++
	if r.Outcome == "failed" {
		w.failed++
	}
	w.resignalled += report.Resignalled
	w.drift += report.Drift
	if report.LastPass != nil {
		if w.passes == nil {
			w.passes = map[time.Time]bool{}
		}
		w.passes[report.LastPass.Started] = true
	}
}

// RepairFigures are about the runs of repair that were seen.
type RepairFigures struct {
	Runs        int `json:"runs"`
	Failed      int `json:"failed"`      // runs that a fault ended
	Comparisons int `json:"comparisons"` // that came to their end
	Resignalled int `json:"resignalled"` // signals sent again
	Drift       int `json:"drift"`       // differences where the index had been proven: has to be 0
}

func (w *watch) figures() RepairFigures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return RepairFigures{Runs: w.runs, Failed: w.failed, Comparisons: len(w.passes), Resignalled: w.resignalled, Drift: w.drift}
}
