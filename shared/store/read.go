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
			bytes := answerBytes(d)
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

// batch reads the items of at most maxBatch distinct ids, strongly, and asks
// again for those that the engine left out until all are read or the context
// ends. missing are the ids that were not read; there are none without an error.
// The items come with the given attributes, the key among them, or with all.
func (s *Store) batch(ctx context.Context, ids []doc.ID, attrs ...string) (items map[doc.ID]map[string]types.AttributeValue, missing []doc.ID, err error) {
	const doing = "reading documents"
	items = make(map[doc.ID]map[string]types.AttributeValue, len(ids))
	pending := make(map[doc.ID]bool, len(ids))
	keys := make([]map[string]types.AttributeValue, len(ids))
	for i, id := range ids {
		keys[i], pending[id] = itemKey(id), true
	}
	what := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	if len(attrs) > 0 {
		what.ProjectionExpression, what.ExpressionAttributeNames = projection(attrs)
	}
	most := 0
	for fruitless := 0; len(keys) > 0; {
		what.Keys = keys
		in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.documents: what}}
		var out *dynamodb.BatchGetItemOutput
		out, err = again(ctx, &s.engine, doing, func(ctx context.Context) (*dynamodb.BatchGetItemOutput, error) {
			return s.engine.client.BatchGetItem(ctx, in, s.engine.options)
		})
		if err != nil {
			break
		}
		keys = out.UnprocessedKeys[s.documents].Keys
		for _, item := range out.Responses[s.documents] {
			id, err := itemID(item)
			if err != nil {
				return nil, ids, err
			}
			items[id] = item
			most = max(most, itemSize(item))
		}
		if len(keys) == 0 {
			clear(pending)
			break
		}
		left := make(map[doc.ID]bool, len(keys))
		for _, key := range keys {
			id, err := itemID(key)
			if err != nil {
				return nil, ids, err
			}
			left[id] = true
		}
		if len(left) < len(pending) {
			fruitless = 0 // the answer was full, not the engine busy: ask at once
		} else {
			fruitless++
		}
		pending = left
		if fruitless > 0 && (fruitless >= maxAttempts || !pause(ctx, fruitless-1)) {
			err = problem(busy, doing, errUnprocessed)
			break
		}
	}
	if len(attrs) == 0 {
		s.typical.saw(most)
	}
	for _, id := range ids {
		if pending[id] {
			missing = append(missing, id)
		}
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

// maxBatch is DynamoDB's limit of keys in one BatchGetItem.
const maxBatch = 100

// typicalSize remembers how large items are, to ask for no more of them at once
// than a bound of memory allows. The sizes are not known before the reading.
type typicalSize struct {
	bytes atomic.Int64 // the largest item lately; 0: none seen
}

// firstGuess is the size assumed before any item was seen: such that the first
// request is cautious without being slow.
const firstGuess = 256 << 10

// keys is how many items to ask for.
func (t *typicalSize) keys(maxBytes int) int {
	if maxBytes <= 0 {
		return maxBatch
	}
	size := int(t.bytes.Load())
	if size == 0 {
		size = firstGuess
	}
	return min(max(maxBytes/size, 4), maxBatch)
}

// saw takes note of the largest item of an answer. Larger ones count at once,
// smaller ones by and by.
func (t *typicalSize) saw(most int) {
	if most == 0 {
		return
	}
	t.bytes.Store(max(int64(most), t.bytes.Load()/8))
}
