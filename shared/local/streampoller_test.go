package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// seen collects what a handler was given.
type seen struct {
	mu      sync.Mutex
	batches [][]string // sequence numbers
	all     []string
}

func (s *seen) note(e events.DynamoDBEvent) []string {
	batch := make([]string, len(e.Records))
	for i, r := range e.Records {
		batch[i] = r.Change.SequenceNumber
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, batch)
	s.all = append(s.all, batch...)
	return batch
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (s *seen) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func failing(sequences ...string) events.DynamoDBEventResponse {
	var r events.DynamoDBEventResponse
	for _, q := range sequences {
		r.BatchItemFailures = append(r.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: q})
	}
	return r
}

func oneShard(records ...types.Record) *fakeStream {
	return &fakeStream{shards: []*fakeShard{{id: "s", records: records}}}
}

func changes(from, to int, key func(int) string) (records []types.Record) {
	for n := from; n <= to; n++ {
		records = append(records, change(key(n), n))
	}
	return records
}

func oneKey(int) string { return "k" }

func numbers(from, to int) (all []string) {
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return all
}

func TestRecordsOfOneItemStayInOrderAcrossParallelBatches(t *testing.T) {
	const records, items = 600, 23
	f := oneShard(changes(1, records, func(n int) string { return fmt.Sprint("item", n%items) })...)
	var got seen
	var mu sync.Mutex
	last, busy := map[string]int{}, map[string]bool{}
	var running, most atomic.Int32
	polling(t, newPoller(t, f, filepath.Join(t.TempDir(), "p"), StreamMapping{
		BatchSize: 7, Parallel: 4, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			keys := map[string]bool{}
			mu.Lock()
			for _, r := range e.Records {
				key := r.Change.Keys["pk"].String()
				if busy[key] && !keys[key] {
					t.Errorf("%s is in two invocations at a time", key)
				}
				keys[key], busy[key] = true, true
				n, _ := r.Change.NewImage["n"].Integer()
				if int(n) <= last[key] {
					t.Errorf("%s: %d after %d", key, n, last[key])
				}
				last[key] = int(n)
			}
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			for key := range keys {
				busy[key] = false
			}
			mu.Unlock()
			got.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
	}))
	eventually(t, "all records", func() bool { return got.count() >= records })
	for _, b := range got.batches {
		if len(b) > 7 {
			t.Errorf("a batch of %d", len(b))
		}
	}
	if most.Load() < 2 || most.Load() > 4 {
		t.Errorf("%d invocations at a time", most.Load())
	}
	if got.count() != records {
		t.Errorf("%d deliveries of %d records", got.count(), records)
	}
}

func TestRetryBeginsAtTheLowestFailedSequence(t *testing.T) {
	f := oneShard(changes(1, 10, oneKey)...)
	var got seen
	var failures atomic.Int32
	polling(t, newPoller(t, f, filepath.Join(t.TempDir(), "p"), StreamMapping{
		BatchSize: 5, Partial: true, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			batch := got.note(e)
			if slices.Contains(batch, "3") && failures.Add(1) <= 2 {
				return failing("4", "3"), nil // the lowest counts
			}
			return events.DynamoDBEventResponse{}, nil
		},
	}))
	want := [][]string{numbers(1, 5), numbers(3, 5), numbers(3, 5), numbers(6, 10)}
	eventually(t, "four invocations", func() bool { return got.count() >= 5+3+3+5 })
	if !slices.EqualFunc(got.batches, want, slices.Equal) {
		t.Errorf("invocations %v, want %v", got.batches, want)
	}
}

func TestAnUnknownIdentifierFailsTheWholeBatch(t *testing.T) {
	f := oneShard(changes(1, 3, oneKey)...)
	var got seen
	polling(t, newPoller(t, f, filepath.Join(t.TempDir(), "p"), StreamMapping{
		Partial: true, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			got.note(e)
			if len(got.batches) == 1 {
				return failing("99"), nil
			}
			return events.DynamoDBEventResponse{}, nil
		},
	}))
	eventually(t, "the second try", func() bool { return got.count() >= 6 })
	if !slices.Equal(got.batches[1], numbers(1, 3)) {
		t.Errorf("the second try has %v", got.batches[1])
	}
}

// A record that always fails is found by cutting its batch, tried as often as
// told and given up; its neighbours are handled.
func TestBisectingFindsThePoison(t *testing.T) {
	f := oneShard(changes(1, 16, oneKey)...)
	var got seen
	var given []GivenUp
	var mu sync.Mutex
	var refuse atomic.Bool
	refuse.Store(true)
	polling(t, newPoller(t, f, filepath.Join(t.TempDir(), "p"), StreamMapping{
		BatchSize: 16, Bisect: true, Retries: 1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			for _, r := range e.Records {
				if r.Change.SequenceNumber == "11" {
					panic("poison")
				}
			}
			got.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
		GiveUp: func(_ context.Context, g GivenUp) error {
			if refuse.Swap(false) {
				return errors.New("the destination is away")
			}
			mu.Lock()
			defer mu.Unlock()
			given = append(given, g)
			return nil
		},
	}))
	eventually(t, "the other records", func() bool { return got.count() >= 15 })
	want := slices.DeleteFunc(numbers(1, 16), func(s string) bool { return s == "11" })
	if !slices.Equal(got.list(), want) {
		t.Errorf("handled %v", got.list())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(given) != 1 || given[0].First != "11" || given[0].Last != "11" || given[0].Records != 1 || given[0].Reason != "RetryAttemptsExhausted" || given[0].Invocations != 2 {
		t.Errorf("given up: %+v", given)
	}
}

func TestRecordsThatAreTooOldAreGivenUp(t *testing.T) {
	records := changes(1, 4, oneKey)
	for _, r := range records[:2] {
		r.Dynamodb.ApproximateCreationDateTime = aws.Time(time.Now().Add(-time.Hour))
	}
	var got seen
	var given atomic.Value
	polling(t, newPoller(t, oneShard(records...), filepath.Join(t.TempDir(), "p"), StreamMapping{
		MaxAge: time.Minute, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			got.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
		GiveUp: func(_ context.Context, g GivenUp) error { given.Store(g); return nil },
	}))
	eventually(t, "the young records", func() bool { return got.count() >= 2 })
	g, _ := given.Load().(GivenUp)
	if g.Reason != "RecordAgeExceeded" || g.First != "1" || g.Last != "2" || g.Records != 2 {
		t.Errorf("given up: %+v", g)
	}
	if !slices.Equal(got.list(), numbers(3, 4)) {
		t.Errorf("handled %v", got.list())
	}
}

// What was not handled when the process ended is handled by the next one, from
// the file alone; what was handled before a checkpoint is not repeated.
func TestCheckpointsSurvive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "p")
	f := oneShard(changes(1, 30, oneKey)...)
	var first, second seen
	stop := polling(t, newPoller(t, f, file, StreamMapping{
		BatchSize: 10, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			if first.note(e)[0] == "11" {
				return events.DynamoDBEventResponse{}, errors.New("not now")
			}
			return events.DynamoDBEventResponse{}, nil
		},
	}))
	eventually(t, "the failing batch", func() bool { return first.count() >= 20 })
	stop()
	polling(t, newPoller(t, f, file, StreamMapping{
		BatchSize: 10, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			second.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
	}))
	eventually(t, "the rest", func() bool { return second.count() >= 20 })
	if !slices.Equal(second.list(), numbers(11, 30)) {
		t.Errorf("the second process handled %v", second.list())
	}
}

// With several lanes the checkpoint stays before the first record that is not
// done, however far other lanes are.
func TestTheCheckpointWaitsForTheSlowestLane(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p")
	slow := "a"
	fast := "b"
	for laneOf(recordKey(change(fast, 0).Dynamodb.Keys), 2) == laneOf(recordKey(change(slow, 0).Dynamodb.Keys), 2) {
		fast += "b"
	}
	f := oneShard(change(fast, 1), change(slow, 2), change(fast, 3), change(fast, 4))
	release := make(chan struct{})
	var got seen
	p := newPoller(t, f, file, StreamMapping{
		Parallel: 2, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			if e.Records[0].Change.Keys["pk"].String() == slow {
				<-release
			}
			got.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
	})
	polling(t, p)
	eventually(t, "the fast lane", func() bool { return got.count() >= 3 })
	eventually(t, "the checkpoint", func() bool { return p.checkpoints.get("s").After == "1" })
	close(release)
	eventually(t, "the checkpoint to move on", func() bool { return p.checkpoints.get("s").After == "4" })
}

func TestAParentShardComesBeforeItsChildren(t *testing.T) {
	f := &fakeStream{shards: []*fakeShard{
		{id: "child", parent: "parent", records: changes(4, 6, oneKey)},
		{id: "parent", parent: "trimmed away", records: changes(1, 3, oneKey), closed: true},
	}}
	file := filepath.Join(t.TempDir(), "p")
	var got seen
	mapping := StreamMapping{
		BatchSize: 1, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			got.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
	}
	stop := polling(t, newPoller(t, f, file, mapping))
	eventually(t, "both shards", func() bool { return got.count() >= 6 })
	if !slices.Equal(got.list(), numbers(1, 6)) {
		t.Errorf("the order is %v", got.list())
	}
	stop()
	f.mu.Lock()
	f.shard("child").records = append(f.shard("child").records, change("k", 7))
	f.mu.Unlock()
	polling(t, newPoller(t, f, file, mapping))
	eventually(t, "the new record", func() bool { return got.count() >= 7 })
	if !slices.Equal(got.list(), numbers(1, 7)) {
		t.Errorf("after a restart the order is %v", got.list())
	}
}

func TestWhatAFunctionIsGiven(t *testing.T) {
	same := change("k", 1)
	same.EventName, same.Dynamodb.OldImage = types.OperationTypeModify, same.Dynamodb.NewImage
	removed := change("k", 2)
	removed.EventName, removed.Dynamodb.OldImage, removed.Dynamodb.NewImage = types.OperationTypeRemove, removed.Dynamodb.NewImage, nil
	whole := change("k", 3)
	whole.AwsRegion = aws.String("elsewhere")
	whole.Dynamodb.NewImage = map[string]types.AttributeValue{
		"s": &types.AttributeValueMemberS{Value: "x"}, "n": &types.AttributeValueMemberN{Value: "1.5"},
		"b": &types.AttributeValueMemberB{Value: []byte{0, 1}}, "t": &types.AttributeValueMemberBOOL{Value: true},
		"z": &types.AttributeValueMemberNULL{Value: true}, "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "2"}}},
		"m":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"": &types.AttributeValueMemberS{}}},
		"ss": &types.AttributeValueMemberSS{Value: []string{"a"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{2}}},
	}
	records := make(chan events.DynamoDBEventRecord, 10)
	p := newPoller(t, oneShard(same, removed, whole), filepath.Join(t.TempDir(), "p"), StreamMapping{
		Retries: -1,
		Handler: func(ctx context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			if c, ok := lambdacontext.FromContext(ctx); !ok || c.AwsRequestID == "" || !strings.HasSuffix(c.InvokedFunctionArn, ":function:f") {
				t.Error("the context does not say which invocation it is")
			}
			if d, ok := ctx.Deadline(); !ok || time.Until(d) > 10*time.Second {
				t.Error("the context has no deadline")
			}
			for _, r := range e.Records {
				records <- r
			}
			return events.DynamoDBEventResponse{}, nil
		},
	})
	p.removedTTL = func(r types.Record) bool { return *r.Dynamodb.SequenceNumber == "2" }
	polling(t, p)
	first, second := <-records, <-records
	if first.Change.SequenceNumber != "2" {
		t.Errorf("a write that changed nothing was handed over: %+v", first)
	}
	if u := first.UserIdentity; u == nil || u.Type != "Service" || u.PrincipalID != "dynamodb.amazonaws.com" {
		t.Errorf("the removal by time to live is signed %+v", u)
	}
	if second.UserIdentity != nil {
		t.Error("a write is signed by time to live")
	}
	if second.AWSRegion != "us-east-1" || second.EventSourceArn != strings.Replace(fakeARN, "elsewhere", "us-east-1", 1) || second.EventSource != "aws:dynamodb" {
		t.Errorf("from %s %s %s", second.AWSRegion, second.EventSourceArn, second.EventSource)
	}
	n := second.Change.NewImage
	if n["s"].String() != "x" || n["n"].Number() != "1.5" || !slices.Equal(n["b"].Binary(), []byte{0, 1}) || !n["t"].Boolean() || !n["z"].IsNull() ||
		n["l"].List()[0].Number() != "2" || n["m"].Map()[""].String() != "" || n["ss"].StringSet()[0] != "a" || n["ns"].NumberSet()[0] != "1" || n["bs"].BinarySet()[0][0] != 2 {
		t.Errorf("the image is %v", n)
	}
	if size, real := eventBytes(second), jsonBytes(second); size < real || size > real+1000 {
		t.Errorf("the event's size is taken for %d, it is %d", size, real)
	}
}

func TestABatchOfLargeRecordsKeepsThePayloadLimit(t *testing.T) {
	records := changes(1, 40, oneKey)
	for _, r := range records {
		r.Dynamodb.NewImage["big"] = &types.AttributeValueMemberS{Value: strings.Repeat("\"", 200_000)}
	}
	var got seen
	polling(t, newPoller(t, oneShard(records...), filepath.Join(t.TempDir(), "p"), StreamMapping{
		BatchSize: 100, Retries: -1,
		Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			if n := jsonBytes(e); n > maxPayload {
				t.Errorf("an event of %d bytes", n)
			}
			got.note(e)
			return events.DynamoDBEventResponse{}, nil
		},
	}))
	eventually(t, "all records", func() bool { return got.count() >= 40 })
}

func TestAnIdleStreamIsReadAFewTimesASecond(t *testing.T) {
	f := oneShard()
	stop := polling(t, newPoller(t, f, filepath.Join(t.TempDir(), "p"), StreamMapping{Retries: -1}))
	time.Sleep(time.Second)
	stop()
	if f.calls > 8 {
		t.Errorf("%d calls in a second", f.calls)
	}
}

func TestCheckpointsOfAnotherStreamAreNotUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p")
	c, err := openCheckpoints(file, "one")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.set("s", shardPoint{After: "5"}); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]string{"one": "5", "two": ""} {
		c, err := openCheckpoints(file, stream)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.get("s").After; got != want {
			t.Errorf("stream %s begins after %q, want %q", stream, got, want)
		}
	}
}
