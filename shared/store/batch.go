package store

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxBatch is DynamoDB's limit of keys in one BatchGetItem.
const maxBatch = 100

// errUnprocessed is the cause when a batch was answered again and again without
// its items.
var errUnprocessed = errors.New("the engine left items of a batch unprocessed")

// readAll reads the items of at most maxBatch keys of a table, strongly, and
// asks again for those that the engine left out (an answer has at most 16 MB)
// until all are read, several requests brought nothing, or the context ends.
// left are the keys that were not read; there are none without an error.
func (e *engine) readAll(ctx context.Context, doing, table string, what types.KeysAndAttributes,
	each func(item map[string]types.AttributeValue),
) (left []map[string]types.AttributeValue, err error) {
	what.ConsistentRead = aws.Bool(true)
	for fruitless := 0; len(what.Keys) > 0; {
		in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: what}}
		out, err := again(ctx, e, doing, func(ctx context.Context) (*dynamodb.BatchGetItemOutput, error) {
			return e.client.BatchGetItem(ctx, in, e.options)
		})
		if err != nil {
			return what.Keys, err
		}
		for _, item := range out.Responses[table] {
			each(item)
		}
		keys := out.UnprocessedKeys[table].Keys
		if len(keys) < len(what.Keys) {
			fruitless = 0 // the answer was full, not the engine busy: ask at once
		} else {
			fruitless++
		}
		what.Keys = keys
		if fruitless > 0 && (fruitless >= maxAttempts || !pause(ctx, fruitless-1)) {
			return keys, problem(busy, doing, errUnprocessed)
		}
	}
	return nil, nil
}

// keyOf is an item's key in a form that can be compared.
func keyOf(item map[string]types.AttributeValue) [2]string {
	pk, _ := text(item[attrPK])
	sk, _ := text(item[attrSK])
	return [2]string{pk, sk}
}
