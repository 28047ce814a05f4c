package lambdahost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
	"holdfast/shared/lambdahost"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/pipeline"
	"holdfast/shared/store"
)

const streamEvent = `{"Records":[
 {"eventID":"1","eventName":"MODIFY","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
  "dynamodb":{"ApproximateCreationDateTime":1796029203,"SequenceNumber":"4421584500000000017450439091","SizeBytes":59,"StreamViewType":"NEW_AND_OLD_IMAGES",
   "Keys":{"pk":{"S":"users/1"},"sk":{"S":"/account/3"}},
   "NewImage":{"pk":{"S":"users/1"},"sk":{"S":"/account/3"},"collection":{"S":"users/account"},"version":{"N":"1796029203123457"},"nonce":{"S":"abc"},
     "createdAt":{"N":"1796029203123456"},"updatedAt":{"N":"1796029203123457"},"bucket":{"N":"3"},"expiresAt":{"N":"1796029204000000"},
     "data":{"M":{"a":{"L":[{"NULL":true},{"BOOL":false},{"B":"AAEC"},{"SS":["x"]},{"NS":["1"]},{"BS":["AAEC"]}]}}}},
   "OldImage":{"pk":{"S":"users/1"},"sk":{"S":"/account/3"},"version":{"N":"1796029203123456"},"nonce":{"S":"abb"},"deleted":{"BOOL":true}}}},
 {"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},
  "dynamodb":{"SequenceNumber":"4421584500000000017450439092","Keys":{"pk":{"S":"$canary/1"},"sk":{"S":"/"}},
   "OldImage":{"pk":{"S":"$canary/1"},"sk":{"S":"/"},"version":{"N":"5"}}}},
 {"eventName":"INSERT","dynamodb":{"SequenceNumber":"4421584500000000017450439093","Keys":{"pk":{"N":"1"},"sk":{"S":"/"}},"NewImage":{"pk":{"N":"1"},"sk":{"S":"/"}}}}
]}`

func TestRecordsOfAnEvent(t *testing.T) {
	var event events.DynamoDBEvent
	if err := json.Unmarshal([]byte(streamEvent), &event); err != nil {
		t.Fatal(err)
	}
	r := lambdahost.Records(event)
	if len(r) != 3 {
		t.Fatalf("%d records", len(r))
	}
	if r[0].ID != "users/1/account/3" || r[0].Event != pipeline.Modify || r[0].Sequence != "4421584500000000017450439091" || r[0].ByTTL || r[0].Unreadable != "" {
		t.Errorf("%+v", r[0])
	}
	expires := time.UnixMicro(1796029204000000).UTC()
	if want := (pipeline.Image{Version: 1796029203123457, Collection: "users/account", Nonce: "abc", ExpiresAt: expires}); *r[0].New != want {
		t.Errorf("%+v", *r[0].New)
	}
	if want := (pipeline.Image{Version: 1796029203123456, Nonce: "abb", Deleted: true}); *r[0].Old != want {
		t.Errorf("%+v", *r[0].Old)
	}
	if r[1].ID != "$canary/1" || !r[1].ByTTL || r[1].New != nil || r[1].Old == nil {
		t.Errorf("%+v", r[1])
	}
	if r[2].ID != "" || r[2].Unreadable == "" {
		t.Errorf("%+v", r[2])
	}
}

// allTypes has a value of every type an attribute can have, and none.
func allTypes() map[string]events.DynamoDBAttributeValue {
	return map[string]events.DynamoDBAttributeValue{
		"none": {}, "B": events.NewBinaryAttribute([]byte("b")), "BOOL": events.NewBooleanAttribute(true),
		"BS": events.NewBinarySetAttribute([][]byte{{1}}), "L": events.NewListAttribute(nil), "M": events.NewMapAttribute(nil),
		"N": events.NewNumberAttribute("1"), "N odd": events.NewNumberAttribute("1E+30"), "NS": events.NewNumberSetAttribute([]string{"1"}),
		"N large": events.NewNumberAttribute("9007199254740991"), "N negative": events.NewNumberAttribute("-5"),
		"NULL": events.NewNullAttribute(), "S": events.NewStringAttribute("s"), "SS": events.NewStringSetAttribute([]string{"s"}),
	}
}

// Other tools write attributes of any type under our names: nothing of it
// panics, and what is not as ours is read as missing.
func TestAnyAttributeOfAnyType(t *testing.T) {
	for _, name := range []string{"pk", "sk", "version", "nonce", "collection", "deleted", "expiresAt"} {
		for kind, value := range allTypes() {
			image := map[string]events.DynamoDBAttributeValue{
				"pk": events.NewStringAttribute("users/1"), "sk": events.NewStringAttribute("/"), "version": events.NewNumberAttribute("7"),
				"nonce": events.NewStringAttribute("n"), "collection": events.NewStringAttribute("users"),
			}
			image[name] = value
			r := lambdahost.Records(events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
				EventName: "MODIFY", Change: events.DynamoDBStreamRecord{SequenceNumber: "1", Keys: image, NewImage: image, OldImage: image},
			}}})[0]
			wrong := ""
			switch {
			case (name == "pk" || name == "sk") && (r.ID != "" || r.Unreadable == ""):
				wrong = "it has an id"
			case name == "version" && (r.New.Version != 0) != (kind == "N"):
				wrong = "version"
			case name == "nonce" && (r.New.Nonce != "") != (kind == "S"):
				wrong = "nonce"
			case name == "collection" && (r.New.Collection != "") != (kind == "S"):
				wrong = "collection"
			case name == "deleted" && r.New.Deleted != (kind == "BOOL"):
				wrong = "deleted"
			}
			if wrong != "" {
				t.Errorf("%s of type %s: %s: %+v", name, kind, wrong, r.New)
			}
		}
	}
}

func TestKeysThatAreNoIDs(t *testing.T) {
	for _, keys := range [][2]string{
		{"users", "/"}, {"users/1", ""}, {"users/1", "account/3"}, {"users/1/account", "/3"}, {"users", "/1"}, {"", "/"},
		{"users/1", "//"}, {"users/1", "/account/"}, {"users/.", "/"}, {"users/" + strings.Repeat("x", 600), "/"}, {"users/a\x01", "/"},
	} {
		r := lambdahost.Records(events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
			Change: events.DynamoDBStreamRecord{Keys: map[string]events.DynamoDBAttributeValue{
				"pk": events.NewStringAttribute(keys[0]), "sk": events.NewStringAttribute(keys[1]),
			}},
		}}})[0]
		if r.ID != "" || r.Unreadable == "" {
			t.Errorf("%q is the id %q", keys, r.ID)
		}
	}
}

// handler answers as it is told.
type handler struct {
	failed []string
	err    error
}

func (h handler) Handle(context.Context, []pipeline.Record) ([]string, error) { return h.failed, h.err }

func TestStreamResponses(t *testing.T) {
	for _, c := range []struct {
		handler handler
		want    string
	}{
		{handler{}, `{"batchItemFailures":[]}`},
		{handler{failed: []string{"17"}}, `{"batchItemFailures":[{"itemIdentifier":"17"}]}`},
	} {
		response, err := lambdahost.Stream(c.handler)(t.Context(), events.DynamoDBEvent{})
		if got, _ := json.Marshal(response); err != nil || string(got) != c.want {
			t.Errorf("%s, %v", got, err)
		}
	}
	if _, err := lambdahost.Stream(handler{err: errors.New("no")})(t.Context(), events.DynamoDBEvent{}); err == nil {
		t.Error("the batch is acknowledged")
	}
}

// sent is a queue that keeps what it is given.
type sent struct{ signals []doc.Signal }

func (s *sent) Send(_ context.Context, out []pipeline.Outgoing) []error {
	for _, m := range out {
		signals, _, err := pipeline.Unpack(m.Body)
		if err != nil {
			return []error{err}
		}
		s.signals = append(s.signals, signals...)
	}
	return nil
}

// What the store writes is read as ours, and what another tool writes is adopted
// once: the record of the adoption is a signal and not foreign again.
func TestForeignChangesAreAdoptedOnce(t *testing.T) {
	endpoint := enginetest.DynamoDB(t)
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	documents, state := uniqueName("documents"), uniqueName("state")
	for _, table := range store.Schema(documents, state) {
		if _, err := client.CreateTable(t.Context(), &table); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: table.TableName})
		})
	}
	clock := doc.NewClock(nil)
	docs := store.New(store.Options{Client: client, Documents: documents, State: state, Clock: clock})
	queue := &sent{}
	relay := lambdahost.Stream(pipeline.NewRelay(pipeline.RelayOptions{Queue: queue, Adopter: docs}))

	item := func(id doc.ID) map[string]types.AttributeValue {
		t.Helper()
		got, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &documents, ConsistentRead: aws.Bool(true), Key: key(id)})
		if err != nil {
			t.Fatal(err)
		}
		return got.Item
	}
	sequence := 0
	// tell relays one change and answers with the signals it made.
	tell := func(id doc.ID, old, now map[string]types.AttributeValue) []doc.Signal {
		t.Helper()
		sequence++
		name := "MODIFY"
		switch {
		case len(old) == 0:
			name = "INSERT"
		case len(now) == 0:
			name = "REMOVE"
		}
		queue.signals = nil
		response, err := relay(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{EventName: name, Change: events.DynamoDBStreamRecord{
			SequenceNumber: fmt.Sprint(sequence), Keys: imageOf(key(id)), OldImage: imageOf(old), NewImage: imageOf(now),
		}}}})
		if err != nil || len(response.BatchItemFailures) > 0 {
			t.Fatalf("%v %v", response, err)
		}
		return queue.signals
	}
	// adopted tells a foreign change and then the adoption's own record.
	adopted := func(what string, id doc.ID, old map[string]types.AttributeValue) {
		t.Helper()
		before := item(id)
		if got := tell(id, old, before); len(got) > 0 {
			t.Errorf("%s: a signal before the adoption: %v", what, got)
		}
		after := item(id)
		got := tell(id, before, after)
		d, err := store.DecodeItem(after)
		if err != nil || len(got) != 1 || got[0].Version != d.Version || d.Version < 1e15 {
			t.Errorf("%s: after the adoption: %v, %+v, %v", what, got, d, err)
		}
		// The same news again changes nothing.
		tell(id, old, before)
		if again, err := store.DecodeItem(item(id)); err != nil || again.Version != d.Version {
			t.Errorf("%s: adopted twice: %d, then %d, %v", what, d.Version, again.Version, err)
		}
	}

	w, err := docs.Put(t.Context(), "users/1", map[string]any{"a": "x"}, doc.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	first := item("users/1")
	if got := tell("users/1", nil, first); len(got) != 1 || got[0] != (doc.Signal{ID: "users/1", Version: w.Version}) {
		t.Errorf("our own write is told as %v", got)
	}

	// Another tool changes the data.
	if _, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &documents, Key: key("users/1"), UpdateExpression: aws.String("SET #d.b = :one"),
		ExpressionAttributeNames:  map[string]string{"#d": "data"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	}); err != nil {
		t.Fatal(err)
	}
	adopted("a changed item", "users/1", first)

	// Another tool makes items, with nothing but a key, and with odd attributes.
	for i, extra := range []map[string]types.AttributeValue{
		{}, {"version": &types.AttributeValueMemberN{Value: "-1"}}, {"version": &types.AttributeValueMemberN{Value: "99999999999999999999"}},
		{"nonce": &types.AttributeValueMemberBOOL{Value: true}, "collection": &types.AttributeValueMemberN{Value: "1"}, "version": &types.AttributeValueMemberN{Value: "12"}},
	} {
		id := doc.ID(fmt.Sprintf("users/foreign/odd/%d", i))
		made := key(id)
		for name, value := range extra {
			made[name] = value
		}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &documents, Item: made}); err != nil {
			t.Fatal(err)
		}
		adopted(fmt.Sprintf("odd item %d", i), id, nil)
	}

	// Another tool removes a document: a tombstone takes its place.
	before := item("users/1")
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &documents, Key: key("users/1")}); err != nil {
		t.Fatal(err)
	}
	if got := tell("users/1", before, nil); len(got) > 0 {
		t.Errorf("a signal before the adoption: %v", got)
	}
	tombstone := item("users/1")
	old, err1 := store.DecodeItem(before)
	gone, err2 := store.DecodeItem(tombstone)
	if err := errors.Join(err1, err2); err != nil || !gone.Deleted || gone.Version <= old.Version {
		t.Fatalf("in its place is %+v, %v", gone, err)
	}
	if got := tell("users/1", nil, tombstone); len(got) != 1 || got[0].Version != gone.Version {
		t.Errorf("the tombstone is told as %v", got)
	}
	// And its removal by time to live is no news.
	if got := tell("users/1", tombstone, nil); len(got) > 0 {
		t.Errorf("the removed tombstone is told as %v", got)
	}
}

func key(id doc.ID) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: id.Root()}, "sk": &types.AttributeValueMemberS{Value: id.Rest()},
	}
}

// imageOf is an item as a stream tells it; containers are left empty.
func imageOf(item map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	if item == nil {
		return nil
	}
	image := map[string]events.DynamoDBAttributeValue{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			image[name] = events.NewStringAttribute(v.Value)
		case *types.AttributeValueMemberN:
			image[name] = events.NewNumberAttribute(v.Value)
		case *types.AttributeValueMemberBOOL:
			image[name] = events.NewBooleanAttribute(v.Value)
		default:
			image[name] = events.NewMapAttribute(nil)
		}
	}
	return image
}
