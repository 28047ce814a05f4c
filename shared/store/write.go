package store

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// maxRounds bounds how often a write begins anew, each time with a new version,
// because another writer was in between or the engine was busy.
const maxRounds = 16

// demand is what one attempt requires of the item that it finds. It is the part
// of a doc.Condition that the engine checks in the same step as the write.
type demand int

const (
	anything demand = iota
	absent          // no live document: no item, a tombstone, or an expired one
	unused          // no item at all, not even a tombstone
	present         // a live document, whatever its version
	exactly         // a live document of one version
)

// attempt is one version of a write, with everything that a request needs.
type attempt struct {
	version    doc.Version
	nonce      string
	demand     demand
	exact      doc.Version // with exactly
	created    doc.Version // with exactly: when this life began, if that is known
	oddVersion string      // the unusable version that is written over, if there is one
	now        time.Time
}

// change is a write of one item. send makes one request for an attempt, for the
// same attempt always the same.
type change struct {
	id     doc.ID
	cond   doc.Condition
	first  demand // with the zero condition: what to demand
	pinned bool   // send has to know how the id stands, so it is written over exactly that
	doing  string
	send   func(ctx context.Context, a attempt) (old map[string]types.AttributeValue, err error)
}

// needsStanding reports whether the first attempt cannot be made before the id
// was read.
func (c change) needsStanding() bool {
	return len(c.cond.AnyOf) > 1 || c.pinned && !c.cond.Absent && c.first == anything
}

// aim sets what the next attempt demands of the item. found is how the id
// stands as far as that is known, else nil.
func (c change) aim(a *attempt, found *standing, now time.Time) {
	if found != nil {
		a.oddVersion, a.created = found.oddVersion, found.created
	}
	switch {
	case c.cond.Absent:
		a.demand = absent
	case c.cond.Exists && len(c.cond.AnyOf) == 0 && !c.pinned:
		a.demand = present
	case c.cond.Exists && found == nil:
		a.demand, a.exact = exactly, c.cond.AnyOf[0]
	case c.cond.Exists:
		a.demand, a.exact = exactly, found.version
	case c.first != anything || found == nil:
		a.demand = c.first
	case c.pinned && found.live(now) != 0:
		a.demand, a.exact = exactly, found.version
	case c.pinned || found.exists && found.expired(now):
		// Over an expired document a new life begins; that is another request,
		// under the condition that it is still so.
		a.demand = absent
	default:
		a.demand = anything
	}
}

// outcome is how an attempt ended.
type outcome struct {
	applied bool
	old     map[string]types.AttributeValue // when applied: what the request asked to be returned
	found   standing                        // when not: what the condition met
	unclear bool                            // when not: an earlier request of this attempt may have been applied
}

// settled is how a write ended.
type settled struct {
	attempt attempt
	old     map[string]types.AttributeValue
	late    *standing // set instead of old when the answer was lost: the item as written
	found   standing  // when nothing was written because that was enough
	written bool
}

// run carries a change through: attempt after attempt, each with a new version,
// until one is applied or the condition is seen not to hold. enough is asked
// after a refusal that the condition alone does not explain, whether what was
// found makes the write needless; it may be nil.
func (s *Store) run(ctx context.Context, c change, enough func(found standing, unclear bool) bool) (settled, error) {
	var a attempt
	var floor doc.Version
	var known *standing
	if c.needsStanding() {
		st, err := s.stand(ctx, c.id)
		if err != nil {
			return settled{}, err
		}
		if err := c.cond.Check(st.live(s.clock.Now())); err != nil {
			return settled{}, err
		}
		known, floor = &st, st.floor()
	}
	c.aim(&a, known, s.clock.Now())
	for round := 0; ; round++ {
		a.version, a.nonce, a.now = s.clock.Next(floor), newNonce(), s.clock.Now()
		if a.version >= maxVersion {
			return settled{}, doc.Errorf(doc.Unavailable, "the document's version cannot grow any more")
		}
		out, err := s.try(ctx, c, a)
		if err != nil {
			if environmental(err) && round+1 < maxRounds && pause(ctx, round) {
				continue
			}
			if doc.KindOf(err) == doc.OutcomeUnknown {
				s.log.WarnContext(ctx, "the outcome of a write is unknown", "error", err)
			}
			return settled{}, err
		}
		if out.applied {
			return settled{attempt: a, old: out.old, written: true}, nil
		}
		found := out.found
		if found.exists && found.nonce == a.nonce && found.version == a.version {
			return settled{attempt: a, late: &found, written: true}, nil
		}
		if enough != nil && enough(found, out.unclear) {
			return settled{attempt: a, found: found}, nil
		}
		// Versions only grow. So an item that stands below the version of this
		// attempt, or at it by another hand, proves that the attempt was never
		// applied; one that stands above proves nothing, nor does one that another
		// tool has replaced or removed.
		if out.unclear && (!found.exists || found.version > a.version || found.version == unversioned) {
			err := outcomeUnknown(c.doing, errors.New("another write followed before the lost answer could be settled"))
			s.log.WarnContext(ctx, "the outcome of a write is unknown", "error", err)
			return settled{}, err
		}
		live := found.live(s.clock.Now())
		if c.first == unused && found.exists {
			return settled{}, doc.Errorf(doc.VersionConflict, "the id is in use").With("expected", nil).With("actual", live)
		}
		if err := c.cond.Check(live); err != nil {
			return settled{}, err
		}
		if round+1 >= maxRounds {
			return settled{}, doc.Errorf(doc.Throttled, "too many writers change this document at once")
		}
		floor = found.floor()
		c.aim(&a, &found, s.clock.Now())
		if round > 2 && !pause(ctx, round-3) {
			return settled{}, doc.Errorf(doc.Throttled, "too many writers change this document at once").Because(ctx.Err())
		}
	}
}

// try sends one attempt, again and again with the same version and nonce while
// it is unclear whether it was applied. It gives up when the attempt has lasted
// as long as one request may: its version must not appear in the change feed
// much later than it was chosen.
//
// An error of kind Throttled or Unavailable means that the attempt was surely
// not applied, one of kind OutcomeUnknown that it may have been.
func (s *Store) try(ctx context.Context, c change, a attempt) (outcome, error) {
	began := time.Now()
	isUnclear := false
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil && !isUnclear {
			return outcome{}, problem(unsent, c.doing, err)
		}
		old, err := once(ctx, s.writeTime, func(ctx context.Context) (map[string]types.AttributeValue, error) {
			return c.send(ctx, a)
		})
		f := classify(err)
		if f == none {
			return outcome{applied: true, old: old}, nil
		}
		if item, ok := conditionFailed(err); ok {
			return outcome{found: standingOf(item), unclear: isUnclear}, nil
		}
		isUnclear = isUnclear || f == unclear
		switch {
		case !isUnclear && tooLarge(err):
			return outcome{}, refusedSize().Because(err)
		case !isUnclear:
			return outcome{}, problem(f, c.doing, err)
		case f == refused || f == unusable:
			return outcome{}, outcomeUnknown(c.doing, err)
		}
		if n+1 >= maxAttempts || !pause(ctx, n) || time.Since(began) > s.writeTime {
			return outcome{}, outcomeUnknown(c.doing, err)
		}
	}
}

func outcomeUnknown(doing string, err error) error {
	return doc.Errorf(doc.OutcomeUnknown, "the write may or may not have happened; load the document to see").
		Because(problem(refused, doing, err))
}

// stand reads how an id stands.
func (s *Store) stand(ctx context.Context, id doc.ID) (standing, error) {
	item, err := s.get(ctx, id, attrPK, attrVersion, attrNonce, attrCreatedAt, attrDeleted, attrExpiresAt)
	if err != nil {
		return standing{}, err
	}
	return standingOf(item), nil
}

// Put writes a document over whatever is there, if the condition holds.
//
// Errors are of kind VersionConflict (with expected and actual),
// DocumentTooLarge (with limit and actual), Throttled, Unavailable or
// OutcomeUnknown.
func (s *Store) Put(ctx context.Context, id doc.ID, data map[string]any, cond doc.Condition) (doc.Written, error) {
	return s.put(ctx, id, data, cond, anything)
}

func (s *Store) put(ctx context.Context, id doc.ID, data map[string]any, cond doc.Condition, first demand) (doc.Written, error) {
	bucket, err := s.prepare(ctx, id)
	if err != nil {
		return doc.Written{}, err
	}
	encoded, err := encodeData(data)
	if err != nil {
		return doc.Written{}, err
	}
	size := documentSize(id, encoded, bucket)
	if size > maxItemBytes {
		return doc.Written{}, doc.Errorf(doc.DocumentTooLarge, "the document takes %d bytes with its id and system attributes; the limit is %d", size, maxItemBytes).
			With("limit", maxItemBytes).With("actual", size)
	}
	c := change{id: id, cond: cond, first: first, doing: "writing a document", send: s.sendUpdate(id, encoded, bucket)}
	if size > maxUpdateBytes {
		c.pinned, c.send = true, s.sendPut(id, encoded, bucket)
	}
	end, err := s.run(ctx, c, nil)
	if err != nil {
		return doc.Written{}, err
	}
	return doc.Written{ID: id, Version: end.attempt.version, Created: created(end)}, nil
}

// sendUpdate writes a document without knowing what is there.
func (s *Store) sendUpdate(id doc.ID, data types.AttributeValue, bucket int) func(context.Context, attempt) (map[string]types.AttributeValue, error) {
	return func(ctx context.Context, a attempt) (map[string]types.AttributeValue, error) {
		out, err := s.engine.client.UpdateItem(ctx, updateRequest(s.documents, id, data, bucket, a), s.engine.options)
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	}
}

// sendPut writes a document over what is known to be there.
func (s *Store) sendPut(id doc.ID, data types.AttributeValue, bucket int) func(context.Context, attempt) (map[string]types.AttributeValue, error) {
	return func(ctx context.Context, a attempt) (map[string]types.AttributeValue, error) {
		_, err := s.engine.client.PutItem(ctx, putRequest(s.documents, id, data, bucket, a), s.engine.options)
		return nil, err
	}
}

// created tells whether the write began a new life of the document.
func created(end settled) bool {
	switch end.attempt.demand {
	case absent, unused:
		return true
	case present, exactly:
		return false
	}
	if end.late != nil {
		return end.late.created == end.attempt.version
	}
	// A live document has data and the moment of its creation; one by another
	// tool at least the data.
	return end.old[attrData] == nil && end.old[attrCreatedAt] == nil
}

// systemAttributes are what every write sets besides the document.
func systemAttributes(id doc.ID, bucket int, version doc.Version, nonce string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		attrVersion:    num(version),
		attrNonce:      str(nonce),
		attrUpdatedAt:  num(version),
		attrCollection: str(string(id.Collection())),
		attrBucket:     num(bucket),
	}
}

// putRequest makes the request that replaces an item by a document. The moment
// of creation cannot be taken over by the engine, so it has to be known.
func putRequest(table string, id doc.ID, data types.AttributeValue, bucket int, a attempt) *dynamodb.PutItemInput {
	item := systemAttributes(id, bucket, a.version, a.nonce)
	maps.Copy(item, itemKey(id))
	item[attrData] = data
	item[attrCreatedAt] = num(a.version)
	if a.demand == exactly && a.created != 0 {
		item[attrCreatedAt] = num(a.created)
	}
	x := newExpression()
	x.demand(a)
	return &dynamodb.PutItemInput{
		TableName: &table, Item: item, ConditionExpression: x.condition(),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// updateRequest makes the request that writes a document over whatever the
// attempt's demand allows.
func updateRequest(table string, id doc.ID, data types.AttributeValue, bucket int, a attempt) *dynamodb.UpdateItemInput {
	x := newExpression()
	x.assignAll(systemAttributes(id, bucket, a.version, a.nonce))
	x.assign(attrData, data)
	x.drop(attrDeleted, attrTTL, attrExpiresAt)
	if a.demand == absent {
		x.assign(attrCreatedAt, num(a.version)) // what expired there was another life
	} else {
		x.assignOnce(attrCreatedAt, num(a.version))
	}
	x.demand(a)
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: itemKey(id),
		UpdateExpression: x.update(), ConditionExpression: x.condition(),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if a.demand == anything {
		// Only here does the answer depend on what was there. It brings the old
		// data along, which costs nothing but the bytes.
		in.ReturnValues = types.ReturnValueUpdatedOld
	}
	return in
}

// demand adds an attempt's condition. In DynamoDB a comparison with a missing
// attribute or one of another type is false, so NOT of it is true: an item
// without a version may be written over, one without an end has not expired.
func (x *expression) demand(a attempt) {
	if a.oddVersion != "" {
		x.require(x.name(attrVersion) + " = " + x.value("odd", &types.AttributeValueMemberN{Value: a.oddVersion}))
	} else {
		x.require("NOT " + x.name(attrVersion) + " >= " + x.value("next", num(a.version)))
	}
	expired := func() string {
		return x.name(attrExpiresAt) + " <= " + x.value("now", num(a.now.UnixMicro()))
	}
	deleted := func() string { return x.name(attrDeleted) + " = " + x.value("true", trueValue) }
	exists := func() string { return "attribute_exists(" + x.name(attrPK) + ")" }
	switch a.demand {
	case anything:
		x.require("NOT " + expired())
	case absent:
		x.require("NOT " + exists() + " OR " + deleted() + " OR " + expired())
	case unused:
		x.require("NOT " + exists())
	case present, exactly:
		x.require(exists())
		x.require("NOT " + deleted())
		x.require("NOT " + expired())
	}
	if a.demand == exactly && a.oddVersion == "" {
		is := x.name(attrVersion) + " = " + x.value("exact", num(a.exact))
		if a.exact == unversioned {
			is += " OR NOT attribute_type(" + x.name(attrVersion) + ", " + x.value("number", str("N")) + ")"
		}
		x.require(is)
	}
}

// maxUpdateBytes is the size up to which a document is written by UpdateItem.
// DynamoDB measures an update differently from a put: it adds, as others have
// measured, 3 bytes and 19 for each attribute that is set, 2 for each removed.
// What would fit by the rules of items is then refused, so the largest documents
// are put.
const maxUpdateBytes = maxItemBytes - 512

// documentSize is the size of a document's item. It counts the system's numbers
// at their longest, so that whether a document fits does not depend on the
// moment.
func documentSize(id doc.ID, data types.AttributeValue, bucket int) int {
	item := systemAttributes(id, bucket, maxVersion, newNonce())
	maps.Copy(item, itemKey(id))
	item[attrCreatedAt] = num(maxVersion)
	item[attrData] = data
	return itemSize(item)
}

func refusedSize() *doc.Error {
	return doc.Errorf(doc.DocumentTooLarge, "the document takes more than the limit of %d bytes with its id and system attributes", maxItemBytes).
		With("limit", maxItemBytes)
}

// prepare makes sure, before a first write, that the collection is known and
// the number of buckets is recorded. It gives the id's bucket.
func (s *Store) prepare(ctx context.Context, id doc.ID) (bucket int, err error) {
	if err := s.state.Register(ctx, id.Collection()); err != nil {
		return 0, err
	}
	n, err := s.state.raiseBuckets(ctx, s.buckets)
	if err != nil {
		return 0, err
	}
	return bucketOf(id, n), nil
}

// Delete puts a tombstone in the document's place, if the condition holds.
// Where there is no live document nothing is written, and the Version of the
// answer is zero.
//
// Errors are of the kinds of Put.
func (s *Store) Delete(ctx context.Context, id doc.ID, cond doc.Condition) (doc.Written, error) {
	if cond.Absent {
		return doc.Written{}, doc.Errorf(doc.InvalidRequest, "a delete cannot demand that the document is absent")
	}
	n, err := s.state.raiseBuckets(ctx, s.buckets)
	if err != nil {
		return doc.Written{}, err
	}
	bucket := bucketOf(id, n)
	var late doc.Version
	end, err := s.run(ctx, change{
		id: id, cond: cond, first: present, doing: "deleting a document",
		send: func(ctx context.Context, a attempt) (map[string]types.AttributeValue, error) {
			_, err := s.engine.client.PutItem(ctx, s.tombstoneRequest(id, bucket, a), s.engine.options)
			return nil, err
		},
	}, func(found standing, unclear bool) bool {
		if !cond.Unconditional() || found.live(s.clock.Now()) != 0 {
			return false
		}
		if unclear && found.exists {
			// This delete or another one: the document is gone either way, and
			// who waits for the tombstone waits for the right thing.
			late = found.version
		}
		return true
	})
	if err != nil {
		return doc.Written{}, err
	}
	if !end.written {
		return doc.Written{ID: id, Version: late}, nil
	}
	return doc.Written{ID: id, Version: end.attempt.version}, nil
}

// tombstoneRequest makes the request that replaces an item by a tombstone.
func (s *Store) tombstoneRequest(id doc.ID, bucket int, a attempt) *dynamodb.PutItemInput {
	item := systemAttributes(id, bucket, a.version, a.nonce)
	maps.Copy(item, itemKey(id))
	item[attrDeleted] = trueValue
	item[attrTTL] = num(a.now.Add(s.tombstoneLife).Unix())
	x := newExpression()
	x.demand(a)
	return &dynamodb.PutItemInput{
		TableName: aws.String(s.documents), Item: item,
		ConditionExpression:      x.condition(),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNone(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
