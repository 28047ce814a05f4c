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
//
// A proof is about one very index, and indexes get lost and are made again under
// their names. So whoever relies on a proof asks whether it stands, and who says
// something about an answer asks that after the search: an index that was there
// when it was proven and is there then was there all the while.
type Proofs interface {
	// Proof is what holds for all of the collections where they are read: in these
	// generations or, without any, in all that a query may have read that ends
	// now. ok is false where nothing is proven, such as of a collection that is
	// not among those that are read.
	Proof(ctx context.Context, collections []doc.Collection, read map[doc.Collection]collection.Generation) (p Proof, ok bool, err error)
	// Stands reports whether the indexes that a proof is about are those that are
	// there, by looks that are at most so old; 0: by some that begin now. That they
	// take more than a second is an error.
	Stands(ctx context.Context, p Proof, age time.Duration) (bool, error)
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
	Indexes       []ProvenIndex // that this is about
}

// ProvenIndex is an index that something was proven of.
type ProvenIndex struct {
	Generation collection.Generation
	UUID       string // by which it is told from others of its name
}

// ProofRecords is where the runs that prove keep what they found.
type ProofRecords interface {
	Proofs(ctx context.Context) ([]store.Proof, error)
}

// Indexes tells the indexes apart that have the name of a generation's, one after
// the other.
type Indexes interface {
	// UUID is that of the index that is there; "" for none.
	UUID(ctx context.Context, g collection.Generation) (string, error)
}

const (
	// proofsLife is how long what was read of the proofs is believed, and a look
	// at an index that nothing but provenThrough depends on.
	proofsLife = 2 * time.Second
	// readLate is how long after the end of a generation a query may end that has
	// read it: one that learned of it just before, waited and searched.
	readLate = time.Minute
	// mostLooks bounds the indexes that are remembered.
	mostLooks = 1000
)

// ProofBook knows what is proven. It is safe for concurrent use.
type ProofBook struct {
	registry Registry
	records  ProofRecords
	index    Indexes
	now      func() time.Time

	mu    sync.Mutex
	known map[generationKey]store.Proof
	reads map[collection.Family][]int // the generations that queries may have read, as long as the proofs are believed
	at    time.Time
	looks map[generationKey]look
}

type generationKey struct {
	family collection.Family
	number int
}

// look is what a look at an index has found.
type look struct {
	uuid string
	err  error
	at   time.Time // when it began
}

// NewProofBook makes a book. now may be nil for time.Now.
func NewProofBook(registry Registry, records ProofRecords, index Indexes, now func() time.Time) *ProofBook {
	if now == nil {
		now = time.Now
	}
	return &ProofBook{registry: registry, records: records, index: index, now: now, looks: map[generationKey]look{}}
}

// Proof is what holds for all of the collections: the earliest moment and the
// slowest feed of the generations in which they are read.
func (b *ProofBook) Proof(ctx context.Context, collections []doc.Collection, read map[doc.Collection]collection.Generation) (Proof, bool, error) {
	proofs, err := b.read(ctx)
	if err != nil {
		return Proof{}, false, err
	}
	var all Proof
	seen := map[generationKey]bool{}
	for _, c := range collections {
		keys, err := b.readOf(ctx, c, read)
		if err != nil {
			return Proof{}, false, err
		}
		if len(keys) == 0 {
			return Proof{}, false, nil
		}
		for _, k := range keys {
			if seen[k] {
				continue
			}
			seen[k] = true
			p, ok := proofs[k]
			if !ok || p.Through.IsZero() || p.Index == "" {
				return Proof{}, false, nil
			}
			all = all.and(p)
		}
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
	p.Indexes = append(p.Indexes, ProvenIndex{collection.Generation{Family: other.Family, Number: other.Generation}, other.Index})
	return p
}

// Stands looks at the indexes. One that does not answer is not asked again as
// long as the look may be old.
func (b *ProofBook) Stands(ctx context.Context, p Proof, age time.Duration) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	for _, proven := range p.Indexes {
		uuid, err := b.look(ctx, limited, proven.Generation, age)
		if err != nil {
			return false, fmt.Errorf("look whether an index is the one that was proven: %w", err)
		}
		if uuid != proven.UUID {
			return false, nil
		}
	}
	return len(p.Indexes) > 0, nil
}

// look looks at an index, or remembers what was seen. limited is ctx with the end
// of what the look may take.
func (b *ProofBook) look(ctx, limited context.Context, g collection.Generation, age time.Duration) (string, error) {
	k, at := generationKey{g.Family, g.Number}, b.now()
	b.mu.Lock()
	known, ok := b.looks[k]
	b.mu.Unlock()
	if old := at.Sub(known.at); ok && old >= 0 && old < age {
		return known.uuid, known.err
	}
	uuid, err := b.index.UUID(limited, g)
	if ctx.Err() != nil { // the look may have failed for this alone
		return uuid, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.looks) >= mostLooks {
		clear(b.looks)
	}
	b.looks[k] = look{uuid, err, at}
	return uuid, err
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
	b.known, b.reads, b.at = map[generationKey]store.Proof{}, map[collection.Family][]int{}, now
	for _, p := range all {
		b.known[generationKey{p.Family, p.Generation}] = p
	}
	return b.known, nil
}

// readOf are the generations in which a collection is read: the given one, or
// those in which a query may have read it that ends now. There are none where
// there is no index.
func (b *ProofBook) readOf(ctx context.Context, c doc.Collection, read map[doc.Collection]collection.Generation) ([]generationKey, error) {
	if read != nil {
		g, given := read[c]
		if !given {
			return nil, nil
		}
		return []generationKey{{g.Family, g.Number}}, nil
	}
	d, err := b.registry.Definition(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("find the definition of a collection: %w", err)
	}
	families := d.Writes()
	if !d.Moved { // else there may be who has not heard of it
		families = families[:1]
	}
	var keys []generationKey
	for _, family := range families {
		numbers, err := b.readIn(ctx, family)
		if err != nil || len(numbers) == 0 {
			return nil, err
		}
		for _, n := range numbers {
			keys = append(keys, generationKey{family, n})
		}
	}
	return keys, nil
}

// readIn are the numbers of the family's generations that queries may have read,
// from memory as long as the proofs are. There are none where there is no index
// yet.
func (b *ProofBook) readIn(ctx context.Context, family collection.Family) ([]int, error) {
	b.mu.Lock()
	numbers, ok := b.reads[family]
	b.mu.Unlock()
	if ok {
		return numbers, nil
	}
	generations, err := b.registry.Generations(ctx, family)
	if err != nil {
		return nil, fmt.Errorf("find the generations of an index: %w", err)
	}
	if _, there := collection.Read(generations); !there {
		return nil, nil // not remembered: the first document is on its way
	}
	now := b.now()
	for _, g := range generations {
		if g.State == collection.Active || g.State == collection.Retired && now.Sub(g.Since) < readLate {
			numbers = append(numbers, g.Number)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads[family] = numbers
	return numbers, nil
}
