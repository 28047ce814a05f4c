package repair

import (
	"context"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

const (
	// tries is how often one request to the index is made at most.
	tries = 3
	// triesPause is the pause before the second try; that before the third is
	// twice as long. Each is shortened by up to a half, so that those who failed
	// together do not come back together.
	triesPause = 400 * time.Millisecond
	// tryTime is what one try may take, so that a hung connection does not cost
	// the run; no more than is left of it, but leastTry.
	tryTime  = 20 * time.Second
	leastTry = 5 * time.Second
)

// patient is the index as a run asks it. Every request bears repetition, so one
// that met a failure which may be gone in a moment is made again, as long as the
// run has time, and unless the index is known not to answer. The table and the
// queue see to that by themselves.
type patient struct {
	index Index
	x     *run
}

// tried makes a request until it is answered or there is no use in it.
func tried[T any](ctx context.Context, p patient, request func(context.Context) (T, error)) (T, error) {
	for n := 1; ; n++ {
		began := p.x.Now()
		out, err := once(ctx, p, request)
		if !search.Passing(err) || !p.again(ctx, n, began) {
			return out, err
		}
	}
}

// once makes a request within its time.
func once[T any](ctx context.Context, p patient, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, min(tryTime, max(p.x.left(), leastTry)))
	defer cancel()
	return request(ctx)
}

// again pauses after the n-th try, which failed and began at a moment, and reports
// whether there is another one.
func (p patient) again(ctx context.Context, n int, began time.Time) bool {
	defer func() { p.x.lost += max(p.x.Now().Sub(began), 0) }()
	pause := triesPause << (n - 1)
	pause -= time.Duration(p.x.Jitter() * float64(pause/2))
	if n >= tries || p.x.unwell || pause >= p.x.left() {
		return false
	}
	return p.x.Sleep(ctx, pause) == nil
}

// done is a request without an answer.
func done(request func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, request(ctx) }
}

func (p patient) Ensure(ctx context.Context, g collection.Generation) error {
	_, err := tried(ctx, p, done(func(ctx context.Context) error { return p.index.Ensure(ctx, g) }))
	return err
}

func (p patient) Inspect(ctx context.Context, g collection.Generation) (search.Inspection, error) {
	return tried(ctx, p, func(ctx context.Context) (search.Inspection, error) { return p.index.Inspect(ctx, g) })
}

func (p patient) UUID(ctx context.Context, g collection.Generation) (string, error) {
	return tried(ctx, p, func(ctx context.Context) (string, error) { return p.index.UUID(ctx, g) })
}

func (p patient) Swap(ctx context.Context, to collection.Generation, from []collection.Generation) error {
	_, err := tried(ctx, p, done(func(ctx context.Context) error { return p.index.Swap(ctx, to, from) }))
	return err
}

func (p patient) Remove(ctx context.Context, g collection.Generation) error {
	_, err := tried(ctx, p, done(func(ctx context.Context) error { return p.index.Remove(ctx, g) }))
	return err
}

func (p patient) Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	return tried(ctx, p, func(ctx context.Context) (map[doc.ID]doc.Version, error) { return p.index.Versions(ctx, wanted) })
}

func (p patient) Held(ctx context.Context, g collection.Generation, ids []doc.ID) (map[doc.ID]search.Held, error) {
	return tried(ctx, p, func(ctx context.Context) (map[doc.ID]search.Held, error) { return p.index.Held(ctx, g, ids) })
}

func (p patient) Walk(ctx context.Context, g collection.Generation, q search.WalkQuery) ([]search.Standing, error) {
	return tried(ctx, p, func(ctx context.Context) ([]search.Standing, error) { return p.index.Walk(ctx, g, q) })
}

func (p patient) Refresh(ctx context.Context, generations []collection.Generation) error {
	_, err := tried(ctx, p, done(func(ctx context.Context) error { return p.index.Refresh(ctx, generations) }))
	return err
}

func (p patient) Counts(ctx context.Context, g collection.Generation) (map[doc.Collection]int, error) {
	return tried(ctx, p, func(ctx context.Context) (map[doc.Collection]int, error) { return p.index.Counts(ctx, g) })
}

// Erase tries again what could not be taken out, and that alone.
func (p patient) Erase(ctx context.Context, g collection.Generation, signals []doc.Signal) ([]search.Outcome, error) {
	outcomes := make([]search.Outcome, len(signals))
	open := make([]int, len(signals))
	for i := range open {
		open[i] = i
	}
	for n := 1; ; n++ {
		asked := make([]doc.Signal, len(open))
		for i, at := range open {
			asked[i] = signals[at]
		}
		began := p.x.Now()
		got, err := once(ctx, p, func(ctx context.Context) ([]search.Outcome, error) { return p.index.Erase(ctx, g, asked) })
		if err != nil {
			return nil, err
		}
		var still []int
		for i, o := range got {
			if outcomes[open[i]] = o; o.Passing() {
				still = append(still, open[i])
			}
		}
		if open = still; len(open) == 0 || !p.again(ctx, n, began) {
			return outcomes, nil
		}
	}
}
