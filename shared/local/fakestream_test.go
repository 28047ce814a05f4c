package local

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/shared/local/engines"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/obs"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fakeStream is a stream in memory.
type fakeStream struct {
	mu     sync.Mutex
	shards []*fakeShard
	calls  int
}

type fakeShard struct {
	id, parent string
	records    []types.Record
	closed     bool
}

const fakeARN = "arn:aws:dynamodb:elsewhere:000000000000:table/t/stream/1"

func (f *fakeStream) DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &types.StreamDescription{}
	for _, s := range f.shards {
		shard := types.Shard{ShardId: aws.String(s.id)}
		if s.parent != "" {
			shard.ParentShardId = aws.String(s.parent)
		}
		d.Shards = append(d.Shards, shard)
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (f *fakeStream) shard(id string) *fakeShard {
	for _, s := range f.shards {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (f *fakeStream) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := 0
	if in.ShardIteratorType == types.ShardIteratorTypeAfterSequenceNumber {
		for i, r := range f.shard(*in.ShardId).records {
			if *r.Dynamodb.SequenceNumber == *in.SequenceNumber {
				from = i + 1
			}
		}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprintf("%s@%d", *in.ShardId, from))}, nil
}

func (f *fakeStream) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	id, at, _ := strings.Cut(*in.ShardIterator, "@")
	from, err := strconv.Atoi(at)
	if err != nil {
		return nil, err
	}
	s := f.shard(id)
	to := min(len(s.records), from+int(*in.Limit))
	out := &dynamodbstreams.GetRecordsOutput{Records: s.records[from:to]}
	if !s.closed || to < len(s.records) {
		out.NextShardIterator = aws.String(fmt.Sprintf("%s@%d", id, to))
	}
	return out, nil
}

// change is a record of an item's becoming value n.
func change(key string, n int) types.Record {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	keys := map[string]types.AttributeValue{"pk": text(key), "sk": text("/")}
	return types.Record{
		EventID: aws.String(fmt.Sprint(n)), EventName: types.OperationTypeInsert,
		Dynamodb: &types.StreamRecord{
			Keys: keys, SequenceNumber: aws.String(fmt.Sprint(n)), ApproximateCreationDateTime: aws.Time(time.Now()),
			NewImage: map[string]types.AttributeValue{"pk": keys["pk"], "sk": keys["sk"], "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}},
		},
	}
}

// newPoller makes a poller over a fake stream, with its checkpoints in file.
func newPoller(t *testing.T, f *fakeStream, file string, m StreamMapping) *streamPoller {
	t.Helper()
	points, err := openCheckpoints(file, fakeARN)
	if err != nil {
		t.Fatal(err)
	}
	m.Function = Function{Name: "f", Timeout: 10 * time.Second}
	return &streamPoller{
		mapping: m, streams: f, arn: fakeARN, eventARN: normalARN(fakeARN, engines.Region), checkpoints: points, log: obs.Discard(), now: time.Now,
	}
}

// polling runs until the test, or stop, ends it.
func polling(t *testing.T, p *streamPoller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}
