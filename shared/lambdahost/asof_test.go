package lambdahost_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/doc"
	"holdfast/shared/lambdahost"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/pipeline"
)

// system is an App of which a test is the pipeline: nothing is indexed unless
// the test does it.
type system struct {
	app              *lambdahost.App
	documents, query func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	indexer          func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
}

func newSystem(t *testing.T) *system {
	t.Helper()
	endpoint, queues, index := enginetest.DynamoDB(t), enginetest.SQS(t), enginetest.OpenSearch(t)
	conf := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	client := sqs.NewFromConfig(conf, func(o *sqs.Options) { o.BaseEndpoint = aws.String(queues) })
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(uniqueName("signals"))})
	if err != nil {
		t.Fatal(err)
	}
	prefix := uniqueName("index")
	t.Cleanup(func() {
		if _, err := client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl}); err != nil {
			t.Errorf("deleting the queue: %v", err)
		}
		req, err := http.NewRequest(http.MethodDelete, index+"/"+prefix+"-*", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("deleting the indexes: %v", err)
			return
		}
		_ = res.Body.Close()
	})
	app := newAppWith(t, conf, lambdahost.Config{
		QueueURL: *queue.QueueUrl, SQSEndpoint: queues, SearchEndpoint: index, IndexPrefix: prefix, DynamoDBEndpoint: endpoint,
	})
	query, err := app.Query(nil)
	if err != nil {
		t.Fatal(err)
	}
	indexer, err := app.Indexer()
	if err != nil {
		t.Fatal(err)
	}
	return &system{app: app, documents: lambdahost.HTTP(app.Documents()), query: lambdahost.HTTP(query), indexer: lambdahost.Queue(indexer)}
}

func (s *system) put(t *testing.T, id doc.ID) doc.Signal {
	t.Helper()
	w, err := s.app.Store().Put(t.Context(), id, map[string]any{"n": json.Number("1")}, doc.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return doc.Signal{ID: w.ID, Version: w.Version}
}

func (s *system) index(t *testing.T, signals ...doc.Signal) {
	t.Helper()
	packed, err := pipeline.Pack(signals, 0)
	if err != nil {
		t.Fatal(err)
	}
	var e events.SQSEvent
	for i, p := range packed {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: p.Body})
	}
	res, err := s.indexer(t.Context(), e)
	if err != nil || len(res.BatchItemFailures) > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
}

// found is the answer to a query that waits as of now.
type found struct {
	status int
	body   string
	ids    []string

	Documents []struct {
		ID string `json:"id"`
	} `json:"documents"`
	Missing      []string `json:"missing"`
	MissingCount int      `json:"missingCount"`
	Staleness    struct {
		Stale         bool     `json:"stale"`
		TimedOut      bool     `json:"timedOut"`
		ProvenThrough *string  `json:"provenThrough"`
		WaitedFor     []string `json:"waitedFor"`
		Notice        string   `json:"notice"`
	} `json:"staleness"`
}

func (s *system) ask(t *testing.T, timeout, onTimeout string) found {
	t.Helper()
	e := events.APIGatewayV2HTTPRequest{RawPath: "/query", Body: fmt.Sprintf(`{"from":"users","wait":{"asOfNow":true,"timeout":%q,"onTimeout":%q}}`, timeout, onTimeout)}
	e.RequestContext.HTTP.Method = http.MethodPost
	res, err := s.query(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	f := found{status: res.StatusCode, body: res.Body}
	if err := json.Unmarshal([]byte(res.Body), &f); err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Documents {
		f.ids = append(f.ids, d.ID)
	}
	return f
}

// TestAsOfNowOnTheEngines has the pipeline stand still, go on, and meet a
// document that it cannot index.
func TestAsOfNowOnTheEngines(t *testing.T) {
	s := newSystem(t)
	expect := func(what string, f found, status int, ids ...string) {
		t.Helper()
		if f.status != status || !slices.Equal(f.ids, ids) || status == 200 && !slices.Equal(f.Staleness.WaitedFor, []string{"asOfNow"}) {
			t.Errorf("%s: %d %s", what, f.status, f.body)
		}
		if status == 200 && (!f.Staleness.Stale || f.Staleness.ProvenThrough != nil) {
			t.Errorf("%s: more is said than is known: %s", what, f.body)
		}
	}
	expect("no document and no index", s.ask(t, "20s", "error"), 200)

	one, two := s.put(t, "users/1"), s.put(t, "users/2")
	s.put(t, "orders/1") // nobody asks for it
	f := s.ask(t, "3s", "error")
	expect("a new index that does not come", f, 504)
	if !slices.Equal(f.Missing, []string{"users/1", "users/2"}) || f.MissingCount != 2 || !strings.Contains(f.body, "/problems/wait-timeout") {
		t.Errorf("%s", f.body)
	}
	s.index(t, one)
	f = s.ask(t, "3500ms", "stale")
	expect("a pipeline that stopped half way", f, 200, "users/1")
	if !f.Staleness.TimedOut || !strings.Contains(f.Staleness.Notice, "1 of the 2") {
		t.Errorf("%s", f.body)
	}
	s.index(t, two)
	f = s.ask(t, "20s", "error")
	expect("a pipeline that goes on", f, 200, "users/1", "users/2")
	if f.Staleness.TimedOut {
		t.Errorf("%s", f.body)
	}

	gone, err := s.app.Store().Delete(t.Context(), "users/1", doc.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	f = s.ask(t, "3s", "error")
	if expect("a delete on its way", f, 504); !slices.Equal(f.Missing, []string{"users/1"}) {
		t.Errorf("%s", f.body)
	}
	s.index(t, doc.Signal{ID: gone.ID, Version: gone.Version})
	expect("a delete that arrived", s.ask(t, "20s", "error"), 200, "users/2")

	poisoned := s.put(t, "users/3")
	err = s.app.Store().State().RecordQuarantine(t.Context(), doc.Quarantined{ID: "users/3", Collection: "users", Version: poisoned.Version, Reason: "no"})
	if err != nil {
		t.Fatal(err)
	}
	f = s.ask(t, "20s", "error")
	expect("a poisoned document", f, 200, "users/2")
	if f.Staleness.TimedOut || !strings.Contains(f.Staleness.Notice, "could not take users/3") || !strings.Contains(f.Staleness.Notice, "1 document is not indexed in full") {
		t.Errorf("%s", f.body)
	}
}
