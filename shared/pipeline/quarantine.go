package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/shared/doc"
)

// quarantineLife is how long a collection without entries is believed to have
// none. Within it, a document that another process has just recorded and that
// this one indexes in full keeps its entry until it is indexed again.
const quarantineLife = 5 * time.Second

// quarantineBook keeps the list of documents that are not fully in the index.
// Entries are rare: that a collection has none is remembered, so that healthy
// documents cost no look-up.
type quarantineBook struct {
	ledger Ledger
	now    func() time.Time

	mu    sync.Mutex
	empty map[doc.Collection]time.Time // when the collection was seen without entries
}

func newQuarantineBook(ledger Ledger, now func() time.Time) *quarantineBook {
	return &quarantineBook{ledger: ledger, now: now, empty: map[doc.Collection]time.Time{}}
}

// entry is what the quarantine says about a document that was refused. What
// the projection leaves out by its own budgets is no matter for it: the index
// document says so itself, and queries look at such documents.
func (it *item) entry(now time.Time) doc.Quarantined {
	return doc.Quarantined{
		ID: it.doc.ID, Collection: it.doc.ID.Collection(), Version: it.doc.Version,
		Reason: it.reason, Attempts: it.attempts, Since: now, Partial: !it.lost,
	}
}

func (b *quarantineBook) record(ctx context.Context, q doc.Quarantined) error {
	b.mu.Lock()
	delete(b.empty, q.Collection)
	b.mu.Unlock()
	return b.ledger.RecordQuarantine(ctx, q)
}

// clear removes the entries of documents that are in the index in full, at
// their version or a newer one.
func (b *quarantineBook) clear(ctx context.Context, whole []*item) error {
	var collections []doc.Collection
	for _, it := range whole {
		if c := it.doc.ID.Collection(); !slices.Contains(collections, c) {
			collections = append(collections, c)
		}
	}
	having, err := b.having(ctx, collections)
	if err != nil {
		return err
	}
	var ids []doc.ID
	versions := map[doc.ID]doc.Version{}
	for _, it := range whole {
		if having[it.doc.ID.Collection()] {
			ids = append(ids, it.doc.ID)
			versions[it.doc.ID] = it.doc.Version
		}
	}
	if len(ids) == 0 {
		return nil
	}
	entries, err := b.ledger.Quarantine(ctx, ids)
	if err != nil {
		return fmt.Errorf("look documents up in the quarantine: %w", err)
	}
	for _, id := range ids {
		q, listed := entries[id]
		version := versions[id]
		if !listed || q.Version > version {
			continue
		}
		if err := b.ledger.ClearQuarantine(ctx, id.Collection(), id, version); err != nil {
			return fmt.Errorf("clear an entry of the quarantine: %w", err)
		}
	}
	return nil
}

// having is which of the collections have entries.
func (b *quarantineBook) having(ctx context.Context, collections []doc.Collection) (map[doc.Collection]bool, error) {
	now := b.now()
	var unknown []doc.Collection
	b.mu.Lock()
	for _, c := range collections {
		if at, ok := b.empty[c]; !ok || now.Sub(at) >= quarantineLife {
			unknown = append(unknown, c)
		}
	}
	b.mu.Unlock()
	if len(unknown) == 0 {
		return nil, nil
	}
	n, err := b.count(ctx, unknown, now)
	if err != nil || n == 0 {
		return nil, err
	}
	having := map[doc.Collection]bool{}
	for _, c := range unknown {
		if n, err = b.count(ctx, []doc.Collection{c}, now); err != nil {
			return nil, err
		}
		having[c] = n > 0
	}
	return having, nil
}

// count asks how many entries the collections have together, and remembers
// that they have none.
func (b *quarantineBook) count(ctx context.Context, collections []doc.Collection, now time.Time) (int, error) {
	n, err := b.ledger.CountQuarantined(ctx, collections)
	if err != nil {
		return 0, fmt.Errorf("count the quarantine: %w", err)
	}
	if n == 0 {
		b.mu.Lock()
		for _, c := range collections {
			b.empty[c] = now
		}
		b.mu.Unlock()
	}
	return n, nil
}

// moment lets something happen no more often than every so often.
type moment struct {
	mu   sync.Mutex
	last time.Time
}

func (m *moment) pass(now time.Time, every time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.last.IsZero() && now.Sub(m.last) < every && !now.Before(m.last) {
		return false
	}
	m.last = now
	return true
}
