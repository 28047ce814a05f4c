package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// ScanQuery asks for a page of everything in the table.
type ScanQuery struct {
	// Segment of Segments is the part of the table that is read: DynamoDB
	// divides it by the keys. 0 of 0 is the whole. At most a million.
	Segment, Segments int
	After             string // the Next of the page before, of the same segment; "" for its beginning
	MaxBytes          int    // most memory that the documents of the page take together; 0: 8 MiB. One is always taken
}

// ScanPage is a page of a segment, in no order that means anything. It may hold
// no items and still have a Next; without one the segment is done.
type ScanPage struct {
	Items []Scanned
	Next  string
}

// Scanned is an item as it stands in the table.
type Scanned struct {
	Document doc.Document // as Revisions gives it: a tombstone or an expired one perhaps
	Seen     Seen         // for Adopt
	// Foreign says that the item lacks something that every write of the store
	// leaves behind, so another tool wrote it, and it is perhaps not in the
	// change feed.
	Foreign bool
}

const (
	defaultScanBytes = 8 << 20
	maxSegments      = 1_000_000 // DynamoDB's limit of TotalSegments
	// maxScanItems bounds the items of a page, as does the 1 MB that the engine
	// reads at once.
	maxScanItems = 1000
)

// Scan reads a page of the table itself, strongly and in whatever state other
// tools left it; items under keys that are no ids are left out. An item that is
// there during all of the scan of its segment is seen once. A page costs at most
// what reading 1 MB costs.
//
// The error is of kind InvalidCursor, Throttled or Unavailable.
func (s *Store) Scan(ctx context.Context, q ScanQuery) (ScanPage, error) {
	if q.Segments == 0 && q.Segment == 0 {
		q.Segments = 1
	}
	if q.Segment < 0 || q.Segment >= q.Segments || q.Segments > maxSegments {
		return ScanPage{}, fmt.Errorf("scanning the documents: there is no segment %d of %d", q.Segment, q.Segments)
	}
	if q.MaxBytes <= 0 {
		q.MaxBytes = defaultScanBytes
	}
	start, err := parseScanCursor(q)
	if err != nil {
		return ScanPage{}, err
	}
	buckets, err := s.state.recordedBuckets(ctx)
	if err != nil {
		return ScanPage{}, err
	}
	in := &dynamodb.ScanInput{
		TableName: &s.documents, ConsistentRead: aws.Bool(true),
		Segment: aws.Int32(int32(q.Segment)), TotalSegments: aws.Int32(int32(q.Segments)),
		ExclusiveStartKey: start,
		Limit:             aws.Int32(int32(s.typical.fit(q.MaxBytes, maxScanItems))),
	}
	out, err := again(ctx, &s.engine, "scanning the documents", func(ctx context.Context) (*dynamodb.ScanOutput, error) {
		return s.engine.client.Scan(ctx, in, s.engine.options)
	})
	if err != nil {
		return ScanPage{}, err
	}
	var page ScanPage
	size := 0
	for i, item := range out.Items {
		id, err := itemID(item)
		if err != nil {
			continue
		}
		d, err := DecodeItem(item)
		if err != nil {
			return ScanPage{}, err
		}
		_, memory := measure(d.Data)
		s.typical.saw(memory)
		if size > 0 && size+memory > q.MaxBytes {
			page.Next = scanCursor(q, out.Items[i-1])
			return page, nil
		}
		size += memory
		page.Items = append(page.Items, Scanned{Document: d, Seen: seenOf(item), Foreign: foreign(id, item, buckets)})
		out.Items[i] = map[string]types.AttributeValue{attrPK: item[attrPK], attrSK: item[attrSK]} // what was decoded is not held twice
	}
	if len(out.LastEvaluatedKey) > 0 {
		page.Next = scanCursor(q, out.LastEvaluatedKey)
	}
	return page, nil
}

// seenOf is what an image of the item shows to Adopt.
func seenOf(item map[string]types.AttributeValue) Seen {
	st := standingOf(item)
	if st.version == unversioned {
		st.version = 0
	}
	return Seen{Version: st.version, Nonce: st.nonce}
}

// foreign reports whether an item lacks a system attribute, or has one that no
// write of the store gives it. buckets is the number of partitions in force.
func foreign(id doc.ID, item map[string]types.AttributeValue, buckets int) bool {
	st := standingOf(item)
	c, _ := text(item[attrCollection])
	bucket, ok := partitionOf(item)
	return st.version == unversioned || st.nonce == "" ||
		!ok || bucket >= buckets ||
		doc.Collection(c) != id.Collection() ||
		micros(item[attrUpdatedAt]).IsZero() ||
		!st.deleted && micros(item[attrCreatedAt]).IsZero()
}

// partitionOf is the partition of the change feed that an item is in.
func partitionOf(item map[string]types.AttributeValue) (int, bool) {
	n, ok := item[attrBucket].(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	bucket, err := strconv.Atoi(n.Value)
	return bucket, err == nil && bucket >= 0
}

// scanCursor is behind the item of a key.
func scanCursor(q ScanQuery, key map[string]types.AttributeValue) string {
	k := keyOf(key)
	b := binary.AppendUvarint(nil, uint64(len(k[0])))
	b = append(b, k[0]...)
	return writeCursor(tableCursor, q.segment(), append(b, k[1]...))
}

func parseScanCursor(q ScanQuery) (map[string]types.AttributeValue, error) {
	if q.After == "" {
		return nil, nil
	}
	b, err := readCursor(tableCursor, q.segment(), q.After)
	if err != nil {
		return nil, err
	}
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	}
	b = b[n:]
	return map[string]types.AttributeValue{attrPK: str(string(b[:length])), attrSK: str(string(b[length:]))}, nil
}

func (q ScanQuery) segment() string { return fmt.Sprintf("%d/%d", q.Segment, q.Segments) }
