package store

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/doc"
)

// QuarantineQuery asks for a page of the quarantine.
type QuarantineQuery struct {
	Collection doc.Collection // "" for all
	After      string         // the next of the page before; "" for the first
	Limit      int            // most notes of the page; 0: 100, and never more than 1000
}

const (
	defaultQuarantineLimit = 100
	mostQuarantineLimit    = 1000
	// maxQuarantineReads bounds the requests of one page, where many collections
	// have nothing in quarantine.
	maxQuarantineReads = 100
)

// Quarantined is a page of the notes about documents that the index does not
// hold in full, in the order of collections and in them of ids. A page may hold
// fewer than asked for, even none, and still have a next; without one nothing
// follows. The error is of kind InvalidCursor, Throttled or Unavailable.
func (s *State) Quarantined(ctx context.Context, q QuarantineQuery) (page []doc.Quarantined, next string, err error) {
	if q.Limit <= 0 {
		q.Limit = defaultQuarantineLimit
	}
	q.Limit = min(q.Limit, mostQuarantineLimit)
	at, err := parseQuarantinePosition(q)
	if err != nil {
		return nil, "", err
	}
	collections := []doc.Collection{q.Collection}
	if q.Collection == "" {
		if collections, err = s.Collections(ctx); err != nil {
			return nil, "", err
		}
		// Those before the position are done. They never become fewer, so the
		// position's own is among them.
		done, _ := slices.BinarySearch(collections, at.collection)
		collections = collections[done:]
	}
	for reads := 0; len(collections) > 0; reads++ {
		c := collections[0]
		if c != at.collection {
			at = quarantinePosition{collection: c}
		}
		if len(page) >= q.Limit || reads >= maxQuarantineReads {
			return page, at.cursor(q), nil
		}
		notes, last, err := s.quarantined(ctx, at, q.Limit-len(page))
		if err != nil {
			return nil, "", err
		}
		page, at.id = append(page, notes...), last
		if last == "" {
			collections = collections[1:]
		}
	}
	return page, "", nil
}

// quarantined reads notes of one collection from a position on. last is the id
// that more may follow; "" when none do.
func (s *State) quarantined(ctx context.Context, at quarantinePosition, limit int) (notes []doc.Quarantined, last doc.ID, err error) {
	x := newExpression()
	key := x.name(attrPK) + " = " + x.value("pk", str(kindQuarantine+string(at.collection)))
	if at.id != "" {
		key += " AND " + x.name(attrSK) + " > " + x.value("after", str(string(at.id)))
	}
	out, err := again(ctx, &s.engine, "reading the quarantine", func(ctx context.Context) (*dynamodb.QueryOutput, error) {
		return s.engine.client.Query(ctx, &dynamodb.QueryInput{
			TableName: &s.table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(limit)),
			KeyConditionExpression:   &key,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		}, s.engine.options)
	})
	if err != nil {
		return nil, "", err
	}
	for _, item := range out.Items {
		notes = append(notes, decodeQuarantined(item))
	}
	sk, _ := text(out.LastEvaluatedKey[attrSK])
	return notes, doc.ID(sk), nil
}

// quarantinePosition is behind the note of an id or, without one, before all of
// the collection.
type quarantinePosition struct {
	collection doc.Collection
	id         doc.ID
}

// Neither a collection nor an id has a control character in it.
const quarantineSeparator = "\n"

func (p quarantinePosition) cursor(q QuarantineQuery) string {
	return writeCursor(quarantineCursor, string(q.Collection), []byte(string(p.collection)+quarantineSeparator+string(p.id)))
}

func parseQuarantinePosition(q QuarantineQuery) (quarantinePosition, error) {
	if q.After == "" {
		return quarantinePosition{collection: q.Collection}, nil
	}
	b, err := readCursor(quarantineCursor, string(q.Collection), q.After)
	if err != nil {
		return quarantinePosition{}, err
	}
	c, id, ok := strings.Cut(string(b), quarantineSeparator)
	if !ok || !isKey(c) || !isKey(id) {
		return quarantinePosition{}, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	}
	return quarantinePosition{collection: doc.Collection(c), id: doc.ID(id)}, nil
}
