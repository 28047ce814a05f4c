package guid_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"holdfast/shared/guid"
)

// inOrder fails unless each identifier comes after the one before.
func inOrder(t interface{ Fatalf(string, ...any) }, l guid.Layout, made []guid.GUID) {
	for i := 1; i < len(made); i++ {
		if l.Compare(made[i-1], made[i]) >= 0 {
			t.Fatalf("%s: %s is made before %s", l, made[i-1], made[i])
		}
	}
}

// seeded gives random bytes that a seed decides, some of them all ones or all
// zeros, where counts are carried and signs change.
func seeded(seed uint64) func([]byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		switch r.IntN(4) {
		case 0:
			for i := range b {
				b[i] = 0xff
			}
		case 1:
			clear(b)
		}
	}
}

// Whatever the clock does, and also where a millisecond has more identifiers
// than it can count, later ones come later in the order of their database.
func TestLaterOnesComeLater(t *testing.T) {
	for _, layout := range guid.Layouts() {
		rapid.Check(t, func(t *rapid.T) {
			now := time.UnixMilli(rapid.Int64Range(-1000, 1<<48-100_000_000).Draw(t, "begin"))
			g := guid.NewGenerator(func() time.Time { return now }, seeded(rapid.Uint64().Draw(t, "seed")))
			var made []guid.GUID
			for range rapid.IntRange(1, 6).Draw(t, "calls") {
				now = now.Add(time.Duration(rapid.SampledFrom([]int64{
					0, 0, 0, 1, 999_999, 1_000_000, int64(time.Second), int64(time.Hour), -1, -1_000_000, -int64(time.Second), -int64(24 * time.Hour),
				}).Draw(t, "step")))
				made = append(made, g.Make(layout, rapid.SampledFrom([]int{1, 1, 1, 2, 100, 100, 1000, 1000, 34_000}).Draw(t, "burst"))...)
			}
			inOrder(t, layout, made)
		})
	}
}

// In one millisecond the count runs over again and again; each time the next
// millisecond is taken, and no identifier is given twice.
func TestCarryOfTheCount(t *testing.T) {
	const n = 300_000
	now := time.UnixMilli(1_790_000_000_000)
	for _, layout := range guid.Layouts() {
		g := guid.NewGenerator(func() time.Time { return now }, nil)
		made := g.Make(layout, n)
		inOrder(t, layout, made)
		if layout != guid.Text {
			continue
		}
		// At least 2^15 in each millisecond, at most 2^16.
		first, last := milli(made[0]), milli(made[n-1])
		if first != now.UnixMilli() || last-first < n/(1<<16)-1 || last-first > n/(1<<15)+1 {
			t.Errorf("%d milliseconds for %d", last-first, n)
		}
		// The clock has caught up, and goes on.
		now = now.Add(time.Minute)
		if after := g.Make(layout, 1)[0]; milli(after) != now.UnixMilli() {
			t.Errorf("%d after %d", milli(after), last)
		}
	}
}

// milli is the time in an identifier of layout Text.
func milli(g guid.GUID) int64 {
	return int64(binary.BigEndian.Uint64(append([]byte{0, 0}, g[:6]...)))
}

func TestConcurrentCallers(t *testing.T) {
	const callers, calls, each = 8, 200, 25
	for _, layout := range guid.Layouts() {
		g := guid.NewGenerator(nil, nil)
		made := make([][]guid.GUID, callers)
		var wait sync.WaitGroup
		for c := range callers {
			wait.Go(func() {
				for range calls {
					made[c] = append(made[c], g.Make(layout, each)...)
				}
			})
		}
		wait.Wait()
		all := slices.Concat(made...)
		for c := range made {
			inOrder(t, layout, made[c]) // what one caller got later is later
		}
		slices.SortFunc(all, layout.Compare)
		inOrder(t, layout, all) // and no two are the same
		if len(all) != callers*calls*each {
			t.Errorf("%d", len(all))
		}
	}
}

// Identifiers of one layout stay in order when others are made in between.
func TestLayoutsSideBySide(t *testing.T) {
	g := guid.NewGenerator(nil, nil)
	made := map[guid.Layout][]guid.GUID{}
	for range 1000 {
		for _, layout := range guid.Layouts() {
			made[layout] = append(made[layout], g.Make(layout, 2)...)
		}
	}
	for layout, all := range made {
		inOrder(t, layout, all)
	}
}

// Processes that make identifiers at the same time, with the same clock, make
// different ones: all that is not the time differs.
func TestProcessesSideBySide(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	seen := map[guid.GUID]bool{}
	const processes, each = 500, 20
	begins := map[uint16]bool{}
	for range processes {
		made := guid.NewGenerator(func() time.Time { return now }, nil).Make(guid.Text, each)
		for _, g := range made {
			seen[g] = true
		}
		// The count: twelve bits behind the version, four behind the variant.
		begins[binary.BigEndian.Uint16(made[0][6:8])<<4|uint16(made[0][8]>>2&15)] = true
	}
	if len(seen) != processes*each {
		t.Errorf("%d are different of %d", len(seen), processes*each)
	}
	if len(begins) < processes*9/10 {
		t.Errorf("counts begin at %d numbers in %d processes", len(begins), processes)
	}
	for count := range begins {
		if count >= 1<<15 {
			t.Errorf("a count begins at %d, in the upper half", count)
		}
	}
}

// What RFC 9562 fixes, and every bit that it does not fix is used: it is 1 in
// some identifier and 0 in another, except for the time's.
func TestBits(t *testing.T) {
	now := time.Date(2026, 3, 10, 5, 16, 23, 0, time.UTC)
	for _, layout := range guid.Layouts() {
		g := guid.NewGenerator(func() time.Time { return now }, nil)
		ones, zeros := make([]byte, 16), make([]byte, 16)
		for _, made := range g.Make(layout, 70_000) {
			if u := uuid.UUID(made); u.Variant() != uuid.RFC4122 || layout == guid.Text && u.Version() != 7 || layout != guid.Text && u.Version() != 8 {
				t.Fatalf("%s: %s is of version %d, variant %s", layout, made, u.Version(), u.Variant())
			}
			for i, b := range made {
				ones[i] |= b
				zeros[i] |= ^b
			}
		}
		varying := 0
		for i := range ones {
			for bit := range 8 {
				varying += int(ones[i] & zeros[i] >> bit & 1)
			}
		}
		// 58 random ones, 16 of the count, and of the time those that the carries
		// of the count change.
		if varying < 58+16 || varying > 58+16+2 {
			t.Errorf("%s: %d bits are not the same in all", layout, varying)
		}
	}
	// The time is where the layout says, as it is read in each database.
	const at = 0x019c_d62c_c058 // 2026-03-10T05:16:23Z
	if now.UnixMilli() != at {
		t.Fatalf("%x", now.UnixMilli())
	}
	for layout, where := range map[guid.Layout]func(guid.GUID) []byte{
		guid.Text:      func(g guid.GUID) []byte { return g[:6] },
		guid.Binary:    func(g guid.GUID) []byte { s := g.Stored(); return s[:6] },
		guid.SQLServer: func(g guid.GUID) []byte { s := g.Stored(); return s[10:] },
	} {
		made := guid.NewGenerator(func() time.Time { return now }, nil).Make(layout, 1)[0]
		if !bytes.Equal(where(made), []byte{0x01, 0x9c, 0xd6, 0x2c, 0xc0, 0x58}) {
			t.Errorf("%s: %s", layout, made)
		}
	}
}

func TestKnownLayouts(t *testing.T) {
	for _, l := range guid.Layouts() {
		if !l.Known() {
			t.Errorf("%s", l)
		}
	}
	for _, l := range []guid.Layout{"", "TEXT", "oracle"} {
		if l.Known() {
			t.Errorf("%q is known", l)
		}
	}
}

func BenchmarkMake(b *testing.B) {
	g := guid.NewGenerator(nil, nil)
	for b.Loop() {
		g.Make(guid.SQLServer, 1000)
	}
}
