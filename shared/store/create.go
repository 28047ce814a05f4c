package store

import (
	"context"
	"strconv"
	"sync"

	"holdfast/shared/doc"
)

// Create writes a new document under an id that the store assigns: the parent
// path (from doc.ParseParent) and the next number of its sequence. The numbers
// grow; some are left out, because each process reserves a few at a time. An id
// that is in use, or was and left its tombstone, is never given out.
//
// Errors are of the kinds of Put, without VersionConflict, and of kind InvalidID
// when the id would be too long.
func (s *Store) Create(ctx context.Context, parent string, data map[string]any) (doc.Written, error) {
	for round := 0; ; round++ {
		n, err := s.sequences.take(ctx, s.state, parent)
		if err != nil {
			return doc.Written{}, err
		}
		id, err := numbered(parent, n)
		if err != nil {
			return doc.Written{}, err
		}
		w, err := s.put(ctx, id, data, doc.Condition{}, unused)
		if doc.KindOf(err) != doc.VersionConflict {
			return w, err
		}
		// Clients write such ids too, perhaps thousands in a row.
		if round+1 >= maxRounds {
			return doc.Written{}, doc.Errorf(doc.Throttled, "too many writers create documents here at once").Because(err)
		}
		free, err := s.firstFree(ctx, parent, n+1)
		if err != nil {
			return doc.Written{}, err
		}
		if err := s.sequences.skip(ctx, s.state, parent, free); err != nil {
			return doc.Written{}, err
		}
	}
}

func numbered(parent string, n int64) (doc.ID, error) {
	return doc.ParseID(parent + "/" + strconv.FormatInt(n, 10))
}

// firstFree finds a number from the given one on whose id is not in use, and
// behind which, as far as can be seen in a few requests, no more are: it looks
// ahead in steps that double, then narrows the last step down.
func (s *Store) firstFree(ctx context.Context, parent string, from int64) (int64, error) {
	const (
		doublings = 40 // a trillion ids
		points    = 64 // of one narrowing
	)
	ahead := make([]int64, doublings)
	for i := range ahead {
		ahead[i] = from + 1<<i - 1
	}
	taken, err := s.taken(ctx, parent, ahead)
	if err != nil {
		return 0, err
	}
	low, high := from-1, from
	for i, n := range ahead {
		if taken[n] {
			low, high = n, from+1<<(i+1)-1
		}
	}
	for high-low > 1 {
		stride := (high - low + points - 1) / points
		var between []int64
		for n := low + stride; n < high; n += stride {
			between = append(between, n)
		}
		taken, err := s.taken(ctx, parent, between)
		if err != nil {
			return 0, err
		}
		next := between[0] // the first point behind the last taken one
		for _, n := range between {
			if taken[n] {
				low, next = n, min(n+stride, high)
			}
		}
		high = next
	}
	return high, nil
}

// taken tells which of the numbers have an item under their id.
func (s *Store) taken(ctx context.Context, parent string, numbers []int64) (map[int64]bool, error) {
	ids := make([]doc.ID, 0, len(numbers))
	number := make(map[doc.ID]int64, len(numbers))
	for _, n := range numbers {
		id, err := numbered(parent, n)
		if err != nil {
			continue // too long, so nobody can have it
		}
		ids, number[id] = append(ids, id), n
	}
	taken := make(map[int64]bool, len(ids))
	if len(ids) == 0 {
		return taken, nil
	}
	items, _, err := s.batch(ctx, ids, attrPK, attrSK)
	if err != nil {
		return nil, err
	}
	for id := range items {
		taken[number[id]] = true
	}
	return taken, nil
}

// blockSizes are how many numbers a process reserves at the first, second and
// every further time it needs some for a parent. Most processes create few
// documents under one parent, and what they do not use is lost.
var blockSizes = [...]int64{1, 4, 20}

// maxSequences bounds how many parents' reserved numbers are remembered. The
// numbers of a forgotten parent are lost.
const maxSequences = 1000

// sequences hands out the numbers that this process has reserved.
type sequences struct {
	mu     sync.Mutex
	blocks map[string]*numberBlock
}

// numberBlock is a range of reserved numbers. Its turn is a lock that can be
// waited for under a context, since it is held while more are reserved.
type numberBlock struct {
	turn      chan struct{}
	next, end int64 // from next to before end
	times     int   // how often numbers were reserved
}

func (q *sequences) block(parent string) *numberBlock {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.blocks[parent]; b != nil {
		return b
	}
	if q.blocks == nil || len(q.blocks) >= maxSequences {
		q.blocks = map[string]*numberBlock{}
	}
	b := &numberBlock{turn: make(chan struct{}, 1)}
	q.blocks[parent] = b
	return b
}

func (b *numberBlock) lock(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return problem(unsent, "waiting for a number", ctx.Err())
	}
}

func (b *numberBlock) unlock() { <-b.turn }

// take gives the next number.
func (q *sequences) take(ctx context.Context, st *State, parent string) (int64, error) {
	b := q.block(parent)
	if err := b.lock(ctx); err != nil {
		return 0, err
	}
	defer b.unlock()
	if b.next == b.end {
		size := blockSizes[min(b.times, len(blockSizes)-1)]
		end, err := st.reserve(ctx, parent, size)
		if err != nil {
			return 0, err
		}
		b.next, b.end = end-size+1, end+1
		b.times++
	}
	b.next++
	return b.next - 1, nil
}

// skip leaves out the numbers before free, here and for all processes.
func (q *sequences) skip(ctx context.Context, st *State, parent string, free int64) error {
	b := q.block(parent)
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	b.next = min(max(b.next, free), b.end)
	if b.next < b.end {
		return nil
	}
	return st.raiseSequence(ctx, parent, free-1)
}
