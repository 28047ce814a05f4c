package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// fakeStore is documents in memory. With err set everything fails so.
type fakeStore struct {
	mu      sync.Mutex
	docs    map[doc.ID]doc.Document
	version doc.Version
	next    int
	err     error
	hook    func(id doc.ID) error // before each write of the id
	reads   int                   // calls of Prefix
}

const firstVersion doc.Version = 1796029203123456

func newFakeStore() *fakeStore {
	return &fakeStore{docs: map[doc.ID]doc.Document{}, version: firstVersion - 1}
}

func (f *fakeStore) Load(_ context.Context, id doc.ID) (doc.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return doc.Document{}, f.err
	}
	d, ok := f.docs[id]
	if !ok {
		return doc.Document{}, doc.Errorf(doc.NotFound, "there is no document %s", id)
	}
	return d, nil
}

func (f *fakeStore) LoadMany(_ context.Context, ids []doc.ID, maxBytes int) (store.LoadResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return store.LoadResult{}, f.err
	}
	r := store.LoadResult{Documents: map[doc.ID]doc.Document{}}
	size := 0
	for i, id := range ids {
		d, ok := f.docs[id]
		if !ok {
			continue
		}
		n := len(appendEnvelope(nil, d))
		if size > 0 && size+n > maxBytes {
			r.Remaining = ids[i:]
			break
		}
		size += n
		r.Documents[id] = d
	}
	return r, nil
}

func (f *fakeStore) live(id doc.ID) doc.Version { return f.docs[id].Version }

func (f *fakeStore) write(id doc.ID, c doc.Condition) error {
	if f.hook != nil {
		if err := f.hook(id); err != nil {
			return err
		}
	}
	f.mu.Lock()
	if f.err != nil {
		f.mu.Unlock()
		return f.err
	}
	if err := c.Check(f.live(id)); err != nil {
		f.mu.Unlock()
		return err
	}
	return nil // locked
}

func (f *fakeStore) Put(_ context.Context, id doc.ID, data map[string]any, c doc.Condition) (doc.Written, error) {
	if err := f.write(id, c); err != nil {
		return doc.Written{}, err
	}
	defer f.mu.Unlock()
	before, existed := f.docs[id]
	f.version++
	d := doc.Document{ID: id, Version: f.version, CreatedAt: f.version.Time(), UpdatedAt: f.version.Time(), Data: data}
	if existed {
		d.CreatedAt = before.CreatedAt
	}
	f.docs[id] = d
	return doc.Written{ID: id, Version: f.version, Created: !existed}, nil
}

func (f *fakeStore) Delete(_ context.Context, id doc.ID, c doc.Condition) (doc.Written, error) {
	if err := f.write(id, c); err != nil {
		return doc.Written{}, err
	}
	defer f.mu.Unlock()
	if _, existed := f.docs[id]; !existed {
		return doc.Written{ID: id}, nil
	}
	delete(f.docs, id)
	f.version++
	return doc.Written{ID: id, Version: f.version}, nil
}

func (f *fakeStore) Create(ctx context.Context, parent string, data map[string]any) (doc.Written, error) {
	f.next++
	return f.Put(ctx, doc.ID(fmt.Sprintf("%s/%d", parent, f.next)), data, doc.Condition{Absent: true})
}

func (f *fakeStore) Prefix(_ context.Context, q store.PrefixQuery) (store.PrefixPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.err != nil {
		return store.PrefixPage{}, f.err
	}
	after, ok := strings.CutPrefix(q.After, "after:")
	if q.After != "" && !ok {
		return store.PrefixPage{}, doc.Errorf(doc.InvalidCursor, "not a cursor")
	}
	var page store.PrefixPage
	for _, id := range slices.Sorted(maps.Keys(f.docs)) {
		rest, under := strings.CutPrefix(string(id), q.Prefix.String())
		if !under || string(id) <= after || q.Keep != nil && !q.Keep(rest) {
			continue
		}
		if len(page.Documents) == q.Limit {
			page.Next = "after:" + string(page.Documents[q.Limit-1].ID)
			break
		}
		page.Documents = append(page.Documents, f.docs[id])
	}
	return page, nil
}

func (f *fakeStore) Changes(_ context.Context, q store.ChangesQuery) (store.ChangesPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return store.ChangesPage{}, f.err
	}
	if q.After != "" && !strings.HasPrefix(q.After, "end:") {
		return store.ChangesPage{}, doc.Errorf(doc.InvalidCursor, "not a cursor")
	}
	page := store.ChangesPage{Next: fmt.Sprintf("end:%d", q.Limit), SafeThrough: f.version.Time().Add(-10 * time.Second)}
	page.End = page.Next == q.After
	for _, d := range f.docs {
		if q.Collection == "" || d.ID.Collection() == q.Collection {
			page.Changes = append(page.Changes, doc.Change{ID: d.ID, Version: d.Version, Collection: d.ID.Collection()})
		}
	}
	slices.SortFunc(page.Changes, func(a, b doc.Change) int { return int(a.Version - b.Version) })
	page.Changes = append(page.Changes, doc.Change{ID: "users/gone", Version: f.version + 1, Deleted: true})
	return page, nil
}

// fakeIndex answers queries with what a test says, and keeps what it was asked.
type fakeIndex struct {
	asked   []search.Request
	result  search.Result
	err     error
	waits   []doc.Signal
	timeout time.Duration
	silence time.Duration
	partly  bool
	waited  freshness.Waited
	about   freshness.Waited // what the staleness was asked about
	defined map[doc.Collection]collection.Definition
	failed  error // of the definitions
	asOf    []asOfNow
	waitErr error // of AsOfNow
	store   *fakeStore
	indexes fakeIndexes

	explained   []search.Request
	explanation search.Explanation
}

// table is where what is included and verified is read.
func (f *fakeIndex) table() *fakeStore {
	if f.store == nil {
		f.store = newFakeStore()
	}
	return f.store
}

func (f *fakeIndex) Search(_ context.Context, r search.Request) (search.Result, error) {
	f.asked = append(f.asked, r)
	result := f.result
	result.Missing = f.indexes.missing(r.From)
	if len(result.Documents) > r.Limit {
		result.Documents = result.Documents[:r.Limit]
		result.Next = "cursor"
	}
	result.CursorAfter = func(i int) (string, error) { return fmt.Sprintf("cursor%d", i), nil }
	return result, f.err
}

func (f *fakeIndex) Explain(_ context.Context, r search.Request) (search.Explanation, error) {
	f.explained = append(f.explained, r)
	return f.explanation, f.err
}

func (f *fakeIndex) Wait(_ context.Context, signals []doc.Signal, patience freshness.Patience) (freshness.Waited, error) {
	f.waits, f.timeout, f.silence = signals, patience.Timeout, patience.Silence
	return f.waited, nil
}

func (f *fakeIndex) Staleness(_ context.Context, _ []doc.Collection, waited freshness.Waited) freshness.Staleness {
	f.about = waited
	return freshness.Staleness{Stale: true, TimedOut: waited.TimedOut(), WaitedMs: waited.Took.Milliseconds(), Notice: "It is not known how current this is."}
}

func (f *fakeIndex) Definition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	if d, ok := f.defined[c]; ok {
		return d, f.failed
	}
	return collection.Definition{Name: c}, f.failed
}

func fakeDocument(id doc.ID, data map[string]any) doc.Document {
	return doc.Document{ID: id, Version: firstVersion, CreatedAt: firstVersion.Time(), UpdatedAt: firstVersion.Time(), Data: data}
}

func number(n int) json.Number { return json.Number(fmt.Sprint(n)) }
