package lambdahost

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/httpapi"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/obs"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// Surroundings are what a process gives to the parts that are built in it.
type Surroundings struct {
	AWS             aws.Config
	SearchTransport http.RoundTripper // nil: the standard one
	Queues          OpenQueues        // nil: none, for a function that has nothing to do with them
	Log             *slog.Logger      // nil: discarded
	Metrics         *obs.Metrics      // nil: none
}

// OpenQueues makes the client of the queues, for AWS or, with an endpoint, for
// another server. It is package queues' Open; who does not name it does not carry
// the client.
type OpenQueues func(conf aws.Config, endpoint string) Queues

// Queues are what a deployment has in Amazon SQS, by their URLs.
type Queues interface {
	// Signals is where signals travel.
	Signals(url string) pipeline.Queue
	// Letters are the messages that the indexer and the relay gave up; to is where
	// they are sent again.
	Letters(signals, relay string, to pipeline.Sender) httpapi.DeadLetters
}

// App builds the parts of Holdfast that a process runs: one of them in a
// function, all of them in the local stack. Parts built by one App share their
// clients.
type App struct {
	config  Config
	around  Surroundings
	clock   *doc.Clock // corrected by the table's answers
	store   *store.Store
	log     *slog.Logger
	metrics *obs.Metrics

	client *search.Client // made when first asked for: functions without queries know no index
}

// Build makes an App. It makes no request.
func Build(c Config, around Surroundings) (*App, error) {
	var missing needs
	missing.text(c.DocumentsTable, "the documents table")
	missing.text(c.StateTable, "the state table")
	if err := missing.err(); err != nil {
		return nil, err
	}
	a := &App{config: c, around: around, clock: doc.NewClock(nil), metrics: around.Metrics, log: around.Log}
	if a.log == nil {
		a.log = obs.Discard()
	}
	db := dynamodb.NewFromConfig(around.AWS, func(o *dynamodb.Options) {
		if c.DynamoDBEndpoint != "" {
			o.BaseEndpoint = aws.String(c.DynamoDBEndpoint)
		}
	})
	a.store = store.New(store.Options{
		Client: db, Documents: c.DocumentsTable, State: c.StateTable, Clock: a.clock,
		Buckets: c.FeedBuckets, TombstoneLife: c.TombstoneLife, FeedMargin: c.FeedMargin, Log: a.log,
	})
	return a, nil
}

// Store is the documents.
func (a *App) Store() *store.Store { return a.store }

// Documents is the handler of everything but queries.
func (a *App) Documents() httpapi.Handler {
	return httpapi.Documents(httpapi.DocumentsOptions{
		Store: a.store, Token: freshness.Tokens, Log: a.log, Metrics: a.metrics,
	})
}

// Admin is the handler of what operators ask.
func (a *App) Admin() (httpapi.Handler, error) {
	var missing needs
	missing.text(a.config.DeadLettersURL, "the URL of the queue of dead letters")
	missing.text(a.config.GivenUpURL, "the URL of the queue of changes that were given up")
	queue, err := a.Queue()
	if err := errors.Join(missing.err(), err); err != nil {
		return nil, err
	}
	return httpapi.Admin(httpapi.AdminOptions{
		State: a.store.State(), Signals: queue,
		Letters: a.queues().Letters(a.config.DeadLettersURL, a.config.GivenUpURL, queue),
		Version: obs.Version(), RepairEvery: a.config.RepairEvery, Now: a.clock.Now, Log: a.log, Metrics: a.metrics,
	}), nil
}

// Query is the handler of queries. The expressions of where come from outside,
// so that only who serves queries carries their language.
func (a *App) Query(where httpapi.Conditions) (httpapi.Handler, error) {
	index, searchErr := a.Search()
	queue, queueErr := a.Queue() // asked for its depth only
	if err := errors.Join(searchErr, queueErr); err != nil {
		return nil, err
	}
	state := a.store.State()
	proofs := freshness.NewProofBook(state, state, index, a.clock.Now)
	return httpapi.Query(httpapi.QueryOptions{
		Search: index,
		Waiter: freshness.NewWaiter(freshness.WaiterOptions{
			Index: index, Registry: state, Quarantine: state, Table: a.store,
			Feed: a.store, Proofs: proofs, Margin: a.config.BarrierMargin, Now: a.clock.Now, Log: a.log,
		}),
		Reporter: freshness.NewReporter(freshness.ReporterOptions{
			Queue: queue, Measures: state, Proofs: proofs, Now: a.clock.Now, Log: a.log,
		}),
		Definitions: state, Loader: a.store, Where: where, Log: a.log, Metrics: a.metrics, Now: a.clock.Now,
	}), nil
}

// Relay turns the table's stream records into signals.
func (a *App) Relay() (*pipeline.Relay, error) {
	queue, err := a.Queue()
	if err != nil {
		return nil, err
	}
	return pipeline.NewRelay(pipeline.RelayOptions{
		Queue: queue, Adopter: a.store, Now: a.clock.Now, Log: a.log, Metrics: a.metrics,
	}), nil
}

// Indexer brings signalled documents to the index.
func (a *App) Indexer() (*pipeline.Indexer, error) {
	queue, queueErr := a.Queue()
	index, searchErr := a.Search()
	if err := errors.Join(queueErr, searchErr); err != nil {
		return nil, err
	}
	state := a.store.State()
	return pipeline.NewIndexer(pipeline.IndexerOptions{
		Table:       a.store,
		Generations: pipeline.NewGenerations(state, index, a.clock.Now),
		Index:       index, Ledger: state, Queue: queue,
		Now: a.clock.Now, Log: a.log, Metrics: a.metrics,
	}), nil
}

// Repair makes the index converge to the table and proves it.
func (a *App) Repair() (*repair.Repair, error) {
	queue, queueErr := a.Queue()
	index, searchErr := a.Search()
	if err := errors.Join(queueErr, searchErr); err != nil {
		return nil, err
	}
	return repair.New(repair.Options{
		Table: a.store, Index: index, State: a.store.State(), Queue: queue,
		Margin: a.config.FeedMargin, Settle: a.config.RepairSettle,
		TombstoneLife: a.config.TombstoneLife,
		Now:           a.clock.Now, Log: a.log, Metrics: a.metrics,
	}), nil
}

// Queue is where signals travel.
func (a *App) Queue() (pipeline.Queue, error) {
	var missing needs
	missing.text(a.config.QueueURL, "the queue's URL")
	if a.around.Queues == nil {
		missing = append(missing, errors.New("this process was built without queues"))
	}
	if err := missing.err(); err != nil {
		return nil, err
	}
	return a.queues().Signals(a.config.QueueURL), nil
}

func (a *App) queues() Queues { return a.around.Queues(a.around.AWS, a.config.SQSEndpoint) }

// Search is the client of the index.
func (a *App) Search() (*search.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	var missing needs
	missing.text(a.config.SearchEndpoint, "the search endpoint")
	missing.text(a.config.IndexPrefix, "the index prefix")
	if err := missing.err(); err != nil {
		return nil, err
	}
	o := search.Options{
		URL: a.config.SearchEndpoint, Prefix: a.config.IndexPrefix, Transport: a.around.SearchTransport,
		Region: a.around.AWS.Region, Service: a.config.SearchService,
		Replicas: a.config.IndexReplicas, BulkBytes: a.config.BulkBytes, Log: a.log,
		CursorKey: a.store.State().CursorKey,
	}
	if a.config.SearchSigned {
		o.Credentials = a.around.AWS.Credentials
	}
	client, err := search.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("connecting to the index: %w", err)
	}
	a.client = client
	return client, nil
}
