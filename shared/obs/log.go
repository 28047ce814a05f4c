// Package obs makes what an operator looks at: structured log lines and
// metrics in CloudWatch's embedded format. It knows nothing of documents.
package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// ParseLevel reads the name of a log level: debug, info, warn or error, in any
// case. The empty name is info.
func ParseLevel(name string) (slog.Level, error) {
	level := slog.LevelInfo
	if name == "" {
		return level, nil
	}
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("log level %q: want debug, info, warn or error", name)
	}
	return level, nil
}

// NewLogger makes a logger that writes one JSON object per line to w. Lines
// that are logged with a context carry its request id as requestId.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(withRequestID{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})})
}

// Discard is the logger for who was given none.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

type requestIDKey struct{}

// WithRequestID gives a context the id of the request that is being served.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the id that WithRequestID put into the context, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID adds the context's request id to each line, so that no caller
// has to think of it.
type withRequestID struct{ slog.Handler }

func (h withRequestID) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("requestId", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h withRequestID) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withRequestID{h.Handler.WithAttrs(attrs)}
}

func (h withRequestID) WithGroup(name string) slog.Handler {
	return withRequestID{h.Handler.WithGroup(name)}
}
