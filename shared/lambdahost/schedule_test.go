package lambdahost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"holdfast/shared/jobs/repair"
	"holdfast/shared/store"
)

// scheduled is a repair that notes how it is called, and the requests it leaves.
type scheduled struct {
	modes    []repair.Mode
	held     bool
	err      error
	requests []store.JobRequest
}

func (s *scheduled) Run(_ context.Context, mode repair.Mode) (repair.Report, bool, error) {
	s.modes = append(s.modes, mode)
	return repair.Report{Captured: 7}, s.held, s.err
}

func (s *scheduled) RequestJob(_ context.Context, r store.JobRequest) (store.JobRequest, bool, error) {
	s.requests = append(s.requests, r)
	return r, true, nil
}

func TestScheduleEvents(t *testing.T) {
	failed := errors.New("no")
	for _, c := range []struct {
		event    string
		mode     repair.Mode
		held     bool
		err      error
		requests int
	}{
		{"schedule-prove", repair.Prove, true, nil, 0},
		{"schedule-prove", repair.Prove, false, nil, 0}, // the run under way does it
		{"schedule-compare", repair.Compare, true, nil, 0},
		{"schedule-compare", repair.Compare, false, nil, 1},
		{"schedule-compare", repair.Compare, false, failed, 0},
	} {
		var e RepairEvent
		eventFile(t, c.event, &e)
		s := &scheduled{held: c.held, err: c.err}
		answer, err := Repair(s, s)(t.Context(), e)
		if !errors.Is(err, c.err) || answer.Held != c.held || answer.Report.Captured != 7 || !slices.Equal(s.modes, []repair.Mode{c.mode}) || len(s.requests) != c.requests {
			t.Errorf("%s, held %t: %+v, %v, modes %v, requests %v", c.event, c.held, answer, err, s.modes, s.requests)
		}
		if c.requests > 0 && (s.requests[0].Name != repair.Name || s.requests[0].Mode != "compare") {
			t.Errorf("%+v", s.requests)
		}
		if text, err := json.Marshal(answer); err != nil || len(text) == 0 {
			t.Errorf("%s, %v", text, err)
		}
	}
}
