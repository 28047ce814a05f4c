package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/jobs"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/store"
)

// JobStore keeps what jobs say about themselves, and the requests for them.
type JobStore interface {
	// Job is the record of a job; false when there is none.
	Job(ctx context.Context, name string) (store.JobRecord, bool, error)
	// RequestJob leaves a request for the next run; false, with the one that is
	// there, when such a request waits already.
	RequestJob(ctx context.Context, r store.JobRequest) (store.JobRequest, bool, error)
	JobRequests(ctx context.Context, name string) ([]store.JobRequest, error)
}

// jobKind is a job that there is.
type jobKind struct {
	name  string
	modes []string // the first is the standard; none: there is only one way to run it
	of    bool     // it is about the index of a collection; without one, about the shared index
}

// jobKinds are all jobs, in the order of their names.
var jobKinds = []jobKind{
	{name: repair.Reindex, of: true},
	{name: repair.Name, modes: modeNames()},
}

func modeNames() []string {
	names := make([]string, len(repair.Modes))
	for i, m := range repair.Modes {
		names[i] = string(m)
	}
	return names
}

func jobOf(name string) (jobKind, error) {
	for _, kind := range jobKinds {
		if kind.name == name {
			return kind, nil
		}
	}
	return jobKind{}, doc.Errorf(doc.NotFound, "there is no such job")
}

// job is what is told about a job.
type job struct {
	Name     string       `json:"name"`
	Modes    []string     `json:"modes"`
	Last     *jobRun      `json:"last"`     // the last run that ended; null: none did
	Requests []jobRequest `json:"requests"` // what the next runs are asked for
}

// jobRun is what is told about a run.
type jobRun struct {
	Mode     string          `json:"mode"`
	Started  string          `json:"started"`
	Finished string          `json:"finished"`
	Outcome  jobs.Outcome    `json:"outcome"`
	Error    string          `json:"error,omitempty"`
	Detail   json.RawMessage `json:"detail,omitempty"`
}

// jobRequest is what is told about a request.
type jobRequest struct {
	Mode       string         `json:"mode,omitempty"`
	Collection doc.Collection `json:"collection,omitempty"`
	At         string         `json:"at"`
}

func tellTime(t time.Time) string { return t.UTC().Format(timeLayout) }

func tellRequest(r store.JobRequest) jobRequest {
	return jobRequest{Mode: r.Mode, Collection: r.Collection, At: tellTime(r.At)}
}

// lastRun reads the record of a job.
func (a *admin) lastRun(ctx context.Context, name string) (r jobs.Record, ran bool, err error) {
	kept, ran, err := a.state.Job(ctx, name)
	if err != nil || !ran {
		return r, false, err
	}
	if err := json.Unmarshal(kept.Body, &r); err != nil {
		return r, false, fmt.Errorf("reading the record of job %s: %w", name, err)
	}
	return r, true, nil
}

// tellJob makes what is told of a job. The details of its last run may be large.
func (a *admin) tellJob(ctx context.Context, kind jobKind, detailed bool) (job, error) {
	told := job{Name: kind.name, Modes: append([]string{}, kind.modes...), Requests: []jobRequest{}}
	r, ran, err := a.lastRun(ctx, kind.name)
	if err != nil {
		return told, err
	}
	if ran {
		told.Last = &jobRun{Mode: r.Mode, Started: tellTime(r.Started), Finished: tellTime(r.Finished), Outcome: r.Outcome, Error: r.Error}
		if detailed {
			told.Last.Detail = r.Detail
		}
	}
	waiting, err := a.state.JobRequests(ctx, kind.name)
	if err != nil {
		return told, err
	}
	for _, request := range waiting {
		told.Requests = append(told.Requests, tellRequest(request))
	}
	return told, nil
}

func (a *admin) tellJobs(ctx context.Context) ([]job, error) {
	all := make([]job, len(jobKinds))
	for i, kind := range jobKinds {
		var err error
		if all[i], err = a.tellJob(ctx, kind, false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// listJobs answers GET /jobs.
func (a *admin) listJobs(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	all, err := a.tellJobs(ctx)
	if err != nil {
		return nil, err
	}
	return replyJSON(http.StatusOK, struct {
		Jobs []job `json:"jobs"`
	}{all})
}

// getJob answers GET /jobs/{name}.
func (a *admin) getJob(ctx context.Context, c *call) (*Response, error) {
	kind, err := jobOf(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only(); err != nil {
		return nil, err
	}
	told, err := a.tellJob(ctx, kind, true)
	if err != nil {
		return nil, err
	}
	return replyJSON(http.StatusOK, told)
}

// startJob answers POST /jobs/{name}: it leaves a request that the next run of
// the job takes up.
func (a *admin) startJob(ctx context.Context, c *call) (*Response, error) {
	kind, err := jobOf(c.id)
	if err != nil {
		return nil, err
	}
	if err := c.query.only(); err != nil {
		return nil, err
	}
	if err := wantMediaType(c.Header, typeJSON); err != nil {
		return nil, err
	}
	r, err := kind.parse(c.Body)
	if err != nil {
		return nil, err
	}
	if err := a.allow(ctx, r); err != nil {
		return nil, err
	}
	r.At = a.now()
	left, ok, err := a.state.RequestJob(ctx, r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, doc.Errorf(doc.JobRunning, "the job was asked for already; its next run takes the request up").With("since", tellTime(left.At))
	}
	return replyJSON(http.StatusAccepted, struct {
		Name string `json:"name"`
		jobRequest
	}{kind.name, tellRequest(left)})
}

// parse reads the body of POST /jobs/{name}.
func (kind jobKind) parse(body []byte) (store.JobRequest, error) {
	r := store.JobRequest{Name: kind.name}
	members := []string{"mode"}
	if kind.of {
		members = []string{"collection"}
	}
	object, err := readObject(body, doc.InvalidRequest, members...)
	if err != nil {
		return r, err
	}
	if kind.of {
		given, has := object["collection"]
		if !has {
			return r, nil
		}
		text, ok := given.(string)
		if !ok {
			return r, at(doc.Errorf(doc.InvalidRequest, "collection is the name of a collection"), "/collection")
		}
		r.Collection, err = doc.ParseCollection(text)
		return r, at(err, "/collection")
	}
	r.Mode = kind.modes[0]
	if given, has := object["mode"]; has {
		text, _ := given.(string)
		if r.Mode = text; !slices.Contains(kind.modes, text) {
			return r, at(doc.Errorf(doc.InvalidRequest, "mode is one of %s", strings.Join(kind.modes, ", ")), "/mode")
		}
	}
	return r, nil
}

// allow refuses what there is nothing to do for: a collection without documents,
// and a comparison while one is under way.
func (a *admin) allow(ctx context.Context, r store.JobRequest) error {
	if r.Collection != "" {
		known, err := a.state.Collections(ctx)
		if err == nil && !slices.Contains(known, r.Collection) {
			err = doc.Errorf(doc.NotFound, "the collection has no documents")
		}
		return err
	}
	if r.Name != repair.Name || r.Mode != string(repair.Compare) && r.Mode != string(repair.Purge) {
		return nil
	}
	last, _, err := a.lastRun(ctx, r.Name)
	if err != nil {
		return err
	}
	report, err := readReport(last)
	if err == nil && report.Pass != nil {
		err = doc.Errorf(doc.JobRunning, "a comparison is under way").With("since", tellTime(report.Pass.Started))
	}
	return err
}

// readReport reads the details of a run of repair.
func readReport(r jobs.Record) (report repair.Report, err error) {
	if len(r.Detail) == 0 {
		return report, nil
	}
	if err := json.Unmarshal(r.Detail, &report); err != nil {
		return report, fmt.Errorf("reading the report of repair: %w", err)
	}
	return report, nil
}

// replyJSON answers with what a value is as JSON.
func replyJSON(status int, v any) (*Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, errors.Join(errors.New("writing an answer"), err)
	}
	return reply(status, typeJSON, body), nil
}
