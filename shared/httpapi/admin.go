package httpapi

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"holdfast/shared/obs"
)

// AdminState is what the system keeps about itself, as far as operators ask for
// it.
type AdminState interface {
	DefinitionStore
	QuarantineStore
	JobStore
	ProofStore
}

// AdminOptions are what the admin handler needs.
type AdminOptions struct {
	State   AdminState
	Signals Signals
	Letters DeadLetters
	Version string // of Holdfast, for the status

	RepairEvery time.Duration // how often repair is to run; 0: every minute

	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: discarded
	Metrics *obs.Metrics     // nil: none
}

// admin answers what operators ask.
type admin struct {
	state   AdminState
	signals Signals
	letters DeadLetters
	version string
	every   time.Duration // that repair is to run
	now     func() time.Time
	log     *slog.Logger

	routes          map[string]*route // by whole path
	definition, job *route            // of one collection, of one job
}

// Admin makes the handler for /collections, /status, /quarantine, /jobs and
// /dead-letters. It answers every other path with no-such-route.
func Admin(o AdminOptions) Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = obs.Discard()
	}
	if o.RepairEvery <= 0 {
		o.RepairEvery = repairEvery
	}
	a := &admin{state: o.State, signals: o.Signals, letters: o.Letters, version: o.Version, every: o.RepairEvery, now: o.Now, log: o.Log}
	read := func(name string, get operation) *route {
		return &route{name: name, methods: map[string]operation{http.MethodGet: get, http.MethodHead: get}}
	}
	post := func(name string, do operation) *route {
		return &route{name: name, methods: map[string]operation{http.MethodPost: do}}
	}
	a.routes = map[string]*route{
		"/collections":          read("collections", a.listCollections),
		"/status":               read("status", a.getStatus),
		"/quarantine":           read("quarantine", a.listQuarantine),
		"/quarantine/retry":     post("quarantine-retry", a.retryQuarantine),
		"/jobs":                 read("jobs", a.listJobs),
		"/dead-letters":         read("dead-letters", a.listDeadLetters),
		"/dead-letters/redrive": post("dead-letters-redrive", a.redriveDeadLetters),
	}
	a.definition = &route{name: "definition", conditional: true, methods: map[string]operation{
		http.MethodGet: a.getDefinition, http.MethodHead: a.getDefinition,
		http.MethodPut: a.putDefinition, http.MethodDelete: a.deleteDefinition,
	}}
	a.job = &route{name: "job", methods: map[string]operation{
		http.MethodGet: a.getJob, http.MethodHead: a.getJob, http.MethodPost: a.startJob,
	}}
	return newHandler(a.route, o.Log, o.Metrics)
}

func (a *admin) route(c *call) (at *route, err error) {
	if at = a.routes[c.Path]; at == nil {
		var named bool
		if c.id, named = strings.CutPrefix(c.Path, "/collections/"); named {
			at = a.definition
		} else if c.id, named = strings.CutPrefix(c.Path, "/jobs/"); named {
			at = a.job
		} else {
			return nil, nil
		}
	}
	c.query, err = parseQuery(c.RawQuery)
	return at, err
}
