package lambdahost

import (
	"errors"
	"fmt"
	"time"
)

// Config is what a deployment decides. The tags say from which variables a main
// reads it; nothing below a main looks at the environment.
type Config struct {
	DocumentsTable string `env:"HOLDFAST_DOCUMENTS_TABLE"`    // name of the table of documents
	StateTable     string `env:"HOLDFAST_STATE_TABLE"`        // name of the table of the system's own records
	QueueURL       string `env:"HOLDFAST_SIGNALS_QUEUE_URL"`  // where signals travel from the relay to the indexer
	DeadLettersURL string `env:"HOLDFAST_DEAD_LETTERS_URL"`   // where messages go that the indexer fails at again and again
	GivenUpURL     string `env:"HOLDFAST_RELAY_FAILURES_URL"` // where the stream's mapping tells of changes that were given up

	SearchEndpoint string        `env:"HOLDFAST_OPENSEARCH_URL"`                      // URL of the OpenSearch domain
	SearchSigned   bool          `env:"HOLDFAST_OPENSEARCH_SIGNED" envDefault:"true"` // requests to it carry an AWS signature
	SearchService  string        `env:"HOLDFAST_OPENSEARCH_SERVICE" envDefault:"es"`  // the service name signed for: es for a domain
	IndexPrefix    string        `env:"HOLDFAST_INDEX_PREFIX" envDefault:"holdfast"`  // begins the name of every index
	IndexReplicas  int           `env:"HOLDFAST_INDEX_REPLICAS" envDefault:"1"`       // copies of each shard beside the first
	BulkBytes      int           `env:"HOLDFAST_BULK_BYTES" envDefault:"8388608"`     // largest write request: below the domain's limit, 10 MiB on small ones
	FeedBuckets    int           `env:"HOLDFAST_FEED_BUCKETS" envDefault:"8"`         // partitions of the change feed; the number only grows
	FeedMargin     time.Duration `env:"HOLDFAST_FEED_MARGIN" envDefault:"10s"`        // how far behind now the change feed is safe
	BarrierMargin  time.Duration `env:"HOLDFAST_BARRIER_MARGIN" envDefault:"2s"`      // what a wait as of now lets the change feed catch up
	TombstoneLife  time.Duration `env:"HOLDFAST_TOMBSTONE_LIFE" envDefault:"720h"`    // how long a delete stays visible

	RepairEvery  time.Duration `env:"HOLDFAST_REPAIR_EVERY" envDefault:"1m"` // how often repair's schedule calls it, for who judges whether it does
	RepairSettle time.Duration `env:"HOLDFAST_REPAIR_SETTLE"`                // how long after its announcement everyone writes to a new index; 0: the standard

	LogLevel string `env:"HOLDFAST_LOG_LEVEL" envDefault:"info"` // debug, info, warn or error

	// Other servers in AWS's place, for use on one machine; "": AWS.
	DynamoDBEndpoint string `env:"HOLDFAST_DYNAMODB_ENDPOINT"`
	SQSEndpoint      string `env:"HOLDFAST_SQS_ENDPOINT"`
}

// needs collects what is missing of a configuration for one purpose.
type needs []error

func (n *needs) text(value, what string) {
	if value == "" {
		*n = append(*n, fmt.Errorf("%s is not configured", what))
	}
}

func (n needs) err() error { return errors.Join(n...) }
