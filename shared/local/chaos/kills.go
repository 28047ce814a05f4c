package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"holdfast/shared/local/engines"
)

// death is a kill that is planned.
type death struct {
	who  string        // an engine, the stack or everything
	at   time.Duration // since the import began
	down time.Duration // how long it stays away, besides what its start takes
}

// longestDown is how long something that was killed stays away at most.
const longestDown = 3 * time.Second

// plan decides what is killed when. Of each five kills one is of everything at
// once, and one of each of the rest; the times are left to chance, the first
// when there is something to lose.
func plan(seed uint64, kills int, over time.Duration) []death {
	chance := rand.New(rand.NewPCG(seed, 0))
	single := []string{string(engines.OpenSearch), string(engines.SQS), string(engines.DynamoDB), theStack}
	all := make([]death, kills)
	for i := range all {
		if i%5 == 0 {
			chance.Shuffle(len(single), func(a, b int) { single[a], single[b] = single[b], single[a] })
		}
		all[i] = death{who: everything, down: time.Duration(chance.Float64() * float64(longestDown))}
		if i%5 < len(single) {
			all[i].who = single[i%5]
		}
	}
	times := make([]time.Duration, kills)
	for i := range times {
		times[i] = time.Duration((0.05 + 0.9*chance.Float64()) * float64(over))
	}
	slices.Sort(times)
	for i := range all {
		all[i].at = times[i]
	}
	return all
}

// tally counts by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[name]++
}

func (t *tally) sum() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.counts {
		n += c
	}
	return n
}

func (t *tally) all() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// leastLife is how long something that has just come back is left alone, so that
// there is something to lose again.
const leastLife = 5 * time.Second

// comesBack is how long something that was killed may take to serve again.
const comesBack = 4 * time.Minute

// kill carries the plan out. One death does not wait for what came before to
// serve again, unless it is the same one's. It returns when all serve.
func (x *run) kill(ctx context.Context, begin time.Duration) error {
	var rising sync.WaitGroup
	defer rising.Wait()
	for _, d := range plan(x.Seed, x.Kills, x.Duration) {
		if !sleep(ctx, begin+d.at-x.age()) {
			return ctx.Err()
		}
		victims := []string{d.who}
		if d.who == everything {
			victims = []string{theStack, string(engines.OpenSearch), string(engines.SQS), string(engines.DynamoDB)}
		}
		due := x.age()
		if err := x.awaitAll(ctx, victims); err != nil {
			return err
		}
		if x.age()-due > leastLife/10 && !sleep(ctx, leastLife) {
			return ctx.Err()
		}
		x.Say(fmt.Sprintf("killing %s, for %.1f s and its start", d.who, d.down.Seconds()))
		if err := x.strike(victims); err != nil {
			return err
		}
		x.kills.add(d.who)
		rising.Go(func() {
			sleep(ctx, d.down)
			for _, v := range victims {
				x.revive(v)
			}
		})
	}
	rising.Wait()
	return x.awaitAll(ctx, []string{theStack, string(engines.OpenSearch), string(engines.SQS), string(engines.DynamoDB)})
}

// awaitAll returns when all of them serve.
func (x *run) awaitAll(ctx context.Context, who []string) error {
	ctx, cancel := context.WithTimeout(ctx, comesBack)
	defer cancel()
	for _, w := range who {
		var err error
		if w == theStack {
			err = x.stack.await(ctx)
		} else {
			err = x.set.Await(ctx, engines.Name(w))
		}
		if err != nil {
			return fmt.Errorf("%s does not come back: %w", w, err)
		}
	}
	return nil
}

// strike kills all of them at once.
func (x *run) strike(who []string) error {
	errs := make([]error, len(who))
	var striking sync.WaitGroup
	for i, w := range who {
		striking.Go(func() {
			if w == theStack {
				x.stack.kill()
			} else {
				errs[i] = x.set.Halt(engines.Name(w))
			}
		})
	}
	striking.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("kill %s: %w", who[i], err)
		}
	}
	return nil
}

func (x *run) revive(who string) {
	if who == theStack {
		x.stack.resume()
		return
	}
	_ = x.set.Resume(engines.Name(who)) // it was started, so it can be
}
