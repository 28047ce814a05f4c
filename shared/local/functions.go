package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/caarlos0/env/v11"

	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
	"holdfast/shared/local/engines"
	"holdfast/shared/obs"
	"holdfast/shared/pipeline"
	"holdfast/shared/where"
)

// The functions, with their timeouts. The indexer's is shorter than it could
// be, because six times as long is what a message waits that was handed out
// when its receiver died, and on a desk somebody waits for it.
var (
	documentsFunction = Function{Name: "documents", Timeout: 29 * time.Second}
	queryFunction     = Function{Name: "query", Timeout: 29 * time.Second}
	adminFunction     = Function{Name: "admin", Timeout: 29 * time.Second}
	relayFunction     = Function{Name: "relay", Timeout: 60 * time.Second}
	indexerFunction   = Function{Name: "indexer", Timeout: 15 * time.Second}
	repairFunction    = Function{Name: "repair", Timeout: 120 * time.Second}
)

// settle is how long after the announcement of a new index everyone writes to
// it: what is remembered of definitions and of generations, five seconds each,
// and an invocation of the indexer, with something to spare.
const settle = 30 * time.Second

// functions are the handlers, each built as the main of its function builds it
// and with parts of its own, as if it were a process.
type functions struct {
	documents, query, admin HTTPHandler
	relay                   StreamHandler
	indexer                 QueueHandler
	repair                  lambdahost.RepairHandler
	app                     *lambdahost.App // of the indexer, for what has to be there before
}

// buildFunctions makes the handlers. Their logs and metrics go to log.
func buildFunctions(p *provided, every time.Duration, log io.Writer, level slog.Level) (*functions, error) {
	environment := map[string]string{
		"HOLDFAST_DOCUMENTS_TABLE":    documentsTable,
		"HOLDFAST_STATE_TABLE":        stateTable,
		"HOLDFAST_SIGNALS_QUEUE_URL":  p.queueURLs.signals,
		"HOLDFAST_DEAD_LETTERS_URL":   p.queueURLs.dead,
		"HOLDFAST_RELAY_FAILURES_URL": p.queueURLs.givenUp,
		"HOLDFAST_REPAIR_EVERY":       every.String(),
		"HOLDFAST_REPAIR_SETTLE":      settle.String(),
		"HOLDFAST_OPENSEARCH_URL":     p.reach[engines.OpenSearch],
		"HOLDFAST_OPENSEARCH_SIGNED":  "false",
		"HOLDFAST_INDEX_PREFIX":       indexPrefix,
		"HOLDFAST_INDEX_REPLICAS":     "0", // a single node has no place for any
		"HOLDFAST_DYNAMODB_ENDPOINT":  p.reach[engines.DynamoDB],
		"HOLDFAST_SQS_ENDPOINT":       p.reach[engines.SQS],
	}
	config, err := env.ParseAsWithOptions[lambdahost.Config](env.Options{Environment: environment})
	if err != nil {
		return nil, fmt.Errorf("configure the functions: %w", err)
	}
	var fns functions
	build := func(f Function, use func(*lambdahost.App) error) error {
		app, err := lambdahost.Build(config, lambdahost.Surroundings{
			AWS: p.aws, Queues: queues.Open, Log: obs.NewLogger(log, level).With("function", f.Name),
			Metrics:         obs.NewMetrics(log, "Holdfast", nil, obs.Dimension{Name: "Function", Value: f.Name}),
			SearchTransport: http.DefaultTransport.(*http.Transport).Clone(),
		})
		if err == nil {
			err = use(app)
		}
		if err != nil {
			return fmt.Errorf("build function %s: %w", f.Name, err)
		}
		return nil
	}
	err = errors.Join(
		build(documentsFunction, func(app *lambdahost.App) error {
			fns.documents = lambdahost.HTTP(app.Documents())
			return nil
		}),
		build(queryFunction, func(app *lambdahost.App) error {
			handler, err := app.Query(&where.Compiler{})
			fns.query = lambdahost.HTTP(handler)
			return err
		}),
		build(adminFunction, func(app *lambdahost.App) error {
			handler, err := app.Admin()
			fns.admin = lambdahost.HTTP(handler)
			return err
		}),
		build(relayFunction, func(app *lambdahost.App) error {
			relay, err := app.Relay()
			fns.relay = StreamHandler(lambdahost.Stream(relay))
			return err
		}),
		build(indexerFunction, func(app *lambdahost.App) error {
			indexer, err := app.Indexer()
			fns.indexer, fns.app = QueueHandler(lambdahost.Queue(indexer)), app
			return err
		}),
		build(repairFunction, func(app *lambdahost.App) error {
			repairer, err := app.Repair()
			fns.repair = lambdahost.Repair(repairer, app.Store().State())
			return err
		}),
	)
	return &fns, err
}

// gateway puts the functions behind routes.
func (f *functions) gateway(log *slog.Logger) *Gateway {
	return &Gateway{
		Routes: []Route{
			{Path: "/query", Function: queryFunction, Handler: f.query},
			{Path: "/collections", Below: true, Function: adminFunction, Handler: f.admin},
			{Path: "/status", Function: adminFunction, Handler: f.admin},
			{Path: "/quarantine", Below: true, Function: adminFunction, Handler: f.admin},
			{Path: "/jobs", Below: true, Function: adminFunction, Handler: f.admin},
			{Path: "/dead-letters", Below: true, Function: adminFunction, Handler: f.admin},
		},
		Default: Route{Function: documentsFunction, Handler: f.documents},
		Log:     log,
	}
}

// relayMapping never gives a record up by itself: what the relay waits for,
// the queue, comes back.
func (f *functions) relayMapping(giveUp func(context.Context, GivenUp) error) StreamMapping {
	return StreamMapping{
		Function: relayFunction, Handler: f.relay, BatchSize: 100, Parallel: 2, Partial: true, Bisect: true, Retries: -1, GiveUp: giveUp,
	}
}

func (f *functions) indexerMapping() QueueMapping {
	return QueueMapping{Function: indexerFunction, Handler: f.indexer, BatchSize: 10, Concurrency: 2, Partial: true}
}

// How often repair runs: it proves the index again and again, and once a day it
// is asked to compare everything.
const (
	DefaultRepairEvery = time.Minute
	repairFirst        = 5 * time.Second
	compareEvery       = 24 * time.Hour
)

// schedules are the rates at which repair is called. Two calls at a time do no
// harm: the second does nothing.
func (f *functions) schedules(every time.Duration, log *slog.Logger) []Schedule {
	run := func(mode repair.Mode) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := callScheduled(ctx, repairFunction, log, f.repair, lambdahost.RepairEvent{Mode: mode})
			return err
		}
	}
	return []Schedule{
		{Name: "repair", Every: every, First: repairFirst, Limit: repairFunction.Timeout, Run: run(repair.Prove)},
		{Name: "comparison", Every: compareEvery, First: compareEvery, Limit: repairFunction.Timeout, Run: run(repair.Compare)},
	}
}

// takeOver lets repair run at once. A run that a killed process was in the middle
// of still holds the lease of the job, for minutes; but nobody is at it any more,
// since there is one stack at a time on a data directory.
func (f *functions) takeOver(ctx context.Context) error {
	return f.app.Store().State().EndLease(ctx, repair.Name)
}

// anyCollection is a name that no client can use, so it has no definition and
// belongs to the shared index.
const anyCollection = doc.Collection("$local")

// ensureIndexes makes the indexes of all known collections, and the shared one,
// where they are missing.
func (f *functions) ensureIndexes(ctx context.Context) error {
	index, err := f.app.Search()
	if err != nil {
		return err
	}
	state := f.app.Store().State()
	known, err := state.Collections(ctx)
	if err != nil {
		return err
	}
	generations := pipeline.NewGenerations(state, index, nil)
	for _, c := range append(known, anyCollection) {
		if _, err := generations.Of(ctx, c); err != nil {
			return fmt.Errorf("collection %s: %w", c, err)
		}
	}
	return nil
}
