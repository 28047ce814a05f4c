package local

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// StreamHandler is a function on a table's stream.
type StreamHandler func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)

// StreamMapping is an event source mapping from a table's stream to a
// function, with the settings that AWS has for one.
type StreamMapping struct {
	Function  Function
	Handler   StreamHandler
	BatchSize int           // records of one invocation at most; 0: 100
	Window    time.Duration // how long to gather for a batch; 0: what is there goes
	Parallel  int           // invocations per shard at a time; the records of one item stay in order; 0: 1
	Bisect    bool          // a batch that failed is cut in two, to find the record that is to blame
	Retries   int           // how often a batch is tried again before it is given up; negative: for ever
	MaxAge    time.Duration // records older than this are given up; 0: none is
	Partial   bool          // the function reports the records that failed (ReportBatchItemFailures)

	// GiveUp is told of records that are given up: the destination on failure.
	// They count as given up when it returns nil. Nil: they are dropped.
	GiveUp func(context.Context, GivenUp) error
}

// GivenUp is what a destination on failure is told: which records, not their
// content.
type GivenUp struct {
	RequestID   string // of the last invocation
	Reason      string // RetryAttemptsExhausted or RecordAgeExceeded
	Invocations int
	Function    string // its ARN
	Stream      string // its ARN
	Shard       string
	First, Last string    // sequence numbers
	Arrived     time.Time // when the first of the records was written
	LastArrived time.Time
	Records     int
}

// streamsAPI is what a poller needs of DynamoDB Streams.
type streamsAPI interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// How a poller reads. Five calls a second while nothing happens.
const (
	pollEvery     = 200 * time.Millisecond
	discoverEvery = 5 * time.Minute // for shards without a parent; the end of a shard looks for its children
	retryFirst    = 200 * time.Millisecond
	retryLast     = 3 * time.Second

	mostPerRead    = 1000
	bytesPerRead   = 4 << 20  // aimed at, by how large records were so far
	pendingRecords = 10_000   // read and not yet done, per shard
	pendingBytes   = 32 << 20 // likewise
)

// streamPoller reads a stream and calls the function, as the service behind an
// event source mapping does: at least once, in order per item.
type streamPoller struct {
	mapping     StreamMapping
	streams     streamsAPI
	arn         string // as the engine says it
	eventARN    string // as events say it
	checkpoints *checkpoints
	removedTTL  func(types.Record) bool // whether the time-to-live sweep made this removal; nil: none
	log         *slog.Logger
	now         func() time.Time
}

// run polls until ctx ends; then invocations that are under way end first.
func (p *streamPoller) run(ctx context.Context) {
	var readers sync.WaitGroup
	defer readers.Wait()
	running, wake := map[string]bool{}, make(chan struct{}, 1)
	retry := backoff{first: retryFirst, last: retryLast}
	for ctx.Err() == nil {
		shards, err := p.shards(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("a stream cannot be described", "function", p.mapping.Function.Name, "error", err)
			}
			sleep(ctx, retry.pause())
			continue
		}
		retry.reset()
		present := map[string]bool{}
		for _, s := range shards {
			present[aws.ToString(s.ShardId)] = true
		}
		if err := p.checkpoints.forget(present); err != nil {
			p.log.Error("checkpoints cannot be written", "error", err)
		}
		for _, s := range shards {
			id, parent := aws.ToString(s.ShardId), aws.ToString(s.ParentShardId)
			if running[id] || p.checkpoints.get(id).Done || present[parent] && !p.checkpoints.get(parent).Done {
				continue // a parent's records come before its children's
			}
			running[id] = true
			readers.Go(func() {
				p.readShard(ctx, id)
				select {
				case wake <- struct{}{}: // its children may begin
				default:
				}
			})
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(discoverEvery):
		}
	}
}

func (p *streamPoller) shards(ctx context.Context) ([]types.Shard, error) {
	var all []types.Shard
	var from *string
	for {
		out, err := p.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &p.arn, ExclusiveStartShardId: from})
		if err != nil {
			return nil, err
		}
		all = append(all, out.StreamDescription.Shards...)
		if from = out.StreamDescription.LastEvaluatedShardId; from == nil {
			return all, nil
		}
	}
}

// readShard hands a shard's records to lanes until the shard has ended and all
// is done, or ctx ends.
func (p *streamPoller) readShard(ctx context.Context, shard string) {
	work := newShardWork(p, shard)
	stop := work.start(ctx, max(1, p.mapping.Parallel))
	defer stop()
	position := p.checkpoints.get(shard).After
	retry := backoff{first: retryFirst, last: retryLast}
	limit, iterator := int32(100), ""
	for ctx.Err() == nil {
		out, err := p.read(ctx, shard, &iterator, position, limit)
		if err != nil {
			iterator = ""
			var trimmed *types.TrimmedDataAccessException
			if errors.As(err, &trimmed) {
				position = "" // what was there is gone; the rest follows
				p.log.Error("a stream's records were trimmed before they were read", "function", p.mapping.Function.Name, "shard", shard)
			} else if ctx.Err() == nil {
				p.log.Warn("a stream cannot be read", "function", p.mapping.Function.Name, "shard", shard, "error", err)
			}
			sleep(ctx, retry.pause())
			continue
		}
		retry.reset()
		iterator = aws.ToString(out.NextShardIterator)
		if n := len(out.Records); n > 0 {
			bytes := work.add(ctx, out.Records)
			position = aws.ToString(out.Records[n-1].Dynamodb.SequenceNumber)
			full := n >= int(limit)
			limit = int32(min(mostPerRead, max(10, bytesPerRead/max(1, bytes/n))))
			if full && iterator != "" {
				continue // there is more
			}
		}
		if out.NextShardIterator == nil { // the shard has ended
			if work.drain(ctx) {
				p.save(shard, shardPoint{After: position, Done: true})
			}
			return
		}
		sleep(ctx, pollEvery)
	}
}

// read gets the next records, and an iterator first where there is none.
func (p *streamPoller) read(ctx context.Context, shard string, iterator *string, after string, limit int32) (*dynamodbstreams.GetRecordsOutput, error) {
	if *iterator == "" {
		in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &p.arn, ShardId: &shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
		if after != "" {
			in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &after
		}
		out, err := p.streams.GetShardIterator(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("shard iterator: %w", err)
		}
		*iterator = aws.ToString(out.ShardIterator)
	}
	out, err := p.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: &limit})
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return out, nil
}

func (p *streamPoller) save(shard string, point shardPoint) {
	if err := p.checkpoints.set(shard, point); err != nil {
		p.log.Error("a checkpoint cannot be written; the records since the last one will be handled again", "shard", shard, "error", err)
	}
}

// laneOf spreads items over lanes; one item is always in the same.
func laneOf(key string, lanes int) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(lanes))
}

// normalARN gives a stream's ARN the region that a real one has.
func normalARN(arn, region string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return arn
	}
	parts[3] = region
	return strings.Join(parts, ":")
}
