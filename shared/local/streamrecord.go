package local

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/shared/local/engines"
)

// ttlService is who removes expired items, as stream records name it.
var ttlService = events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}

// changesNothing reports whether a record tells of a write that left the item
// as it was. DynamoDB makes no record of such a write; dynoxide does.
func changesNothing(r types.Record) bool {
	return r.EventName == types.OperationTypeModify && r.Dynamodb != nil &&
		r.Dynamodb.OldImage != nil && reflect.DeepEqual(r.Dynamodb.OldImage, r.Dynamodb.NewImage)
}

// eventRecord is a stream's record as an event source mapping hands it to a
// function. Region and ARN are those of a real stream; dynoxide says its own
// name there.
func eventRecord(r types.Record, streamARN string, byTTL bool) events.DynamoDBEventRecord {
	e := events.DynamoDBEventRecord{
		AWSRegion: engines.Region, EventID: aws.ToString(r.EventID), EventName: string(r.EventName),
		EventSource: "aws:dynamodb", EventVersion: aws.ToString(r.EventVersion), EventSourceArn: streamARN,
	}
	if byTTL {
		identity := ttlService
		e.UserIdentity = &identity
	}
	if d := r.Dynamodb; d != nil {
		e.Change = events.DynamoDBStreamRecord{
			Keys: eventItem(d.Keys), NewImage: eventItem(d.NewImage), OldImage: eventItem(d.OldImage),
			SequenceNumber: aws.ToString(d.SequenceNumber), SizeBytes: aws.ToInt64(d.SizeBytes), StreamViewType: string(d.StreamViewType),
		}
		if d.ApproximateCreationDateTime != nil {
			e.Change.ApproximateCreationDateTime = events.SecondsEpochTime{Time: *d.ApproximateCreationDateTime}
		}
	}
	return e
}

func eventItem(item map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	if item == nil {
		return nil
	}
	m := make(map[string]events.DynamoDBAttributeValue, len(item))
	for name, v := range item {
		m[name] = eventValue(v)
	}
	return m
}

func eventValue(v types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(eventItem(v.Value))
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(v.Value))
		for i, e := range v.Value {
			list[i] = eventValue(e)
		}
		return events.NewListAttribute(list)
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(v.Value)
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(v.Value)
	case *types.AttributeValueMemberBS:
		return events.NewBinarySetAttribute(v.Value)
	}
	return events.NewNullAttribute()
}

// recordKey is the text by which all records of one item are in one lane.
func recordKey(keys map[string]types.AttributeValue) string {
	var b strings.Builder
	for _, name := range sortedNames(keys) {
		switch v := keys[name].(type) {
		case *types.AttributeValueMemberS:
			fmt.Fprintf(&b, "%s=S%q ", name, v.Value)
		case *types.AttributeValueMemberN:
			fmt.Fprintf(&b, "%s=N%q ", name, v.Value)
		case *types.AttributeValueMemberB:
			fmt.Fprintf(&b, "%s=B%q ", name, v.Value)
		}
	}
	return b.String()
}

// eventBytes is about the size of a record as JSON in an event.
func eventBytes(e events.DynamoDBEventRecord) int {
	const envelope = 500
	return envelope + len(e.EventSourceArn) + itemBytes(e.Change.Keys) + itemBytes(e.Change.NewImage) + itemBytes(e.Change.OldImage)
}

func itemBytes(item map[string]events.DynamoDBAttributeValue) int {
	n := len(`"NewImage":{},`)
	for name, v := range item {
		n += textBytes(name) + len(`:,`) + valueBytes(v)
	}
	return n
}

func valueBytes(v events.DynamoDBAttributeValue) int {
	n := len(`{"NULL":true}`)
	switch v.DataType() {
	case events.DataTypeString:
		n += textBytes(v.String())
	case events.DataTypeNumber:
		n += len(v.Number())
	case events.DataTypeBinary:
		n += len(v.Binary()) * 4 / 3
	case events.DataTypeMap:
		n += itemBytes(v.Map())
	case events.DataTypeList:
		for _, e := range v.List() {
			n += valueBytes(e) + 1
		}
	case events.DataTypeStringSet:
		for _, s := range v.StringSet() {
			n += textBytes(s) + 1
		}
	case events.DataTypeNumberSet:
		for _, s := range v.NumberSet() {
			n += textBytes(s) + 1
		}
	case events.DataTypeBinarySet:
		for _, s := range v.BinarySet() {
			n += len(s)*4/3 + 3
		}
	}
	return n
}

// textBytes is the size of a text as a JSON string.
func textBytes(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}
