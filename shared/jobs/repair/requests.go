package repair

import (
	"context"
	"time"

	"holdfast/shared/collection"
)

// takeRequests takes up what people asked for. A request is removed when the
// run's state says what it wants, so it is not lost and may be taken up twice.
func (x *run) takeRequests(ctx context.Context) error {
	switch x.mode {
	case Compare, Purge:
		x.want(string(x.mode))
	}
	requests, err := x.State.JobRequests(ctx, Name)
	if err != nil {
		return err
	}
	anew, err := x.State.JobRequests(ctx, Reindex)
	if err != nil {
		return err
	}
	for _, r := range requests {
		switch Mode(r.Mode) {
		case Compare, Purge:
			x.want("somebody asked for it")
		case Retry:
			x.state.RetryAll = true
		}
	}
	for _, r := range anew {
		if x.state.Reindex == nil {
			x.state.Reindex = map[string]time.Time{}
		}
		family := collection.SharedFamily
		if r.Collection != "" {
			family = x.definition(r.Collection).Family()
		}
		x.state.Reindex[string(family)] = x.began.UTC()
	}
	all := append(requests, anew...)
	if len(all) == 0 && x.state.Wanted == "" {
		return nil
	}
	if err := x.save(ctx); err != nil {
		return err
	}
	for _, r := range all {
		if err := x.State.DropJobRequest(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
