package local

import (
	"context"
	"log/slog"
	"time"
)

// Schedule runs something at a fixed rate, as an EventBridge rate does a
// function: again and again, never twice at a time. A run that takes longer
// than the rate delays the next.
type Schedule struct {
	Name  string
	Every time.Duration
	First time.Duration // from the start to the first run
	Limit time.Duration // how long a run may take; 0: one Every
	Run   func(context.Context) error
}

// run runs until ctx ends.
func (s Schedule) run(ctx context.Context, log *slog.Logger) {
	limit := s.Limit
	if limit <= 0 {
		limit = s.Every
	}
	for next := time.Now().Add(s.First); sleep(ctx, time.Until(next)); {
		next = next.Add(s.Every)
		if now := time.Now(); next.Before(now) {
			next = now
		}
		once, cancel := context.WithTimeout(ctx, limit)
		if err := s.Run(once); err != nil && ctx.Err() == nil {
			log.Warn("a scheduled run failed", "schedule", s.Name, "error", err)
		}
		cancel()
	}
}
