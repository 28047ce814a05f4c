package store

import (
	"context"
	"time"
)

// LagMeasure is how far behind the index was at a moment: how long the newest
// change that was indexed then had waited.
type LagMeasure struct {
	At  time.Time
	Lag time.Duration
}

// lagLife is how long a measure is kept. Who shows it decides sooner whether it
// is too old to say anything.
const lagLife = time.Hour

// RecordLag keeps a measure unless a later one is there.
func (s *State) RecordLag(ctx context.Context, m LagMeasure) error {
	x := newExpression()
	at := num(m.At.UnixMicro())
	x.assign(attrAt, at)
	x.assign(attrMeasure, num(m.Lag.Microseconds()))
	x.assign(attrTTL, num(m.At.Add(lagLife).Unix()))
	x.require("NOT " + x.name(attrAt) + " > " + x.value(attrAt, at))
	_, _, _, err := s.update(ctx, "recording the lag", kindLag, single, x)
	return err
}

// Lag is the last measure. The second result is false when there is none of the
// last hour.
func (s *State) Lag(ctx context.Context) (LagMeasure, bool, error) {
	item, err := s.get(ctx, "reading the lag", kindLag, single, true)
	if err != nil || len(item) == 0 {
		return LagMeasure{}, false, err
	}
	m := LagMeasure{At: micros(item[attrAt]), Lag: time.Duration(integer(item[attrMeasure])) * time.Microsecond}
	if s.clock.Now().Sub(m.At) > lagLife {
		return LagMeasure{}, false, nil
	}
	return m, true, nil
}
