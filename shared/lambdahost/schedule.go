package lambdahost

import (
	"context"

	"holdfast/shared/jobs/repair"
	"holdfast/shared/store"
)

// RepairEvent is what a schedule calls repair with: its input.
type RepairEvent struct {
	Mode repair.Mode `json:"mode"`
}

// RepairAnswer says what came of a run. A schedule does not look at it; who
// calls the function by hand does.
type RepairAnswer struct {
	Held   bool          `json:"held"` // false: another run was under way, and nothing was done
	Report repair.Report `json:"report"`
}

// RepairHandler handles the events of schedules.
type RepairHandler func(context.Context, RepairEvent) (RepairAnswer, error)

// Repairer is what runs: a *repair.Repair.
type Repairer interface {
	Run(ctx context.Context, mode repair.Mode) (report repair.Report, held bool, err error)
}

// Requests are where a run leaves what it could not begin: the state.
type Requests interface {
	RequestJob(ctx context.Context, r store.JobRequest) (store.JobRequest, bool, error)
}

// Repair serves a repair to schedules. That another run is under way is no
// failure: the next one takes up what this one was to do beside what is always
// due.
func Repair(r Repairer, requests Requests) RepairHandler {
	return func(ctx context.Context, e RepairEvent) (RepairAnswer, error) {
		report, held, err := r.Run(ctx, e.Mode)
		if err == nil && !held && e.Mode != repair.Prove {
			_, _, err = requests.RequestJob(ctx, store.JobRequest{Name: repair.Name, Mode: string(e.Mode)})
		}
		return RepairAnswer{Held: held, Report: report}, err
	}
}
