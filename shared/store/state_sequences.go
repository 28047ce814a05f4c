package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// reserve takes the next numbers of a parent's sequence and gives the last of
// them; the first is last - count + 1. Nobody else gets one of them. After a
// lost answer the numbers of that request stay unused.
func (s *State) reserve(ctx context.Context, parent string, count int64) (last int64, err error) {
	x := newExpression()
	in := &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: stateKey(kindSequence+parent, single),
		UpdateExpression:         textOrNone("ADD " + x.name(attrNext) + " " + x.value("count", num(count))),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		ReturnValues: types.ReturnValueUpdatedNew,
	}
	out, err := again(ctx, &s.engine, "reserving numbers", func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		return s.engine.client.UpdateItem(ctx, in, s.engine.options)
	})
	if err != nil {
		return 0, err
	}
	return integer(out.Attributes[attrNext]), nil
}

// raiseSequence makes the numbers up to the given one count as reserved.
func (s *State) raiseSequence(ctx context.Context, parent string, to int64) error {
	x := newExpression()
	x.assign(attrNext, num(to))
	x.require("NOT " + x.name(attrNext) + " >= " + x.value(attrNext, num(to)))
	_, _, _, err := s.update(ctx, "raising a sequence", kindSequence+parent, single, x)
	return err
}
