package store_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// dated replaces the Date of answers.
type dated struct {
	date func() string
}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		resp.Header.Del("Date")
		if text := d.date(); text != "" {
			resp.Header.Set("Date", text)
		}
	}
	return resp, err
}

// TestClockIsCorrected has wrong clocks on this machine and on the other side.
func TestClockIsCorrected(t *testing.T) {
	tb := newTables(t)
	httpDate := func(off time.Duration) func() string {
		return func() string { return time.Now().Add(off).UTC().Format(http.TimeFormat) }
	}
	for name, c := range map[string]struct {
		local time.Duration // how wrong the machine's clock is
		date  func() string
		want  time.Duration // how wrong the clock is afterwards
	}{
		"right":            {0, httpDate(0), 0},
		"hours behind":     {-5 * time.Hour, httpDate(0), 0},
		"hours ahead":      {3 * time.Hour, httpDate(0), 0},
		"no date":          {-time.Hour, func() string { return "" }, -time.Hour},
		"garbage":          {-time.Hour, func() string { return "soon" }, -time.Hour},
		"not believed":     {0, httpDate(400 * 24 * time.Hour), 0},
		"not believed ago": {0, func() string { return "Thu, 01 Jan 1970 00:00:00 GMT" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var off atomic.Int64
			off.Store(int64(c.local))
			clock := doc.NewClock(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
			st := tb.open(dated{date: c.date}, func(o *store.Options) { o.Clock = clock })
			if _, err := st.Load(t.Context(), "clock/1"); doc.KindOf(err) != doc.NotFound {
				t.Fatal(err)
			}
			if wrong := time.Until(clock.Now()) - c.want; wrong.Abs() > 3*time.Second {
				t.Errorf("the clock is %s wrong, want %s", time.Until(clock.Now()), c.want)
			}
		})
	}
}
