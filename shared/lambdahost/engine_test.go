package lambdahost_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/store"
	"holdfast/shared/where"
)

func uniqueName(kind string) string {
	return "lambdahost-" + strings.ToLower(rand.Text()[:12]) + "-" + kind
}

func TestMain(m *testing.M) { enginetest.Main(m) }

// newApp builds the parts on tables of their own.
func newApp(t *testing.T) *lambdahost.App {
	t.Helper()
	conf := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	return newAppWith(t, conf, lambdahost.Config{DynamoDBEndpoint: enginetest.DynamoDB(t)})
}

// newAppWith completes a configuration with tables.
func newAppWith(t *testing.T, conf aws.Config, c lambdahost.Config) *lambdahost.App {
	t.Helper()
	client := dynamodb.NewFromConfig(conf, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(c.DynamoDBEndpoint) })
	c.DocumentsTable, c.StateTable = uniqueName("documents"), uniqueName("state")
	for _, table := range store.Schema(c.DocumentsTable, c.StateTable) {
		if _, err := client.CreateTable(t.Context(), &table); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// The test's own context has ended by now.
			if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: table.TableName}); err != nil {
				t.Errorf("deleting a table: %v", err)
			}
		})
	}
	app, err := lambdahost.Build(c, lambdahost.Surroundings{AWS: conf, Queues: queues.Open})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// Every id addresses the same document by path and by ?id=, through the payload
// of either kind of gateway, and comes back as what it is.
func TestIDsThroughTheGatewaysToTheTable(t *testing.T) {
	app := newApp(t)
	httpAPI, restAPI := lambdahost.HTTP(app.Documents()), lambdahost.REST(app.Documents())
	v2 := func(method, path, query, body string) events.APIGatewayV2HTTPResponse {
		t.Helper()
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, RawQueryString: query, Body: body}
		e.RequestContext.HTTP.Method = method
		res, err := httpAPI(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, id := range []string{
		"users/1", "users/a b", "users/a+b", "users/50%", "users/%41", "users/%2F", "users/a?b", "users/a#b", "users/a&b=c", `users/"q"`, `users/a\b`,
		"users/é/ü/日本", "users/...", "users/1/account/3", "users/A", "users/a", "users/a;b,c", "users/{x}", "users/ ",
		"users/" + strings.Repeat("k", 506), "users/" + strings.Repeat("é", 253),
	} {
		body := fmt.Sprintf(`{"is":%s}`, quoted(t, id))
		put := v2("PUT", "/docs/"+id, "", body)
		var written struct{ ID string }
		if err := json.Unmarshal([]byte(put.Body), &written); err != nil || put.StatusCode != 201 || written.ID != id {
			t.Errorf("%s: %d %s", id, put.StatusCode, put.Body)
			continue
		}
		check := func(how string, status int, text string) {
			t.Helper()
			var got struct{ Is string }
			if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || got.Is != id {
				t.Errorf("%s %s: %d %s", id, how, status, text)
			}
		}
		byPath := v2("GET", "/docs/"+id, "", "")
		check("by path", byPath.StatusCode, byPath.Body)
		byID := v2("GET", "/docs", "id="+url.QueryEscape(id), "")
		check("by ?id=", byID.StatusCode, byID.Body)

		segments := strings.Split(id, "/")
		for i := range segments {
			segments[i] = url.PathEscape(segments[i])
		}
		rest, err := restAPI(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/docs/" + strings.Join(segments, "/")})
		if err != nil {
			t.Fatal(err)
		}
		check("by the path of a REST API", rest.StatusCode, rest.Body)
		rest, err = restAPI(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/docs", QueryStringParameters: map[string]string{"id": id}})
		if err != nil {
			t.Fatal(err)
		}
		check("by ?id= of a REST API", rest.StatusCode, rest.Body)

		if again := v2("PUT", "/docs", "id="+url.QueryEscape(id), body); again.StatusCode != 200 {
			t.Errorf("%s: saved by ?id= it is another document: %d %s", id, again.StatusCode, again.Body)
		}
	}
	created := v2("POST", "/docs/users/1/account/", "", `{}`)
	location, err := url.PathUnescape(created.Headers["Location"])
	if err != nil || created.StatusCode != 201 {
		t.Fatalf("%d %s", created.StatusCode, created.Body)
	}
	if got := v2("GET", location, "", ""); got.StatusCode != 200 {
		t.Errorf("%s: %d %s", location, got.StatusCode, got.Body)
	}
}

// The refusals that only the table can make arrive as problems.
func TestConditionsThroughTheGatewayToTheTable(t *testing.T) {
	serve := lambdahost.HTTP(newApp(t).Documents())
	send := func(method, body string, headers map[string]string) events.APIGatewayV2HTTPResponse {
		t.Helper()
		e := events.APIGatewayV2HTTPRequest{RawPath: "/docs/users/1", Body: body, Headers: headers}
		e.RequestContext.HTTP.Method = method
		res, err := serve(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := send("PUT", `{"n":1}`, map[string]string{"if-none-match": "*"})
	if first.StatusCode != 201 {
		t.Fatalf("%d %s", first.StatusCode, first.Body)
	}
	tag := first.Headers["Etag"]
	var problem struct {
		Type             string
		Expected, Actual json.RawMessage
	}
	again := send("PUT", `{}`, map[string]string{"if-none-match": "*"})
	if err := json.Unmarshal([]byte(again.Body), &problem); err != nil || again.StatusCode != 412 || string(problem.Expected) != "null" || string(problem.Actual) != strings.Trim(tag, `"`) {
		t.Errorf("%d %s", again.StatusCode, again.Body)
	}
	weak := send("PUT", `{}`, map[string]string{"if-match": "W/" + tag})
	if err := json.Unmarshal([]byte(weak.Body), &problem); err != nil || weak.StatusCode != 412 || string(problem.Expected) != quoted(t, "W/"+tag) || string(problem.Actual) != strings.Trim(tag, `"`) {
		t.Errorf("%d %s", weak.StatusCode, weak.Body)
	}
	if second := send("PUT", `{"n":2}`, map[string]string{"if-match": `"7", ` + tag}); second.StatusCode != 200 {
		t.Errorf("%d %s", second.StatusCode, second.Body)
	}
	if stale := send("DELETE", "", map[string]string{"if-match": tag}); stale.StatusCode != 412 {
		t.Errorf("%d %s", stale.StatusCode, stale.Body)
	}
	if large := send("PUT", `{"s":"`+strings.Repeat("x", 410_000)+`"}`, nil); large.StatusCode != 413 || !strings.Contains(large.Body, "document-too-large") || !strings.Contains(large.Body, `"limit":409600`) {
		t.Errorf("%d %s", large.StatusCode, large.Body)
	}
	if current := send("GET", "", nil); current.Body != `{"n":2}` {
		t.Errorf("%d %s", current.StatusCode, current.Body)
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(b))
}

// The parts fit together: what the documents handler wrote, the indexer brings
// to the index, and the query handler finds it after the token.
func TestAllPartsOfAnAppTogether(t *testing.T) {
	endpoint, queues, index := enginetest.DynamoDB(t), enginetest.SQS(t), enginetest.OpenSearch(t)
	conf := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	client := sqs.NewFromConfig(conf, func(o *sqs.Options) { o.BaseEndpoint = aws.String(queues) })
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(uniqueName("signals"))})
	if err != nil {
		t.Fatal(err)
	}
	c := lambdahost.Config{QueueURL: *queue.QueueUrl, SQSEndpoint: queues, SearchEndpoint: index, IndexPrefix: uniqueName("index"), DynamoDBEndpoint: endpoint}
	t.Cleanup(func() {
		if _, err := client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl}); err != nil {
			t.Errorf("deleting the queue: %v", err)
		}
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
	app := newAppWith(t, conf, c)
	relay, err := app.Relay()
	if err != nil {
		t.Fatal(err)
	}
	indexer, err := app.Indexer()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := app.Query(&where.Compiler{})
	if err != nil {
		t.Fatal(err)
	}
	documents, query := lambdahost.HTTP(app.Documents()), lambdahost.HTTP(handler)

	put := events.APIGatewayV2HTTPRequest{RawPath: "/docs/users/1", Body: `{"name":"Ada","n":12345678901234567890}`}
	put.RequestContext.HTTP.Method = http.MethodPut
	saved, err := documents(t.Context(), put)
	if err != nil || saved.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s, %v", saved.StatusCode, saved.Body, err)
	}
	ask := events.APIGatewayV2HTTPRequest{RawPath: "/query", Body: fmt.Sprintf(
		`{"from":"users","filter":{"n":12345678901234567890},"count":true,"wait":{"tokens":[%q],"timeout":"300ms"}}`, saved.Headers["Holdfast-Token"])}
	ask.RequestContext.HTTP.Method = http.MethodPost
	early, err := query(t.Context(), ask)
	if err != nil || early.StatusCode != http.StatusGatewayTimeout || !strings.Contains(early.Body, `"missing":["users/1"]`) {
		t.Errorf("before the indexer ran: %d %s, %v", early.StatusCode, early.Body, err)
	}

	version := strings.Trim(saved.Headers["Etag"], `"`)
	text, number := events.NewStringAttribute, events.NewNumberAttribute
	record := events.DynamoDBEventRecord{EventName: "INSERT", Change: events.DynamoDBStreamRecord{
		SequenceNumber: "1",
		Keys:           map[string]events.DynamoDBAttributeValue{"pk": text("users/1"), "sk": text("/")},
		NewImage: map[string]events.DynamoDBAttributeValue{
			"pk": text("users/1"), "sk": text("/"), "version": number(version), "nonce": text("n"), "collection": text("users"),
		},
	}}
	relayed, err := lambdahost.Stream(relay)(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record}})
	if err != nil || len(relayed.BatchItemFailures) != 0 {
		t.Fatalf("%+v, %v", relayed, err)
	}
	received, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, WaitTimeSeconds: 5})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("%d messages, %v", len(received.Messages), err)
	}
	message := received.Messages[0]
	indexed, err := lambdahost.Queue(indexer)(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: *message.MessageId, Body: *message.Body}}})
	if err != nil || len(indexed.BatchItemFailures) != 0 {
		t.Fatalf("%+v, %v", indexed, err)
	}

	ask.Body = strings.Replace(ask.Body, "300ms", "20s", 1)
	found, err := query(t.Context(), ask)
	if err != nil || found.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", found.StatusCode, found.Body, err)
	}
	var answer struct {
		Documents []struct {
			ID      string
			Version json.Number
			Data    json.RawMessage
		}
		Count     struct{ Value int }
		Staleness struct {
			Stale, TimedOut bool
			Pending         *int
		}
	}
	if err := json.Unmarshal([]byte(found.Body), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Documents) != 1 || answer.Documents[0].ID != "users/1" || answer.Documents[0].Version.String() != version ||
		string(answer.Documents[0].Data) != `{"n":12345678901234567890,"name":"Ada"}` || answer.Count.Value != 1 || answer.Staleness.TimedOut || answer.Staleness.Pending == nil {
		t.Errorf("%s", found.Body)
	}
}
