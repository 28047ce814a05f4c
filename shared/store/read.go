package store

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// Load reads a document, strongly. The error is of kind NotFound when there is
// no live one, else Throttled or Unavailable.
func (s *Store) Load(ctx context.Context, id doc.ID) (doc.Document, error) {
	item, err := s.get(ctx, id)
	if err != nil {
		return doc.Document{}, err
	}
	if len(item) > 0 {
		d, err := DecodeItem(item)
		if err != nil {
			return doc.Document{}, err
		}
		if d.Live(s.clock.Now()) {
			return d, nil
		}
	}
	return doc.Document{}, doc.Errorf(doc.NotFound, "there is no such document")
}

// get reads an item with the given attributes, or all. The item is empty when
// there is none.
func (s *Store) get(ctx context.Context, id doc.ID, attrs ...string) (map[string]types.AttributeValue, error) {
	in := &dynamodb.GetItemInput{TableName: aws.String(s.documents), Key: itemKey(id), ConsistentRead: aws.Bool(true)}
	if len(attrs) > 0 {
		in.ProjectionExpression, in.ExpressionAttributeNames = projection(attrs)
	}
	out, err := again(ctx, &s.engine, "reading a document", func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return s.engine.client.GetItem(ctx, in, s.engine.options)
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// LoadResult is the answer of LoadMany. An id that is in neither part is that of
// no live document.
type LoadResult struct {
	Documents map[doc.ID]doc.Document
	Remaining []doc.ID // not read, or not fitting; in the order asked for
}

// LoadMany reads many documents, strongly. Ids may repeat. Documents are taken
// in the order of ids until their JSON text together would exceed maxBytes (0:
// no bound); the first is always taken. The ids from there on are Remaining.
//
// The error is of kind Throttled or Unavailable when nothing could be read. When
// only a part could be, the rest is Remaining.
func (s *Store) LoadMany(ctx context.Context, ids []doc.ID, maxBytes int) (LoadResult, error) {
	ids = distinct(ids)
	result := LoadResult{Documents: make(map[doc.ID]doc.Document, len(ids))}
	now := s.clock.Now()
	size := 0
	for at := 0; at < len(ids); {
		keys := ids[at:min(at+s.typical.keys(maxBytes), len(ids))]
		items, missing, err := s.batch(ctx, keys)
		if err != nil && (len(missing) == len(keys) && at == 0 || !environmental(err)) {
			return LoadResult{}, err
		}
		unread := make(map[doc.ID]bool, len(missing))
		for _, id := range missing {
			unread[id] = true
		}
		for i, id := range keys {
			if unread[id] {
				result.Remaining = append(result.Remaining, id)
				continue
			}
			item, ok := items[id]
			if !ok {
				continue
			}
			d, err := DecodeItem(item)
			if err != nil {
				return LoadResult{}, err
			}
			delete(items, id)
			if !d.Live(now) {
				continue
			}
			bytes, memory := answerBytes(d)
			s.typical.saw(memory)
			if maxBytes > 0 && size > 0 && size+bytes > maxBytes {
				result.Remaining = append(append(result.Remaining, keys[i:]...), ids[at+len(keys):]...)
				return result, nil
			}
			size += bytes
			result.Documents[id] = d
		}
		at += len(keys)
		if err != nil {
			result.Remaining = append(result.Remaining, ids[at:]...)
			return result, nil
		}
	}
	return result, nil
}

// Revisions tells what the table holds for the ids, read strongly: tombstones
// and expired documents included, with absent the ids for which there is no item
// at all. Ids may repeat. visit is called with slices of the answer whose
// documents together take at most maxBytes in memory (a single larger one comes
// alone); it must not keep them. Its error ends the reading and is returned.
//
// Another error is of kind Throttled or Unavailable and means that not all ids
// were visited.
func (s *Store) Revisions(ctx context.Context, ids []doc.ID, maxBytes int, visit func(found []doc.Document, absent []doc.ID) error) error {
	ids = distinct(ids)
	for at := 0; at < len(ids); {
		keys := ids[at:min(at+s.typical.keys(maxBytes), len(ids))]
		items, missing, err := s.batch(ctx, keys)
		unread := make(map[doc.ID]bool, len(missing))
		for _, id := range missing {
			unread[id] = true
		}
		var found []doc.Document
		var absent []doc.ID
		size := 0
		for _, id := range keys {
			if unread[id] {
				continue
			}
			item, ok := items[id]
			if !ok {
				absent = append(absent, id)
				continue
			}
			delete(items, id) // what was decoded is not held twice
			d, err := DecodeItem(item)
			if err != nil {
				return err
			}
			_, memory := measure(d.Data)
			s.typical.saw(memory)
			if maxBytes > 0 && size > 0 && size+memory > maxBytes {
				if err := visit(found, absent); err != nil {
					return err
				}
				found, absent, size = nil, nil, 0
			}
			found, size = append(found, d), size+memory
		}
		if len(found)+len(absent) > 0 {
			if err := visit(found, absent); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		at += len(keys)
	}
	return nil
}

// batch reads the items of at most maxBatch distinct ids, strongly. missing are
// the ids that were not read; there are none without an error. The items come
// with the given attributes, the key among them, or with all.
func (s *Store) batch(ctx context.Context, ids []doc.ID, attrs ...string) (items map[doc.ID]map[string]types.AttributeValue, missing []doc.ID, err error) {
	items = make(map[doc.ID]map[string]types.AttributeValue, len(ids))
	byKey := make(map[[2]string]doc.ID, len(ids))
	what := types.KeysAndAttributes{Keys: make([]map[string]types.AttributeValue, len(ids))}
	for i, id := range ids {
		what.Keys[i] = itemKey(id)
		byKey[[2]string{id.Root(), id.Rest()}] = id
	}
	if len(attrs) > 0 {
		what.ProjectionExpression, what.ExpressionAttributeNames = projection(attrs)
	}
	left, err := s.engine.readAll(ctx, "reading documents", s.documents, what, func(item map[string]types.AttributeValue) {
		items[byKey[keyOf(item)]] = item
	})
	for _, key := range left {
		missing = append(missing, byKey[keyOf(key)])
	}
	return items, missing, err
}

// environmental tells errors that pass from those that a repetition repeats.
func environmental(err error) bool {
	k := doc.KindOf(err)
	return k == doc.Throttled || k == doc.Unavailable
}

func distinct(ids []doc.ID) []doc.ID {
	seen := make(map[doc.ID]bool, len(ids))
	out := make([]doc.ID, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// typicalSize remembers how much memory documents take, to ask for no more of
// them at once than a bound allows. It is not known before the reading, and an
// answer of 16 MB can take twenty times as much.
type typicalSize struct {
	bytes atomic.Int64 // 0: none seen
}

// firstGuess is what is assumed before any document was seen.
const firstGuess = 1 << 20

// keys is how many items to ask for by their keys.
func (t *typicalSize) keys(maxBytes int) int {
	if maxBytes <= 0 {
		return maxBatch
	}
	return t.fit(maxBytes, maxBatch)
}

// fit is how many documents probably take no more than maxBytes; at least a few,
// and no more than most.
func (t *typicalSize) fit(maxBytes, most int) int {
	size := int(t.bytes.Load())
	if size == 0 {
		size = firstGuess
	}
	return min(max(maxBytes/size, 4), most)
}

// saw takes note of a document. A larger one counts at once, smaller ones by and
// by: it takes some to forget a large one.
func (t *typicalSize) saw(memory int) {
	old := t.bytes.Load()
	if old == 0 {
		old = firstGuess
	}
	t.bytes.Store(max(int64(memory), old-old/8))
}
