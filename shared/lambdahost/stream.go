package lambdahost

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
)

// StreamHandler handles batches of a table's stream.
type StreamHandler func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)

// RecordHandler is what handles stream records: a *pipeline.Relay.
type RecordHandler interface {
	Handle(ctx context.Context, records []pipeline.Record) (failed []string, err error)
}

// Stream serves a relay to an event source mapping on a DynamoDB stream. The
// mapping has to have ReportBatchItemFailures among its function response types.
func Stream(relay RecordHandler) StreamHandler {
	return func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		failed, err := relay.Handle(ctx, Records(event))
		if err != nil {
			return events.DynamoDBEventResponse{}, err
		}
		response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		for _, sequence := range failed {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: sequence})
		}
		return response, nil
	}
}

// Records reads a batch of stream records. It takes whatever a table can hold:
// items of other tools have attributes of any type under any name.
func Records(event events.DynamoDBEvent) []pipeline.Record {
	records := make([]pipeline.Record, len(event.Records))
	for i, r := range event.Records {
		record := pipeline.Record{
			Sequence: r.Change.SequenceNumber,
			Event:    pipeline.Event(r.EventName),
			ByTTL:    byTTL(r.UserIdentity),
			New:      image(r.Change.NewImage),
			Old:      image(r.Change.OldImage),
		}
		record.ID, record.Unreadable = recordID(r.Change.Keys)
		records[i] = record
	}
	return records
}

// byTTL reports whether DynamoDB's time to live removed the item.
//
// Source: Amazon DynamoDB Developer Guide, "DynamoDB Streams and Time to Live",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
func byTTL(user *events.DynamoDBUserIdentity) bool {
	return user != nil && user.Type == "Service" && user.PrincipalID == "dynamodb.amazonaws.com"
}

// recordID reads the id from the keys, or says why there is none.
func recordID(keys map[string]events.DynamoDBAttributeValue) (doc.ID, string) {
	root, isText := stringOf(keys["pk"])
	rest, restIsText := stringOf(keys["sk"])
	if !isText || !restIsText {
		return "", "its keys are not the strings pk and sk"
	}
	if !strings.HasPrefix(rest, "/") {
		return "", "its sort key does not begin with /"
	}
	id, err := doc.ParseStoredID(string(doc.Join(root, rest)))
	if err != nil {
		return "", "its keys do not make an id"
	}
	if id.Root() != root || id.Rest() != rest {
		return "", "its keys divide the id at another place"
	}
	return id, ""
}

// image reads the attributes that every item of the documents table has from
// its image; nil when there is no image.
func image(item map[string]events.DynamoDBAttributeValue) *pipeline.Image {
	if len(item) == 0 {
		return nil
	}
	var i pipeline.Image
	// A version beyond what JSON numbers keep exactly is none: no write of ours
	// makes it, and adopting the item replaces it.
	if v, ok := doc.ParseVersion(numberOf(item["version"])); ok && v < maxVersion {
		i.Version = v
	}
	i.Collection, _ = stringOf(item["collection"])
	i.Nonce, _ = stringOf(item["nonce"])
	if v := item["deleted"]; v.DataType() == events.DataTypeBoolean {
		i.Deleted = v.Boolean()
	}
	// In microseconds, like the versions.
	if v, ok := doc.ParseVersion(numberOf(item["expiresAt"])); ok {
		i.ExpiresAt = time.UnixMicro(int64(v)).UTC()
	}
	return &i
}

const maxVersion doc.Version = 1<<53 - 1

// The accessors of an attribute value panic on another type than theirs, and
// the zero value, a missing attribute, says that it is binary.

func stringOf(v events.DynamoDBAttributeValue) (string, bool) {
	if v.DataType() != events.DataTypeString {
		return "", false
	}
	return v.String(), true
}

func numberOf(v events.DynamoDBAttributeValue) string {
	if v.DataType() != events.DataTypeNumber {
		return ""
	}
	return v.Number()
}
