package store

import (
	"context"
)

// raiseBuckets records the number of partitions of the change feed before the
// first document is written into one of them, and gives the number in force,
// which is never below one that was recorded earlier. The answer is remembered:
// a process that goes on with a lower number writes into partitions that all
// readers read.
func (s *State) raiseBuckets(ctx context.Context, want int) (int, error) {
	if n := int(s.buckets.Load()); n >= want {
		return n, nil
	}
	x := newExpression()
	x.assign(attrBuckets, num(want))
	x.require("NOT " + x.name(attrBuckets) + " >= " + x.value(attrBuckets, num(want)))
	_, found, ok, err := s.update(ctx, "recording the partitions of the change feed", kindFeed, single, x)
	if err != nil {
		return 0, err
	}
	n := want
	if !ok {
		n = max(int(integer(found[attrBuckets])), want)
	}
	s.buckets.Store(int64(n))
	return n, nil
}

// recordedBuckets is the number of partitions in force; 0 when nothing was
// written yet.
func (s *State) recordedBuckets(ctx context.Context) (int, error) {
	item, err := s.get(ctx, "reading the partitions of the change feed", kindFeed, single, true)
	if err != nil {
		return 0, err
	}
	return int(integer(item[attrBuckets])), nil
}
