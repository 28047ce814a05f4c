package repair

import (
	"context"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

const (
	// firstRetry and lastRetry bound the pauses between attempts at a document
	// in quarantine: twice as long each time, from the first one on.
	firstRetry = 2 * time.Minute
	lastRetry  = 6 * time.Hour
	// maxRetried bounds the entries that one run looks at.
	maxRetried = 10_000
)

// retry signals documents in quarantine again when their pause is over, and
// removes the entries of those that the table has no trace of. An entry leaves
// by itself when its document is indexed.
//
// As with signals sent again, what is due follows from the entry alone and the
// moment of the last choice, which is kept before anything is sent.
func (x *run) retry(ctx context.Context) error {
	last, now := x.state.Retried, x.Now().UTC()
	all := x.mode == Retry || x.state.RetryAll
	x.state.Retried, x.state.RetryAll = now, false
	if err := x.save(ctx); err != nil {
		return err
	}
	after := ""
	for x.report.Quarantined < maxRetried {
		page, next, err := x.State.Quarantined(ctx, store.QuarantineQuery{After: after, Limit: 500})
		if err != nil {
			return err
		}
		x.report.Quarantined += len(page)
		if err := x.retryPage(ctx, page, last, now, all); err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		after = next
	}
	return nil
}

func (x *run) retryPage(ctx context.Context, page []doc.Quarantined, last, now time.Time, all bool) error {
	if len(page) == 0 {
		return nil
	}
	ids := make([]doc.ID, len(page))
	for i, q := range page {
		ids[i] = q.ID
	}
	standings, err := x.Table.Standings(ctx, ids)
	if err != nil {
		return err
	}
	var signals []doc.Signal
	for _, q := range page {
		standing, there := standings[q.ID]
		if !there {
			if err := x.State.ClearQuarantine(ctx, q.Collection, q.ID, q.Version); err != nil {
				return err
			}
			x.report.Quarantined--
			continue
		}
		if all || retries(q.Since, now) > retries(q.Since, last) {
			signals = append(signals, doc.Signal{ID: q.ID, Version: standing.Version})
		}
	}
	sent, err := x.signal(ctx, signals)
	x.report.Retried += sent
	return err
}

// retries is how many attempts are due by a moment.
func retries(since, by time.Time) int {
	n := 0
	for at, pause := since.Add(firstRetry), firstRetry; !at.After(by); n++ {
		if pause < lastRetry {
			pause = min(2*pause, lastRetry)
			at = at.Add(pause)
			continue
		}
		return n + 1 + int(by.Sub(at)/lastRetry) // the rest is regular
	}
	return n
}
