package store

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// PrefixQuery asks for the documents under a prefix.
type PrefixQuery struct {
	Prefix   doc.Prefix
	After    string                 // the Next of the page before; "" for the first
	Limit    int                    // most documents of the page; 0: 25
	MaxBytes int                    // most bytes of their JSON text together; 0: no bound. One document is always taken
	Keep     func(rest string) bool // on an id's text after the prefix; nil keeps all
}

// PrefixPage is a page in the order of ids. It may hold fewer documents than
// asked for, even none, and still have a Next. Without Next nothing follows.
type PrefixPage struct {
	Documents []doc.Document
	Next      string
}

const (
	defaultPrefixLimit = 25
	// maxPrefixPages bounds the engine's pages that one call reads, of up to
	// 1 MB each, however few documents are kept.
	maxPrefixPages = 4
	// keepPageItems is how many items a page of the engine has at least when
	// they are to be filtered by their ids.
	keepPageItems = 200
)

// Prefix reads a page of the live documents under a prefix, strongly.
// The error is of kind InvalidCursor, Throttled or Unavailable.
func (s *Store) Prefix(ctx context.Context, q PrefixQuery) (PrefixPage, error) {
	if q.Limit <= 0 {
		q.Limit = defaultPrefixLimit
	}
	after := "" // the rest of the last id that is done
	if q.After != "" {
		position, err := readCursor(prefixCursor, q.Prefix.String(), q.After)
		if err != nil {
			return PrefixPage{}, err
		}
		after = string(position)
		if !isKey(after) || !inPrefix(q.Prefix, after) {
			return PrefixPage{}, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
		}
	}
	now := s.clock.Now()
	cut := len(q.Prefix.String())
	var page PrefixPage
	size := 0
	for n := 0; ; n++ {
		// One more than is wanted, to know whether anything follows.
		in := prefixRequest(s.documents, q.Prefix, after, now.UnixMicro())
		wanted := q.Limit - len(page.Documents) + 1
		if q.Keep != nil {
			wanted = max(wanted, keepPageItems)
		}
		in.Limit = aws.Int32(int32(min(wanted, 1001)))
		out, err := again(ctx, &s.engine, "reading a prefix", func(ctx context.Context) (*dynamodb.QueryOutput, error) {
			return s.engine.client.Query(ctx, in, s.engine.options)
		})
		if err != nil {
			return PrefixPage{}, err
		}
		for _, item := range out.Items {
			id, err := itemID(item)
			if err != nil || !q.Prefix.Contains(id) {
				continue // another tool's item under a key that is no id, or the root of "all below"
			}
			if q.Keep != nil && !q.Keep(string(id)[cut:]) {
				after = id.Rest()
				continue
			}
			d, err := DecodeItem(item)
			if err != nil {
				return PrefixPage{}, err
			}
			if !d.Live(now) {
				after = id.Rest()
				continue
			}
			bytes, _ := answerBytes(d)
			full := len(page.Documents) == q.Limit || q.MaxBytes > 0 && size > 0 && size+bytes > q.MaxBytes
			if full {
				// after may lie behind the last document, where others were left out.
				page.Next = writeCursor(prefixCursor, q.Prefix.String(), []byte(after))
				return page, nil
			}
			page.Documents, size, after = append(page.Documents, d), size+bytes, id.Rest()
		}
		if len(out.LastEvaluatedKey) == 0 {
			return page, nil
		}
		after, _ = text(out.LastEvaluatedKey[attrSK])
		if n+1 >= maxPrefixPages {
			page.Next = writeCursor(prefixCursor, q.Prefix.String(), []byte(after))
			return page, nil
		}
	}
}

// inPrefix reports whether a rest lies in the range that is read for a prefix. A
// start outside of it the engine would refuse.
func inPrefix(p doc.Prefix, rest string) bool {
	switch p.Rest {
	case "":
		return rest != ""
	case "/":
		return rest > "/"
	}
	return strings.HasPrefix(rest, p.Rest)
}

// prefixRequest asks for the items of a prefix from a position on.
func prefixRequest(table string, p doc.Prefix, after string, now int64) *dynamodb.QueryInput {
	x := newExpression()
	key := x.name(attrPK) + " = " + x.value("root", str(p.Root))
	switch p.Rest {
	case "": // the root and all below
	case "/": // all below: the root itself is "/", and everything else begins with it
		key += " AND " + x.name(attrSK) + " > " + x.value("rest", str("/"))
	default:
		key += " AND begins_with(" + x.name(attrSK) + ", " + x.value("rest", str(p.Rest)) + ")"
	}
	filter := "NOT " + x.name(attrDeleted) + " = " + x.value("true", trueValue) +
		" AND NOT " + x.name(attrExpiresAt) + " <= " + x.value("now", num(now))
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(table),
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(key),
		FilterExpression:          aws.String(filter),
		ExpressionAttributeNames:  x.names,
		ExpressionAttributeValues: x.values,
	}
	if after != "" {
		in.ExclusiveStartKey = map[string]types.AttributeValue{attrPK: str(p.Root), attrSK: str(after)}
	}
	return in
}
