package doc

import (
	"strconv"
	"sync/atomic"
	"time"
)

// Version orders the states of one document. It is microseconds since 1970 as
// a hybrid logical clock, so it fits 53 bits and is exact in JSON. Zero means
// no version.
//
// The scheme is that of Kulkarni et al., "Logical Physical Clocks" (2014),
// reduced to one number: a writer takes the larger of its clock and one more
// than the version it replaces.
type Version int64

// Time is the moment the version stands for.
func (v Version) Time() time.Time { return time.UnixMicro(int64(v)).UTC() }

// String is the decimal text of the version.
func (v Version) String() string { return strconv.FormatInt(int64(v), 10) }

// VersionAt is the version of a moment.
func VersionAt(t time.Time) Version { return Version(t.UnixMicro()) }

// ParseVersion reads what String wrote. It accepts digits only, no sign and no
// leading zero.
func ParseVersion(s string) (Version, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	return Version(n), true
}

// Clock gives versions. It may be corrected towards a time authority. A Clock
// is safe for concurrent use.
type Clock struct {
	now    func() time.Time
	offset atomic.Int64 // nanoseconds to add to now
}

// NewClock makes a clock over now; nil means time.Now.
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now}
}

// Now is the corrected time.
func (c *Clock) Now() time.Time {
	return c.now().Add(time.Duration(c.offset.Load()))
}

// Local is the time without the correction: what Correct takes as sent and
// received.
func (c *Clock) Local() time.Time { return c.now() }

// Next is the version to write over a document that stands at old: the clock's
// time, or old + 1 where the clock is behind.
func (c *Clock) Next(old Version) Version {
	return max(VersionAt(c.Now()), old+1)
}

// dateResolution is the precision of an HTTP Date header: a difference below it
// says nothing.
const dateResolution = time.Second

// Correct tells the clock what an authority (the Date header of DynamoDB's
// answers, in whole seconds) said at a moment between sent and received on the
// local clock. The correction is the smallest that explains the difference, so
// a good clock is left alone.
func (c *Clock) Correct(authority, sent, received time.Time) {
	earliest, latest := authority, authority.Add(dateResolution)
	switch {
	case latest.Before(sent): // even the latest reading lies before the request: the local clock is ahead
		c.offset.Store(int64(latest.Sub(sent)))
	case earliest.After(received): // the local clock is behind
		c.offset.Store(int64(earliest.Sub(received)))
	default:
		c.offset.Store(0)
	}
}
