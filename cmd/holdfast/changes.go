package main

import (
	"bufio"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

const (
	changesPage = 1000
	pollPause   = time.Second
	// worthCutting is how many settled changes may be read again and again before
	// an extra request moves the beginning behind them.
	worthCutting = 100
	// followPatience is how long a follower waits for a server that is away.
	followPatience = 10 * time.Minute
)

func newChanges() *cobra.Command {
	var at connection
	var collection, after string
	var follow bool
	c := &cobra.Command{
		Use:   "changes",
		Short: "Show what was changed, in the order of versions",
		Long: `Writes the changes of documents, one JSON object a line: {"id","version",
"deleted"}. An id appears at its newest version only.

The latest seconds are not settled: changes later than the feed's safeThrough may
still gain predecessors. They are written all the same, at once, and the
beginning of what is read again stays before them until they are settled, so that
nothing is missed; what was written already is not written twice. So lines are
nearly, not strictly, in the order of versions. The cursor named in the end is
the settled one: with --after, and the same --collection, it may repeat the latest
lines, but leaves none out.

--follow goes on until Ctrl-C, which is its regular end: exit code 0.`,
		Example: `  holdfast changes --collection users
  holdfast changes --follow | jq -r 'select(.deleted | not) | .id'
  holdfast changes --after "$cursor"`,
		Args: takes(cobra.NoArgs),
		RunE: runs(func(ctx context.Context, c *cobra.Command, _ []string) error {
			if err := notEmpty(c, "collection", "after"); err != nil {
				return err
			}
			patience := shortPatience
			if follow {
				patience = followPatience
			}
			api, err := at.reach(ctx, c, patience, follow)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(c.OutOrStdout())
			f := &following{
				read: func(ctx context.Context, after string, limit int) (client.Changes, error) {
					return api.Changes(ctx, collection, after, limit)
				},
				write:  func(ch client.Change) error { return writeJSON(w, ch) },
				flush:  w.Flush,
				settle: after, seen: map[client.Change]int{},
			}
			for {
				err = f.round(ctx)
				if err != nil || !follow {
					break
				}
				if err = interruptible(ctx)(ctx, pollPause); err != nil {
					break
				}
			}
			err = errors.Join(err, w.Flush())
			switch {
			case f.safe.IsZero(): // nothing was read
			case f.settle == "":
				note(c, "there is no settled cursor yet; go on without --after")
			default:
				note(c, "settled through %s; go on with --after %s", f.safe.UTC().Format(time.RFC3339Nano), f.settle)
			}
			if follow && ctx.Err() != nil {
				return nil
			}
			return err
		}),
	}
	at.register(c)
	f := c.Flags()
	f.StringVar(&collection, "collection", "", "only of this collection")
	f.StringVar(&after, "after", "", "go on after a cursor that an earlier run named")
	f.BoolVar(&follow, "follow", false, "go on with new changes until Ctrl-C")
	return c
}

// following reads the change feed so that nothing is missed and nothing is
// written twice.
type following struct {
	read  func(ctx context.Context, after string, limit int) (client.Changes, error)
	write func(client.Change) error
	flush func() error

	settle string                // the cursor before all that may still gain predecessors
	safe   time.Time             // of the last page
	seen   map[client.Change]int // written, and after settle: the round that read it last
	rounds int
}

// round reads once from the settled cursor to the end of the feed.
func (f *following) round(ctx context.Context) error {
	f.rounds++
	after, settled := f.settle, true
	for {
		page, err := f.read(ctx, after, changesPage)
		if err != nil {
			return err
		}
		f.safe = page.SafeThrough
		if err := f.tell(page); err != nil {
			return err
		}
		safe := settledOf(page)
		switch {
		case !settled:
		case safe == len(page.Changes):
			f.advance(page)
		default:
			settled = false
			if safe >= worthCutting {
				if err := f.cut(ctx, after, safe); err != nil {
					return err
				}
			}
		}
		if ends(page, after, settled) {
			f.forget()
			return nil
		}
		after = page.Next
	}
}

// tell writes what of a page was not written before.
func (f *following) tell(page client.Changes) error {
	for _, ch := range page.Changes {
		if f.seen[ch] == 0 {
			if err := f.write(ch); err != nil {
				return err
			}
		}
		f.seen[ch] = f.rounds
	}
	return f.flush()
}

// settledOf is how many changes of a page are settled; they come first.
func settledOf(page client.Changes) int {
	n := 0
	for n < len(page.Changes) && page.Changes[n].Version <= page.SafeThrough.UnixMicro() {
		n++
	}
	return n
}

// ends reports whether a page that was read after a cursor is the last of the
// round.
func ends(page client.Changes, after string, settled bool) bool {
	if !settled {
		// What follows a short page is as unsettled; the next round finds it.
		return page.Next == after || len(page.Changes) < changesPage
	}
	return page.End || page.Next == after
}

// cut moves the settled cursor behind the first n changes of an unsettled page.
func (f *following) cut(ctx context.Context, after string, n int) error {
	page, err := f.read(ctx, after, n)
	if err != nil {
		return err
	}
	if err := f.tell(page); err != nil {
		return err
	}
	if settledOf(page) == len(page.Changes) { // else something changed meanwhile; another round will do
		f.advance(page)
	}
	return nil
}

// advance moves the settled cursor behind a page. What is before it is not read
// again and need not be remembered.
func (f *following) advance(page client.Changes) {
	f.settle = page.Next
	for _, ch := range page.Changes {
		delete(f.seen, ch)
	}
}

// vanishes is longer than an entry that was replaced by a newer one may still
// be shown by the feed, which is eventually consistent.
const vanishes = time.Minute

// forget drops changes that the feed no longer has, because the documents were
// changed again.
func (f *following) forget() {
	for ch, round := range f.seen {
		if round != f.rounds && ch.Version < f.safe.Add(-vanishes).UnixMicro() {
			delete(f.seen, ch)
		}
	}
}
