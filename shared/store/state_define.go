package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// CurrentDefinition is a collection's definition as it stands, one with nothing
// but the name where there is none. Unlike Definition it is never from memory.
func (s *State) CurrentDefinition(ctx context.Context, c doc.Collection) (collection.Definition, error) {
	at := s.clock.Now()
	item, err := s.get(ctx, "reading a definition", kindDefinition, string(c), true)
	if err != nil {
		return collection.Definition{}, err
	}
	d := collection.Definition{Name: c}
	if len(item) > 0 {
		if err := decodeBody(item, &d); err != nil {
			return collection.Definition{}, fmt.Errorf("reading the definition of a collection: %w", err)
		}
	}
	s.remember(d, at)
	return d, nil
}

// Definitions are all definitions, in the order of the collections' names, and
// what is left of removed ones.
func (s *State) Definitions(ctx context.Context) ([]collection.Definition, error) {
	items, err := s.list(ctx, "listing the definitions", kindDefinition)
	if err != nil {
		return nil, err
	}
	all := make([]collection.Definition, len(items))
	for i, item := range items {
		if err := decodeBody(item, &all[i]); err != nil {
			return nil, fmt.Errorf("reading the definition of a collection: %w", err)
		}
	}
	return all, nil
}

// DefineUnused is PutDefinition under the further condition that the collection
// has, and had, no documents: checked in the same step. A collection is
// registered before its first document is written, and whoever indexes a
// document reads the definition after that; so a definition that is stored this
// way is the one that the first document is indexed by.
//
// The error is of kind ReindexRequired where there are documents, and of kind
// VersionConflict when somebody else was faster.
func (s *State) DefineUnused(ctx context.Context, d collection.Definition, expectedRevision int64) (collection.Definition, error) {
	const doing = "writing a first definition"
	d.Revision = expectedRevision + 1
	body, err := json.Marshal(d)
	if err != nil {
		return collection.Definition{}, fmt.Errorf("writing a definition: %w", err)
	}
	nonce := newNonce()
	item := stateKey(kindDefinition, string(d.Name))
	item[attrBody], item[attrRevision], item[attrNonce] = str(string(body)), num(d.Revision), str(nonce)
	put := newExpression()
	if expectedRevision == 0 {
		put.require("attribute_not_exists(" + put.name(attrPK) + ")")
	} else {
		put.require(put.name(attrRevision) + " = " + put.value("expected", num(expectedRevision)))
	}
	none := newExpression()
	none.require("attribute_not_exists(" + none.name(attrPK) + ")")
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String(nonce), // so that a repetition is no second transaction
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName: &s.table, Item: item, ConditionExpression: put.condition(),
				ExpressionAttributeNames: put.names, ExpressionAttributeValues: put.valuesOrNone(),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
			{ConditionCheck: &types.ConditionCheck{
				TableName: &s.table, Key: stateKey(kindCollection, string(d.Name)), ConditionExpression: none.condition(),
				ExpressionAttributeNames: none.names,
			}},
		},
	}
	for round := 0; ; round++ {
		_, err = again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.TransactWriteItemsOutput, error) {
			return s.engine.client.TransactWriteItems(ctx, in, s.engine.options)
		})
		var canceled *types.TransactionCanceledException
		switch {
		case err == nil:
			s.remember(d, s.clock.Now())
			return d, nil
		case !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 2:
			return collection.Definition{}, err
		}
		definition, registered := canceled.CancellationReasons[0], canceled.CancellationReasons[1]
		switch {
		case failedCondition(definition):
			if theirs, _ := text(definition.Item[attrNonce]); theirs == nonce {
				s.remember(d, s.clock.Now()) // an answer was lost
				return d, nil
			}
			return collection.Definition{}, doc.Errorf(doc.VersionConflict, "the definition has another revision").With("expected", expectedRevision)
		case failedCondition(registered):
			return collection.Definition{}, doc.Errorf(doc.ReindexRequired, "the collection has, or had, documents; their index cannot be made anew yet")
		}
		// Something else was going on with one of the two: nothing was decided.
		if round+1 >= maxAttempts || !pause(ctx, round) {
			return collection.Definition{}, problem(busy, doing, err)
		}
	}
}

func failedCondition(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}
