package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// Kinds of items of the state table. The partition key is the kind, with "#" and
// a name where the items of one kind are many or hot.
const (
	kindCollection = "collection"  // sk: the collection. Collections that have, or had, documents
	kindDefinition = "definition"  // sk: the collection
	kindGeneration = "generation#" // family; sk: the number
	kindQuarantine = "quarantine#" // collection; sk: the id
	kindSequence   = "sequence#"   // parent path; sk: single
	kindLag        = "lag"         // sk: single
	kindFeed       = "feed"        // sk: single
	kindSecret     = "secret"      // sk: what it is for
	kindLease      = "lease"       // sk: what it is for
	kindProof      = "proof"       // sk: family and number of the generation
	kindJob        = "job"         // sk: the job
	kindRequest    = "request#"    // job; sk: mode and collection

	single = "-" // the sort key of a kind with one item
)

// Attributes of the state table besides the keys and TTL.
const (
	attrBody     = "body"     // S: JSON
	attrRevision = "revision" // N
	attrAmended  = "amended"  // N
	attrNext     = "next"     // N: the last number reserved of a sequence
	attrBuckets  = "buckets"  // N
	attrAt       = "at"       // N: microseconds
	attrMeasure  = "measure"  // N: microseconds
	attrReason   = "reason"   // S
	attrAttempts = "attempts" // N
	attrSince    = "since"    // N: microseconds
	attrPartial  = "partial"  // BOOL
	attrToken    = "token"    // N: how often a lease was acquired
	attrOwner    = "owner"    // S: made up for each acquisition of a lease; none when it was released
	attrUntil    = "until"    // N: microseconds; none when a lease was released
	attrFence    = "fence"    // N: the token of the lease under which a record was written
)

// State is what the system keeps about itself, one kind of record per file. It
// is safe for concurrent use. All errors of the environment are of kind
// Throttled or Unavailable; reads are consistent unless said otherwise.
type State struct {
	engine engine
	table  string
	clock  *doc.Clock

	mu          sync.Mutex
	registered  map[doc.Collection]bool
	definitions map[doc.Collection]cachedDefinition
	buckets     atomic.Int64 // 0: not asked yet
}

type cachedDefinition struct {
	definition collection.Definition
	at         time.Time
}

// maxRemembered bounds each of the caches of a State. A full one is emptied.
const maxRemembered = 10_000

// NewState makes a State over a table. It makes no request. A nil clock is the
// machine's.
func NewState(client *dynamodb.Client, table string, clock *doc.Clock) *State {
	if clock == nil {
		clock = doc.NewClock(nil)
	}
	return &State{engine: engine{client: client, clock: clock, attempt: smallTime}, table: table, clock: clock}
}

func stateKey(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPK: str(pk), attrSK: str(sk)}
}

// get reads one item, or none.
func (s *State) get(ctx context.Context, doing, pk, sk string, consistent bool) (map[string]types.AttributeValue, error) {
	out, err := again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return s.engine.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.table, Key: stateKey(pk, sk), ConsistentRead: &consistent,
		}, s.engine.options)
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// update changes one item. The conditional refusal is told by ok; found is then
// the item as it stands. The update must bear repetition.
func (s *State) update(ctx context.Context, doing, pk, sk string, x *expression) (updated, found map[string]types.AttributeValue, ok bool, err error) {
	out, err := again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		return s.engine.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: stateKey(pk, sk),
			UpdateExpression: x.update(), ConditionExpression: x.condition(),
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
			ReturnValues:                        types.ReturnValueUpdatedNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, s.engine.options)
	})
	if item, refused := conditionFailed(err); refused {
		return nil, item, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	return out.Attributes, nil, true, nil
}

// replace puts an item under a condition. An item of ours whose answer was lost
// is known by its nonce. ok is false when the condition does not hold; found is
// then the item as it stands.
func (s *State) replace(ctx context.Context, doing string, item map[string]types.AttributeValue, x *expression) (found map[string]types.AttributeValue, ok bool, err error) {
	nonce := newNonce()
	item[attrNonce] = str(nonce)
	_, err = again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.PutItemOutput, error) {
		return s.engine.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &s.table, Item: item, ConditionExpression: x.condition(),
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, s.engine.options)
	})
	if found, refused := conditionFailed(err); refused {
		theirs, _ := text(found[attrNonce])
		return found, theirs == nonce, nil
	}
	return nil, err == nil, err
}

// fenced puts a record of a lease's holder unless one of a higher fence stands
// there: then whoever holds the lease now has written since, and ok is false.
func (s *State) fenced(ctx context.Context, doing string, item map[string]types.AttributeValue, fence int64) (ok bool, err error) {
	item[attrFence] = num(fence)
	x := newExpression()
	x.require("NOT " + x.name(attrFence) + " > " + x.value(attrFence, num(fence)))
	_, ok, err = s.replace(ctx, doing, item, x)
	return ok, err
}

// remove deletes an item under a condition, which has to hold for an absent one
// too where a repetition after a lost answer is to succeed. ok is false when the
// condition does not hold.
func (s *State) remove(ctx context.Context, doing, pk, sk string, x *expression) (ok bool, err error) {
	_, err = again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.DeleteItemOutput, error) {
		return s.engine.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &s.table, Key: stateKey(pk, sk), ConditionExpression: x.condition(),
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
		}, s.engine.options)
	})
	if _, refused := conditionFailed(err); refused {
		return false, nil
	}
	return err == nil, err
}

// list reads all items of a partition.
func (s *State) list(ctx context.Context, doing, pk string) ([]map[string]types.AttributeValue, error) {
	var items []map[string]types.AttributeValue
	err := s.pages(ctx, doing, pk, "", func(out *dynamodb.QueryOutput) { items = append(items, out.Items...) })
	return items, err
}

// pages reads a partition page by page.
func (s *State) pages(ctx context.Context, doing, pk string, what types.Select, visit func(*dynamodb.QueryOutput)) error {
	x := newExpression()
	in := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true), Select: what,
		KeyConditionExpression:   aws.String(x.name(attrPK) + " = " + x.value("pk", str(pk))),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
	for {
		out, err := again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.QueryOutput, error) {
			return s.engine.client.Query(ctx, in, s.engine.options)
		})
		if err != nil {
			return err
		}
		visit(out)
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}
