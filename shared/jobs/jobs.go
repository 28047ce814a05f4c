// Package jobs is what all scheduled functions have in common: one of them runs
// at a time, what it has done is on record, and a run that was overtaken changes
// nothing any more.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/store"
)

// Leases lets one of several runs of a job through.
type Leases interface {
	// AcquireLease takes a free or overdue lease; false: somebody else has it.
	// The lease's token is above those of all holders before.
	AcquireLease(ctx context.Context, name string, life time.Duration) (store.Lease, bool, error)
	ReleaseLease(ctx context.Context, l store.Lease) error
}

// ErrOvertaken says that another run of the job has begun since this one did:
// what this one still wants to write is refused.
var ErrOvertaken = errors.New("a later run of the job has taken over")

// releaseTime is what giving a lease back may take when the run's own time is
// over. A lease that is not given back ends by itself.
const releaseTime = 2 * time.Second

// Hold does something under the lease of a name. held is false when somebody
// else has it; then nothing was done. Time alone does not keep a paused holder
// from going on when its lease is over, so what is done must carry the lease's
// token wherever it writes.
func Hold(ctx context.Context, leases Leases, name string, life time.Duration, do func(store.Lease) error) (held bool, err error) {
	lease, ok, err := leases.AcquireLease(ctx, name, life)
	if err != nil {
		return false, fmt.Errorf("take the lease of job %s: %w", name, err)
	}
	if !ok {
		return false, nil
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		if releaseErr := leases.ReleaseLease(ctx, lease); releaseErr != nil && err == nil {
			err = fmt.Errorf("give the lease of job %s back: %w", name, releaseErr)
		}
	}()
	return true, do(lease)
}

// Outcome says how a run ended.
type Outcome string

// The outcomes of a run.
const (
	OK     Outcome = "ok"     // all was done that there was to do
	More   Outcome = "more"   // the time was up; the next run goes on
	Failed Outcome = "failed" // an error ended it; the next run tries again
)

// Record is what a job says about its last run, in the body of its job record.
type Record struct {
	Name     string          `json:"name"`
	Mode     string          `json:"mode,omitempty"`
	Started  time.Time       `json:"started"`
	Finished time.Time       `json:"finished"`
	Outcome  Outcome         `json:"outcome"`
	Error    string          `json:"error,omitempty"`
	Detail   json.RawMessage `json:"detail,omitempty"`
}

// Records keeps them. PutJob answers false when a run with a later lease has
// written.
type Records interface {
	Job(ctx context.Context, name string) (store.JobRecord, bool, error)
	PutJob(ctx context.Context, r store.JobRecord) (bool, error)
}

// Write puts a body on record under a lease. The error is ErrOvertaken when a
// later run has written.
func Write(ctx context.Context, records Records, lease store.Lease, name string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the record of job %s: %w", name, err)
	}
	ok, err := records.PutJob(ctx, store.JobRecord{Name: name, Fence: lease.Token, Body: text})
	if err != nil {
		return fmt.Errorf("write the record of job %s: %w", name, err)
	}
	if !ok {
		return ErrOvertaken
	}
	return nil
}

// Read reads a body that Write wrote; false: there is none.
func Read(ctx context.Context, records Records, name string, body any) (bool, error) {
	r, ok, err := records.Job(ctx, name)
	if err != nil {
		return false, fmt.Errorf("read the record of job %s: %w", name, err)
	}
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(r.Body, body); err != nil {
		return false, fmt.Errorf("read the record of job %s: %w", name, err)
	}
	return true, nil
}
