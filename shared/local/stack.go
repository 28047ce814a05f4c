// Package local runs all of Holdfast in one process, on real engines that it
// starts itself: the handlers of the functions behind a gateway and pollers
// that behave like those of AWS, with the same events, limits, retries and
// order.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/local/engines"
	"holdfast/shared/obs"
	"holdfast/shared/store"
)

// DefaultAddress is where the stack serves unless told otherwise.
const DefaultAddress = "127.0.0.1:8787"

// Options of a stack. DataDir is required.
type Options struct {
	Address  string            // host:port to serve at; "" means DefaultAddress, port 0 any free port
	DataDir  string            // everything that survives a restart; made when missing
	Cache    engines.Cache     // where fetched engines are kept
	Heap     string            // of OpenSearch, as -Xmx takes it; "": the engines' default
	LogLevel slog.Level        // of the functions' log, DataDir/log/functions.log
	Say      func(line string) // told what goes on, one line each; nil: nobody

	RepairEvery time.Duration // how often repair runs; 0: DefaultRepairEvery

	// Visibility is how long the queue hides a message that it handed out, at least
	// ShortestVisibility; 0: six times that, as AWS asks for.
	Visibility time.Duration

	// Engines are the URLs of engines that run already and are used instead of
	// ones of the stack's own. It neither waits for them nor ends them, and Kill
	// does not reach them. Nil: the stack starts and looks after its own.
	Engines map[engines.Name]string
	// Reach is where the functions find an engine, where that is not its URL:
	// something that stands in between. Pollers and schedules, which are AWS's
	// part, go to the engine itself.
	Reach map[engines.Name]string
}

// ShortestVisibility is what the indexer may take: a message must not be handed
// out again while it is being worked on.
var ShortestVisibility = indexerFunction.Timeout

// Stack is a running Holdfast.
type Stack struct {
	url     string
	logFile *os.File
	engines *engines.Set // nil: others look after them
	server  *http.Server
	unlock  func()

	cancel  context.CancelFunc // of the pollers and schedules
	running sync.WaitGroup
	failed  chan error
	stopped sync.Once
}

// ErrInUse says that another stack runs on the same data directory.
var ErrInUse = errors.New("the data directory is in use by another stack")

// AddressInUse says that another program listens where the stack should serve.
type AddressInUse struct{ Address string }

func (e *AddressInUse) Error() string {
	return "the address " + e.Address + " is in use by another program"
}

// Start starts everything and returns when it serves. What it had started is
// stopped again when it fails. Ending ctx ends a start that is under way, not
// the stack that came of it.
//
// Errors a person can do something about are ErrInUse, *AddressInUse and
// *engines.MissingTools.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.RepairEvery <= 0 {
		o.RepairEvery = DefaultRepairEvery
	}
	if o.DataDir == "" {
		return nil, errors.New("a stack needs a data directory")
	}
	if o.Visibility == 0 {
		o.Visibility = 6 * ShortestVisibility
	}
	if o.Visibility < ShortestVisibility {
		return nil, fmt.Errorf("messages are hidden for %s; the indexer may take %s", o.Visibility, ShortestVisibility)
	}
	logs := filepath.Join(o.DataDir, "log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	s := &Stack{failed: make(chan error, 1)}
	begun := func() (err error) {
		if s.unlock, err = engines.TryLock(filepath.Join(o.DataDir, "lock")); errors.Is(err, engines.ErrLocked) {
			return fmt.Errorf("%s: %w", o.DataDir, ErrInUse)
		} else if err != nil {
			return err
		}
		// The address is taken first: to learn in the end that it is not free costs a minute.
		listener, err := listen(o.Address)
		if err != nil {
			return err
		}
		s.url = "http://" + listener.Addr().String()
		if err := s.begin(ctx, o, logs); err != nil {
			return errors.Join(err, listener.Close())
		}
		s.running.Go(func() {
			if err := s.server.Serve(problemListener{listener}); !errors.Is(err, http.ErrServerClosed) {
				s.failed <- fmt.Errorf("the gateway stopped serving: %w", err)
			}
		})
		return nil
	}()
	if begun != nil {
		s.Stop()
		return nil, begun
	}
	return s, nil
}

// newServer makes the server of a gateway. What it has to say itself, such as
// that no connection can be taken, goes to the log.
func newServer(g http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: g, DisableGeneralOptionsHandler: true, ReadHeaderTimeout: headerReadTimeout, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(log.With("part", "server").Handler(), slog.LevelWarn),
	}
}

func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &AddressInUse{Address: address}
	}
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	return l, nil
}

// begin starts all but the gateway's serving.
func (s *Stack) begin(ctx context.Context, o Options, logs string) (err error) {
	if s.logFile, err = engines.OpenLog(filepath.Join(logs, "functions.log")); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	log := obs.NewLogger(s.logFile, o.LogLevel)
	if err := s.startEngines(ctx, &o); err != nil {
		return err
	}
	p, err := provide(ctx, o)
	if err != nil {
		return err
	}
	makeQueues := func(ctx context.Context) error { return ensureQueues(ctx, p.queues, o.Visibility) }
	queuesMissing, err := s.tolerate(ctx, log, "the queues", makeQueues)
	if err != nil {
		return err
	}
	fns, err := buildFunctions(p, o.RepairEvery, s.logFile, o.LogLevel)
	if err != nil {
		return err
	}
	// Who needs an index that is missing makes it.
	if _, err := s.tolerate(ctx, log, "the indexes", fns.ensureIndexes); err != nil {
		return err
	}
	if err := fns.takeOver(ctx); err != nil {
		return fmt.Errorf("take over from the last process: %w", err)
	}
	s.server = newServer(fns.gateway(log.With("part", "gateway")), log)
	var more []func(context.Context)
	if queuesMissing {
		more = append(more, func(ctx context.Context) { untilDone(ctx, log, "the queues", makeQueues) })
	}
	return s.poll(p, fns, o, log, more)
}

// awayPatience is how long a start waits for an engine that others look after,
// and that documents do not need.
const awayPatience = 10 * time.Second

// tolerate makes something in an engine. One of the stack's own was just seen
// serving, so what fails with it is a failure. Of one that others look after, it
// is no reason not to start: without queue and index all but queries works.
func (s *Stack) tolerate(ctx context.Context, log *slog.Logger, what string, ensure func(context.Context) error) (missing bool, err error) {
	if s.engines != nil {
		if err := ensure(ctx); err != nil {
			return true, fmt.Errorf("make %s: %w", what, err)
		}
		return false, nil
	}
	patient, cancel := context.WithTimeout(ctx, awayPatience)
	defer cancel()
	if err := ensure(patient); err != nil {
		log.Warn("the start goes on without "+what, "error", err)
		return true, ctx.Err()
	}
	return false, nil
}

// untilDone makes something in an engine as soon as that serves.
func untilDone(ctx context.Context, log *slog.Logger, what string, ensure func(context.Context) error) {
	retry := backoff{first: retryFirst, last: retryLast}
	for ctx.Err() == nil {
		patient, cancel := context.WithTimeout(ctx, awayPatience)
		err := ensure(patient)
		cancel()
		if err == nil {
			return
		}
		log.Warn(what+" cannot be made", "error", err)
		sleep(ctx, retry.pause())
	}
}

// startEngines starts engines, unless there are some, and fills in their URLs.
func (s *Stack) startEngines(ctx context.Context, o *Options) (err error) {
	if o.Engines == nil {
		if s.engines, err = engines.NewSet(engines.Options{Cache: o.Cache, Dir: o.DataDir, Heap: o.Heap, Say: o.Say}); err != nil {
			return err
		}
		if err := s.engines.Start(ctx); err != nil {
			return err
		}
		o.Engines = map[engines.Name]string{}
		for _, n := range engines.All {
			o.Engines[n] = s.engines.URL(n)
		}
	}
	for _, n := range []engines.Name{engines.DynamoDB, engines.SQS, engines.OpenSearch} {
		if o.Engines[n] == "" {
			return fmt.Errorf("the stack is not told where %s is", n)
		}
	}
	return nil
}

// The names of what the stack keeps in the engines.
const (
	documentsTable = "holdfast-documents"
	stateTable     = "holdfast-state"
	signalsQueue   = "holdfast-signals"
	deadSignals    = "holdfast-signals-dead"
	givenUpQueue   = "holdfast-relay-given-up"
	indexPrefix    = "holdfast"
)

// provided is what the functions find in the engines.
type provided struct {
	aws       aws.Config
	reach     map[engines.Name]string // where the functions find the engines
	schema    []dynamodb.CreateTableInput
	stream    string // ARN, as the engine says it
	tables    *dynamodb.Client
	streams   *dynamodbstreams.Client
	queues    *sqs.Client
	queueURLs queueURLs
}

// provide makes the tables, which everything needs, and says where all else is.
func provide(ctx context.Context, o Options) (*provided, error) {
	p := &provided{
		aws:    aws.Config{Region: engines.Region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")},
		reach:  maps.Clone(o.Engines),
		schema: store.Schema(documentsTable, stateTable),
	}
	maps.Copy(p.reach, o.Reach)
	table, queue := aws.String(o.Engines[engines.DynamoDB]), aws.String(o.Engines[engines.SQS])
	p.tables = dynamodb.NewFromConfig(p.aws, func(o *dynamodb.Options) { o.BaseEndpoint = table })
	p.streams = dynamodbstreams.NewFromConfig(p.aws, func(o *dynamodbstreams.Options) { o.BaseEndpoint = table })
	p.queues = sqs.NewFromConfig(p.aws, func(o *sqs.Options) { o.BaseEndpoint = queue })
	p.queueURLs = queuesAt(o.Engines[engines.SQS])
	var err error
	p.stream, err = ensureTables(ctx, p.tables, p.schema)
	return p, err
}

// sweepEvery is how often expired items are removed. AWS takes its time too: a
// few days at most.
const sweepEvery = 10 * time.Minute

// poll starts the pollers and schedules, and what else is to run beside them.
func (s *Stack) poll(p *provided, fns *functions, o Options, log *slog.Logger, more []func(context.Context)) error {
	dir := filepath.Join(o.DataDir, "pollers")
	eventARN := normalARN(p.stream, engines.Region)
	points, err := openCheckpoints(filepath.Join(dir, relayFunction.Name+".json"), p.stream)
	if err != nil {
		return err
	}
	flying, err := openInFlight(filepath.Join(dir, indexerFunction.Name+".json"), log)
	if err != nil {
		return err
	}
	swept, err := openSweptItems(filepath.Join(dir, "swept.json"))
	if err != nil {
		return err
	}
	sweep := &ttlSweep{tables: p.tables, of: ttlTables(p.schema), swept: swept, now: time.Now}
	relay := &streamPoller{
		mapping: fns.relayMapping(givingUpTo(p.queues, p.queueURLs.givenUp)), streams: p.streams, arn: p.stream, eventARN: eventARN,
		checkpoints: points, now: time.Now, log: log.With("part", "stream poller"),
		removedTTL: func(r streamtypes.Record) bool { return swept.made(sweep.of[0], r) },
	}
	indexer := &queuePoller{
		mapping: fns.indexerMapping(), queue: p.queues, url: p.queueURLs.signals, arn: queueARN(signalsQueue),
		inFlight: flying, log: log.With("part", "queue poller"),
	}
	schedules := append(fns.schedules(o.RepairEvery, log),
		Schedule{Name: "time to live", Every: sweepEvery, First: time.Minute, Run: sweep.run})
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, run := range append(more, relay.run, indexer.run) {
		s.running.Go(func() { run(ctx) })
	}
	for _, schedule := range schedules {
		s.running.Go(func() { schedule.run(ctx, log) })
	}
	return nil
}

// URL is where the stack serves, without a trailing slash.
func (s *Stack) URL() string { return s.url }

// Engines are the stack's own engines, to look at or to break; nil: others look
// after those that it uses.
func (s *Stack) Engines() *engines.Set { return s.engines }

// Kill ends an engine as kill -9 does: dynoxide, elasticmq, opensearch or
// gofakes3. It is started again by itself.
func (s *Stack) Kill(engine string) error {
	if s.engines == nil {
		return engines.ErrNotStarted
	}
	return s.engines.Kill(engines.Name(engine))
}

// Failed gets an error when the stack can no longer serve.
func (s *Stack) Failed() <-chan error { return s.failed }

// How long a stopping stack waits for what is under way. Cutting it short
// loses nothing: messages come again and checkpoints lie behind.
const (
	requestGrace = 5 * time.Second
	workGrace    = 10 * time.Second
)

// Stop ends everything in order: the gateway, the pollers, the engines. It may
// be called more than once.
func (s *Stack) Stop() {
	s.stopped.Do(func() {
		if s.server != nil {
			ctx, cancel := context.WithTimeout(context.Background(), requestGrace)
			if s.server.Shutdown(ctx) != nil {
				_ = s.server.Close()
			}
			cancel()
		}
		if s.cancel != nil {
			s.cancel()
		}
		ended := make(chan struct{})
		go func() { s.running.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(workGrace):
		}
		if s.engines != nil {
			s.engines.Stop()
		}
		if s.logFile != nil {
			_ = s.logFile.Close() // lines are not buffered
		}
		if s.unlock != nil {
			s.unlock()
		}
	})
}
