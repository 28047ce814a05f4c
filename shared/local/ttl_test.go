package local

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/shared/local/engines"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/store"
)

// On the real engine: tables of the stack, removal of what has expired, and the
// stream that tells who removed it, also to a process that did not do it.
func TestExpiredItemsAreRemovedInTheNameOfTimeToLive(t *testing.T) {
	endpoint, anybody := aws.String(enginetest.DynamoDB(t)), credentials.NewStaticCredentialsProvider("a", "b", "")
	tables := dynamodb.New(dynamodb.Options{Region: engines.Region, BaseEndpoint: endpoint, Credentials: anybody})
	streams := dynamodbstreams.New(dynamodbstreams.Options{Region: engines.Region, BaseEndpoint: endpoint, Credentials: anybody})
	ctx := t.Context()
	prefix := fmt.Sprintf("ttl-%d-", time.Now().UnixNano())
	schema := store.Schema(prefix+"documents", prefix+"state")
	var stream string
	for range 2 { // the second finds them there
		var err error
		if stream, err = ensureTables(ctx, tables, schema); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, s := range schema {
			_, _ = tables.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: s.TableName})
		}
	})
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	key := func(pk string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": text(pk), "sk": text("/")}
	}
	put := func(pk string, ttl time.Duration) {
		item := key(pk)
		if ttl != 0 {
			item[store.TTLAttribute] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(ttl).Unix(), 10)}
		}
		if _, err := tables.PutItem(ctx, &dynamodb.PutItemInput{TableName: schema[0].TableName, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	put("users/expired", -time.Hour)
	put("users/later", time.Hour)
	put("users/never", 0)

	file := filepath.Join(t.TempDir(), "swept.json")
	swept, err := openSweptItems(file)
	if err != nil {
		t.Fatal(err)
	}
	sweep := &ttlSweep{tables: tables, of: ttlTables(schema), swept: swept, now: time.Now}
	if err := sweep.run(ctx); err != nil {
		t.Fatal(err)
	}
	for pk, want := range map[string]bool{"users/expired": false, "users/later": true, "users/never": true} {
		out, err := tables.GetItem(ctx, &dynamodb.GetItemInput{TableName: schema[0].TableName, Key: key(pk)})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Item != nil; got != want {
			t.Errorf("%s is there: %v, want %v", pk, got, want)
		}
	}
	if _, err := tables.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: schema[0].TableName, Key: key("users/never")}); err != nil {
		t.Fatal(err)
	}

	later, err := openSweptItems(file)
	if err != nil {
		t.Fatal(err)
	}
	removals := make(chan events.DynamoDBEventRecord, 10)
	p := newPoller(t, nil, filepath.Join(t.TempDir(), "p"), StreamMapping{
		Retries: -1, Handler: func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			for _, r := range e.Records {
				if r.EventName == "REMOVE" {
					removals <- r
				}
			}
			return events.DynamoDBEventResponse{}, nil
		},
	})
	p.streams, p.arn = streams, stream
	p.removedTTL = func(r streamtypes.Record) bool { return later.made(sweep.of[0], r) }
	polling(t, p)
	for range 2 {
		r := <-removals
		byTTL := r.UserIdentity != nil && *r.UserIdentity == ttlService
		if pk := r.Change.Keys["pk"].String(); byTTL != (pk == "users/expired") {
			t.Errorf("removal of %s by time to live: %v", pk, byTTL)
		}
	}
}
