package store_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/doc"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/store"
	"holdfast/shared/store/storetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newClient makes a client with the SDK's own retries on, as a careless caller
// has it.
func newClient(url string, transport http.RoundTripper) *dynamodb.Client {
	o := dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}
	if transport != nil {
		o.HTTPClient = &http.Client{Transport: transport}
	}
	return dynamodb.New(o)
}

// tables are two tables of the test's own.
type tables struct {
	url, documents, state string
	client                *dynamodb.Client // beside the store, as another tool
}

func newTables(t testing.TB) tables {
	t.Helper()
	url := enginetest.DynamoDB(t)
	var b [6]byte
	_, _ = rand.Read(b[:])
	tb := tables{url: url, documents: "documents-" + hex.EncodeToString(b[:]), state: "state-" + hex.EncodeToString(b[:]), client: newClient(url, nil)}
	for _, in := range store.Schema(tb.documents, tb.state) {
		// Nobody reads the stream here, and the local engine gets slower with it.
		in.StreamSpecification = nil
		if _, err := tb.client.CreateTable(t.Context(), &in); err != nil {
			t.Fatalf("create table %s: %v", *in.TableName, err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if _, err := tb.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: in.TableName}); err != nil {
				t.Logf("delete table: %v", err)
			}
		})
	}
	return tb
}

// open makes a store over the tables; every call stands for another process.
func (tb tables) open(transport http.RoundTripper, change ...func(*store.Options)) *store.Store {
	o := store.Options{
		Client: newClient(tb.url, transport), Documents: tb.documents, State: tb.state,
		FeedMargin: 45 * time.Second, // so that a busy machine's slow answers are not given up
	}
	for _, c := range change {
		c(&o)
	}
	return store.New(o)
}

func withClock(now func() time.Time) func(*store.Options) {
	return func(o *store.Options) { o.Clock = doc.NewClock(now) }
}

func TestConformance(t *testing.T) {
	enginetest.DynamoDB(t)
	storetest.Run(t, func(t *testing.T, now func() time.Time) storetest.Subject {
		return storetest.Subject{Store: newTables(t).open(nil, withClock(now)), Volume: 1500, ItemLimit: true}
	})
}
