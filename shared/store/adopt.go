package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// Seen is what an image of an item showed. The zero value stands for an image
// that is missing or has no version.
type Seen struct {
	Version doc.Version
	Nonce   string
}

// Foreign is a change of the documents table that another tool made: one that
// did not raise the version, or the removal of an item that was live.
type Foreign struct {
	ID      doc.ID
	Old     Seen // before the change
	New     Seen // after it; zero when removed
	Removed bool
}

// Adopt gives a foreign change a place in the order of versions: the item as it
// stands gets a version above the one it replaced and all other system
// attributes, a removed item a tombstone. It does so only while the item stands
// as the change left it, or below the version that the change replaced; when
// somebody has written since, that write is the newer news and nothing is done.
// Adopting the same change twice does nothing the second time.
//
// The error is of kind Throttled or Unavailable; OutcomeUnknown, and then it is
// right to adopt again; or DocumentTooLarge, when the other tool left no room for
// the system attributes, and then it is useless.
func (s *Store) Adopt(ctx context.Context, f Foreign) error {
	bucket, err := s.prepare(ctx, f.ID)
	if err != nil {
		return err
	}
	item, err := s.get(ctx, f.ID, attrPK, attrVersion, attrNonce, attrCreatedAt, attrDeleted, attrExpiresAt, attrTTL, attrBucket, attrCollection)
	if err != nil {
		return err
	}
	st := standingOf(item)
	now := s.clock.Now()
	a := attempt{version: s.clock.Next(max(f.Old.Version, f.New.Version, st.floor())), nonce: newNonce(), now: now}
	var send func(ctx context.Context, a attempt) (map[string]types.AttributeValue, error)
	switch {
	case !st.exists && f.Removed:
		a.demand = unused
		send = func(ctx context.Context, a attempt) (map[string]types.AttributeValue, error) {
			_, err := s.engine.client.PutItem(ctx, s.tombstoneRequest(f.ID, bucket, a), s.engine.options)
			return nil, err
		}
	case st.exists && (!f.Removed && st.stands(f.New) || st.version <= f.Old.Version):
		in := s.adoptRequest(f.ID, item, st, bucket, a)
		send = func(ctx context.Context, _ attempt) (map[string]types.AttributeValue, error) {
			_, err := s.engine.client.UpdateItem(ctx, in, s.engine.options)
			return nil, err
		}
	default:
		return nil
	}
	// A refusal means that the item has changed since it was read, so there is
	// other news about it, or that an earlier request of this very attempt was
	// applied.
	_, err = s.try(ctx, change{id: f.ID, doing: "adopting a foreign change", send: send}, a)
	return err
}

// stands reports whether the item is as an image showed it.
func (st standing) stands(seen Seen) bool {
	if seen.Version == 0 {
		seen.Version = unversioned
	}
	return st.version == seen.Version && st.nonce == seen.Nonce
}

// adoptRequest completes an item's system attributes, on condition that its
// version and nonce are those that were read.
func (s *Store) adoptRequest(id doc.ID, item map[string]types.AttributeValue, st standing, bucket int, a attempt) *dynamodb.UpdateItemInput {
	x := newExpression()
	x.require("attribute_exists(" + x.name(attrPK) + ")")
	for _, attr := range []string{attrVersion, attrNonce} {
		if v, ok := item[attr]; ok {
			x.require(x.name(attr) + " = " + x.value("read_"+attr, v))
		} else {
			x.require("attribute_not_exists(" + x.name(attr) + ")")
		}
	}
	x.assignAll(systemAttributes(id, bucket, a.version, a.nonce))
	switch {
	case st.deleted:
		x.assign(attrTTL, num(a.now.Add(s.tombstoneLife).Unix()))
		x.drop(attrData, attrCreatedAt, attrExpiresAt)
	case micros(item[attrCreatedAt]).IsZero():
		x.assign(attrCreatedAt, num(a.version))
	}
	if !st.deleted && !st.expiresAt.IsZero() {
		x.assign(attrTTL, num(st.expiresAt.Add(s.tombstoneLife).Unix()))
	}
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(s.documents), Key: itemKey(id),
		UpdateExpression: x.update(), ConditionExpression: x.condition(),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
	}
}
