package freshness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Proofs tells what was proven of the index by comparing it with the table.
type Proofs interface {
	// Proof is what holds for all of the collections, in the generations that
	// queries read. ok is false where nothing is proven.
	Proof(ctx context.Context, collections []doc.Collection) (p Proof, ok bool, err error)
}

// Proof says that the index has everything that was written up to a moment.
type Proof struct {
	Through time.Time
	At      time.Time     // when the last run began that looked
	FeedLag time.Duration // how far behind the table the feed was then, by measurement
	Margin  time.Duration // what that run allowed for
	// Missing is how many documents the last run found missing, and OldestMissing
	// when the first of them was written.
	Missing       int
	OldestMissing time.Time
}

// ProofRecords is where the runs that prove keep what they found.
type ProofRecords interface {
	Proofs(ctx context.Context) ([]store.Proof, error)
}

// proofsLife is how long what was read of the proofs is believed. It says less
// than is known then, never more.
const proofsLife = 2 * time.Second

// ProofBook knows what is proven. It is safe for concurrent use.
type ProofBook struct {
	registry Registry
	records  ProofRecords
	now      func() time.Time

	mu    sync.Mutex
	known map[generationKey]store.Proof
	reads map[collection.Family]int // the generations that are read, as long as the proofs are believed
	at    time.Time
}

type generationKey struct {
	family collection.Family
	number int
}

// NewProofBook makes a book. now may be nil for time.Now.
func NewProofBook(registry Registry, records ProofRecords, now func() time.Time) *ProofBook {
	if now == nil {
		now = time.Now
	}
	return &ProofBook{registry: registry, records: records, now: now}
}

// Proof is what holds for all of the collections: the earliest moment and the
// slowest feed of the generations that queries read.
func (b *ProofBook) Proof(ctx context.Context, collections []doc.Collection) (Proof, bool, error) {
	proofs, err := b.read(ctx)
	if err != nil {
		return Proof{}, false, err
	}
	var all Proof
	seen := map[collection.Family]bool{}
	for _, c := range collections {
		d, err := b.registry.Definition(ctx, c)
		if err != nil {
			return Proof{}, false, fmt.Errorf("find the definition of a collection: %w", err)
		}
		family := d.Reads()
		if seen[family] {
			continue
		}
		seen[family] = true
		number, err := b.readIn(ctx, family)
		if err != nil {
			return Proof{}, false, err
		}
		p, ok := proofs[generationKey{family, number}]
		if !ok || p.Through.IsZero() {
			return Proof{}, false, nil
		}
		all = all.and(p)
	}
	return all, len(seen) > 0, nil
}

// and is what holds for both.
func (p Proof) and(other store.Proof) Proof {
	if p.Through.IsZero() || other.Through.Before(p.Through) {
		p.Through = other.Through
	}
	if p.At.IsZero() || other.At.Before(p.At) {
		p.At = other.At
	}
	p.FeedLag, p.Margin = max(p.FeedLag, other.FeedLag), max(p.Margin, other.Margin)
	p.Missing += other.Missing
	if !other.OldestMissing.IsZero() && (p.OldestMissing.IsZero() || other.OldestMissing.Before(p.OldestMissing)) {
		p.OldestMissing = other.OldestMissing
	}
	return p
}

// read is what the records hold, from memory where that is fresh enough.
func (b *ProofBook) read(ctx context.Context) (map[generationKey]store.Proof, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if age := now.Sub(b.at); b.known != nil && age >= 0 && age < proofsLife {
		return b.known, nil
	}
	all, err := b.records.Proofs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the proofs: %w", err)
	}
	b.known, b.reads, b.at = map[generationKey]store.Proof{}, map[collection.Family]int{}, now
	for _, p := range all {
		b.known[generationKey{p.Family, p.Generation}] = p
	}
	return b.known, nil
}

// readIn is the number of the family's generation that queries read, from memory
// as long as the proofs are; 0, which is none, where there is no index yet.
func (b *ProofBook) readIn(ctx context.Context, family collection.Family) (int, error) {
	b.mu.Lock()
	number, ok := b.reads[family]
	b.mu.Unlock()
	if ok {
		return number, nil
	}
	generations, err := b.registry.Generations(ctx, family)
	if err != nil {
		return 0, fmt.Errorf("find the generations of an index: %w", err)
	}
	g, there := collection.Read(generations)
	if !there {
		return 0, nil // not remembered: the first document is on its way
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads[family] = g.Number
	return g.Number, nil
}
