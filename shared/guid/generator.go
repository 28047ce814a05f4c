package guid

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// Generator makes identifiers, each later than all that it made before in the
// order of its layout, whatever the clock does. It is safe for concurrent use.
type Generator struct {
	now    func() time.Time
	random func([]byte)

	mu    sync.Mutex
	last  int64  // the millisecond of the latest identifier: that of the clock, or later
	count uint16 // within it
}

// NewGenerator makes a generator that has the time from now and fills bytes with
// random ones. Nil means time.Now, and the operating system's random bytes.
func NewGenerator(now func() time.Time, random func([]byte)) *Generator {
	if now == nil {
		now = time.Now
	}
	if random == nil {
		random = func(b []byte) { _, _ = rand.Read(b) } // it never fails
	}
	return &Generator{now: now, random: random, last: -1}
}

// Make makes n identifiers of a layout, each later than the one before. The
// layout has to be a known one.
func (g *Generator) Make(l Layout, n int) []GUID {
	// Two bytes begin a count, eight are for an identifier. The operating system
	// is asked once, not within the lock.
	const each = 2 + 8
	random := make([]byte, n*each)
	g.random(random)
	made := make([]GUID, n)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := max(g.now().UnixMilli(), 0) // 48 bits tell it until the year 10889
	for i := range made {
		bits := random[i*each:][:each]
		g.step(now, binary.BigEndian.Uint16(bits)>>1)
		// 48 bits of time and 16 of count, then 58 that are random.
		made[i] = l.lay(uint64(g.last)<<16|uint64(g.count), binary.BigEndian.Uint64(bits[2:]))
	}
	return made
}

// step moves to the time and the count of the next identifier. A new millisecond
// begins its count at begin, in the lower half, so that at least 2^15 follow.
func (g *Generator) step(now int64, begin uint16) {
	switch {
	case now > g.last:
		g.last, g.count = now, begin
	case g.count < 1<<16-1:
		g.count++
	default:
		// More than the millisecond has: the next one is begun early, and the
		// clock comes after.
		g.last, g.count = g.last+1, begin
	}
}
