package lambdahost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/lambdahost"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/pipeline"
)

// operated is an App that a test runs by hand: repair when it says so, and the
// indexer for what is on the queue.
type operated struct {
	app           *lambdahost.App
	client        *sqs.Client
	signals, dead string
	admin         func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	repair        lambdahost.RepairHandler
	indexer       lambdahost.QueueHandler
}

func newOperated(t *testing.T) *operated {
	t.Helper()
	endpoint, queues, index := enginetest.DynamoDB(t), enginetest.SQS(t), enginetest.OpenSearch(t)
	conf := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	o := &operated{client: sqs.NewFromConfig(conf, func(o *sqs.Options) { o.BaseEndpoint = aws.String(queues) })}
	var urls []string
	for _, kind := range []string{"signals", "dead", "given-up"} {
		made, err := o.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(uniqueName(kind))})
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, *made.QueueUrl)
		t.Cleanup(func() {
			if _, err := o.client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
				t.Errorf("deleting a queue: %v", err)
			}
		})
	}
	o.signals, o.dead = urls[0], urls[1]
	c := lambdahost.Config{
		QueueURL: urls[0], DeadLettersURL: urls[1], GivenUpURL: urls[2], SQSEndpoint: queues, SearchEndpoint: index,
		IndexPrefix: uniqueName("index"), DynamoDBEndpoint: endpoint, RepairSettle: time.Second,
	}
	t.Cleanup(func() {
		req, err := http.NewRequest(http.MethodDelete, index+"/"+c.IndexPrefix+"-*", nil)
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
	o.app = newAppWith(t, conf, c)
	admin, err := o.app.Admin()
	if err != nil {
		t.Fatal(err)
	}
	indexer, err := o.app.Indexer()
	if err != nil {
		t.Fatal(err)
	}
	repairer, err := o.app.Repair()
	if err != nil {
		t.Fatal(err)
	}
	o.admin, o.indexer = lambdahost.HTTP(admin), lambdahost.Queue(indexer)
	o.repair = lambdahost.Repair(repairer, o.app.Store().State())
	return o
}

// ask asks the admin handler and reads its answer.
func (o *operated) ask(t *testing.T, method, target, body string) (int, map[string]any) {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	e := events.APIGatewayV2HTTPRequest{RawPath: path, RawQueryString: query, Body: body}
	e.RequestContext.HTTP.Method = method
	answer, err := o.admin(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var told map[string]any
	if err := json.Unmarshal([]byte(answer.Body), &told); err != nil {
		t.Fatalf("%s %s: %d %s", method, target, answer.StatusCode, answer.Body)
	}
	return answer.StatusCode, told
}

// problems are the kinds that the status tells, in words.
func (o *operated) problems(t *testing.T) string {
	t.Helper()
	status, told := o.ask(t, "GET", "/status", "")
	if status != 200 {
		t.Fatalf("%d %v", status, told)
	}
	var kinds []string
	for _, p := range told["problems"].([]any) {
		kinds = append(kinds, p.(map[string]any)["type"].(string))
	}
	if told["healthy"] != (len(kinds) == 0) {
		t.Errorf("%v", told)
	}
	return strings.Join(kinds, " ")
}

// work gives the indexer everything that the change feed shows and what is on
// the queue, again and again until the test ends.
func (o *operated) work(t *testing.T) {
	var working sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); working.Wait() })
	given := map[doc.Signal]bool{}
	working.Go(func() {
		for ctx.Err() == nil {
			err := errors.Join(o.relay(ctx, given), o.consume(ctx))
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// relay gives the indexer what is new in the feed.
func (o *operated) relay(ctx context.Context, given map[doc.Signal]bool) error {
	var signals []doc.Signal
	err := o.app.Store().Sweep(ctx, 0, func(changes []doc.Change) error {
		for _, c := range changes {
			if s := (doc.Signal{ID: c.ID, Version: c.Version}); !given[s] {
				given[s] = true
				signals = append(signals, s)
			}
		}
		return nil
	})
	packed, packErr := pipeline.Pack(signals, 0)
	if err = errors.Join(err, packErr); err != nil {
		return err
	}
	var e events.SQSEvent
	for i, p := range packed {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: p.Body})
	}
	return o.indexed(ctx, e)
}

// consume gives the indexer what is on the queue of signals.
func (o *operated) consume(ctx context.Context) error {
	got, err := o.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &o.signals, MaxNumberOfMessages: 10})
	if err != nil {
		return err
	}
	var e events.SQSEvent
	for _, m := range got.Messages {
		e.Records = append(e.Records, events.SQSMessage{MessageId: *m.MessageId, Body: *m.Body})
	}
	if err := o.indexed(ctx, e); err != nil {
		return err
	}
	for _, m := range got.Messages {
		if _, err := o.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &o.signals, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	return nil
}

func (o *operated) indexed(ctx context.Context, e events.SQSEvent) error {
	if len(e.Records) == 0 {
		return nil
	}
	answer, err := o.indexer(ctx, e)
	if err == nil && len(answer.BatchItemFailures) > 0 {
		err = fmt.Errorf("%d messages failed", len(answer.BatchItemFailures))
	}
	return err
}

// eventually waits for what the indexer does in its own time.
func (o *operated) eventually(t *testing.T, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = o.problems(t); got == want {
			return
		}
	}
	t.Fatalf("the problems are %q, not %q", got, want)
}

// until runs repair until the status tells just this. A run may fail, as on an
// engine that is busy; the next one goes on.
func (o *operated) until(t *testing.T, want string) {
	t.Helper()
	got := ""
	for range 20 {
		answer, err := o.repair(t.Context(), lambdahost.RepairEvent{Mode: repair.Prove})
		if !answer.Held {
			t.Fatalf("nobody else runs repair, and it is not held; %v", err)
		}
		if got = o.problems(t); got == want {
			return
		}
	}
	_, told := o.ask(t, "GET", "/jobs/repair", "")
	t.Fatalf("the problems are %q, not %q; repair says %v", got, want, told)
}

// TestOperating has a system go from nothing to healthy, and into trouble and
// out of it, on the real engines.
func TestOperating(t *testing.T) {
	o := newOperated(t)
	if got := o.problems(t); got != "job-never-ran" {
		t.Errorf("in the beginning: %s", got)
	}
	var written [3]doc.Written
	for i := range written {
		var err error
		if written[i], err = o.app.Store().Put(t.Context(), doc.ID(fmt.Sprintf("users/%d", i)), map[string]any{"n": json.Number("1")}, doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := o.problems(t); got != "job-never-ran not-proven" {
		t.Errorf("with documents: %s", got)
	}
	o.work(t)
	o.until(t, "")
	status, told := o.ask(t, "GET", "/status", "")
	users, _ := told["collections"].([]any)
	if status != 200 || len(users) != 1 {
		t.Fatalf("%v", told)
	}
	if u := users[0].(map[string]any); u["name"] != "users" || u["documents"] != 3.0 || u["generation"] != 1.0 || u["provenThrough"] == nil || u["reindexing"] != false {
		t.Errorf("%v", u)
	}

	// A document in quarantine, which nothing is wrong with.
	entry := doc.Quarantined{ID: "users/1", Collection: "users", Version: written[1].Version, Reason: "for no reason", Since: time.Now()}
	if err := o.app.Store().State().RecordQuarantine(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	if got := o.problems(t); got != "quarantine" {
		t.Errorf("%s", got)
	}
	if _, told := o.ask(t, "GET", "/quarantine?collection=users", ""); len(told["entries"].([]any)) != 1 {
		t.Errorf("%v", told)
	}
	time.Sleep(6 * time.Second) // an indexer believes for five seconds that a collection has no entries
	if status, told := o.ask(t, "POST", "/quarantine/retry", `{"collection":"users"}`); status != 202 || told["signalled"] != 1.0 {
		t.Errorf("%d %v", status, told)
	}
	o.eventually(t, "")

	// Dead letters, of which one can be read.
	for _, body := range []string{fmt.Sprintf(`{"v":1,"signals":[{"id":"users/2","v":%d}]}`, written[2].Version), "junk"} {
		if _, err := o.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &o.dead, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	if got := o.problems(t); got != "dead-letters" {
		t.Errorf("%s", got)
	}
	if _, told := o.ask(t, "GET", "/dead-letters", ""); len(told["messages"].([]any)) != 2 {
		t.Errorf("%v", told)
	}
	if status, told := o.ask(t, "POST", "/dead-letters/redrive", ""); status != 200 || told["moved"] != 1.0 || told["remaining"] != 1.0 {
		t.Errorf("%d %v", status, told)
	}
	if status, told := o.ask(t, "POST", "/dead-letters/redrive", `{"discard":true}`); status != 200 || told["discarded"] != 1.0 || told["remaining"] != 0.0 {
		t.Errorf("%d %v", status, told)
	}
	o.until(t, "")

	// A comparison that is asked for is made by the next run.
	if status, told := o.ask(t, "POST", "/jobs/repair", `{"mode":"compare"}`); status != 202 {
		t.Errorf("%d %v", status, told)
	}
	if status, told := o.ask(t, "POST", "/jobs/repair", `{"mode":"compare"}`); status != 409 || told["type"] != "/problems/job-running" {
		t.Errorf("%d %v", status, told)
	}
	before := lastPass(t, o)
	o.until(t, "")
	if after := lastPass(t, o); after == before {
		t.Errorf("no comparison since %s", before)
	}
	if _, told := o.ask(t, "GET", "/jobs/repair", ""); len(told["requests"].([]any)) != 0 {
		t.Errorf("%v", told)
	}
}

// lastPass is when the last comparison began.
func lastPass(t *testing.T, o *operated) string {
	t.Helper()
	_, told := o.ask(t, "GET", "/jobs/repair", "")
	last, _ := told["last"].(map[string]any)
	detail, _ := last["detail"].(map[string]any)
	pass, _ := detail["lastPass"].(map[string]any)
	began, _ := pass["started"].(string)
	return began
}
