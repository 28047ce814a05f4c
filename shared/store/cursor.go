package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"unicode/utf8"

	"holdfast/shared/doc"
)

// A cursor is, in base64url: a format byte, a check of four bytes over the rest
// and what the cursor belongs to, and the position. The check is not a secret;
// it tells cursors of another listing, and garbage, from ours.

const (
	prefixCursor     = 'P' // position: the last id's rest
	changesCursor    = 'C' // position: a feedCursor
	tableCursor      = 'T' // position: the key of the last item
	quarantineCursor = 'Q' // position: a quarantinePosition
)

func writeCursor(format byte, belongs string, position []byte) string {
	b := append([]byte{format}, cursorCheck(format, belongs, position)...)
	return base64.RawURLEncoding.EncodeToString(append(b, position...))
}

func readCursor(format byte, belongs, cursor string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 5 || b[0] != format || !bytes.Equal(b[1:5], cursorCheck(format, belongs, b[5:])) {
		return nil, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	}
	return b[5:], nil
}

func cursorCheck(format byte, belongs string, position []byte) []byte {
	h := sha256.New()
	h.Write([]byte{format})
	h.Write(binary.AppendUvarint(nil, uint64(len(belongs))))
	h.Write([]byte(belongs))
	h.Write(position)
	return h.Sum(nil)[:4]
}

// isKey reports whether a part of a position can be one of a key. The check of a
// cursor can be made by anybody, and what is no key, the engine refuses in a way
// of its own.
func isKey(s string) bool { return len(s) <= doc.MaxIDBytes && utf8.ValidString(s) }

// feedPosition is a place in the order of the change feed: behind the entry of
// that version and id. With an empty id it is before all entries of the version.
type feedPosition struct {
	version doc.Version
	id      doc.ID
}

// before reports whether the position lies before that of an entry.
func (p feedPosition) before(version doc.Version, id doc.ID) bool {
	return p.version < version || p.version == version && p.id < id
}

// maxTold bounds a cursor. It travels in a query string, and API Gateway takes
// 10 KB of request line and headers.
const maxTold = 256

// feedCursor is how far a reader of the change feed has come. Entries may still
// appear before those it has been told, so from the end of the feed it goes back
// to where the feed was complete.
type feedCursor struct {
	floor feedPosition // all up to here is complete and was told
	read  feedPosition // where the reading goes on: floor, or further on the way to the end
	told  []uint64     // marks of what was told behind floor, oldest first
}

// mark tells an entry from others in few bytes.
func mark(c doc.Change) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.AppendUvarint(nil, uint64(c.Version)))
	_, _ = h.Write([]byte(c.ID))
	return h.Sum64()
}

func (c feedCursor) toldSet() map[uint64]bool {
	set := make(map[uint64]bool, len(c.told))
	for _, m := range c.told {
		set[m] = true
	}
	return set
}

// after is the cursor behind a page: told are its changes, again the entries
// that were met and had been told before, next the position behind what was
// read, safe where the feed is complete, and all says that its end was reached.
func (c feedCursor) after(told, again []doc.Change, next, safe feedPosition, all bool) feedCursor {
	after := feedCursor{floor: c.floor, read: next}
	if c.read == c.floor {
		// Everything from the floor on was read just now.
		for _, e := range again {
			if all && next.before(e.Version, e.ID) {
				next = feedPosition{version: e.Version, id: e.ID}
			}
		}
		if safe.before(next.version, next.id) {
			next = safe
		}
		if c.floor.before(next.version, next.id) {
			after.floor = next
		}
	}
	if c.read == c.floor && all {
		// What was told and is not there any more has changed since.
		slices.SortFunc(again, compareChanges)
		for _, e := range again {
			if after.floor.before(e.Version, e.ID) {
				after.told = append(after.told, mark(e))
			}
		}
	} else {
		after.told = slices.Clone(c.told)
	}
	for _, e := range told {
		if after.floor.before(e.Version, e.ID) {
			after.told = append(after.told, mark(e))
		}
	}
	after.told = after.told[max(len(after.told)-maxTold, 0):]
	if all {
		after.read = after.floor
	}
	return after
}

func (c feedCursor) String() string {
	b := c.floor.append(nil)
	b = c.read.append(b)
	for _, m := range c.told {
		b = binary.BigEndian.AppendUint64(b, m)
	}
	return writeCursor(changesCursor, "", b)
}

func (p feedPosition) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.version))
	dst = binary.AppendUvarint(dst, uint64(len(p.id)))
	return append(dst, p.id...)
}

func parseFeedCursor(cursor string) (c feedCursor, err error) {
	if cursor == "" {
		return c, nil
	}
	b, err := readCursor(changesCursor, "", cursor)
	if err != nil {
		return c, err
	}
	var ok1, ok2 bool
	c.floor, b, ok1 = cutFeedPosition(b)
	c.read, b, ok2 = cutFeedPosition(b)
	if !ok1 || !ok2 || len(b)%8 != 0 || len(b) > 8*maxTold {
		return feedCursor{}, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	}
	for ; len(b) > 0; b = b[8:] {
		c.told = append(c.told, binary.BigEndian.Uint64(b))
	}
	return c, nil
}

func cutFeedPosition(b []byte) (p feedPosition, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > uint64(maxVersion) {
		return p, nil, false
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) || !isKey(string(b[n:][:length])) {
		return p, nil, false
	}
	b = b[n:]
	return feedPosition{version: doc.Version(v), id: doc.ID(b[:length])}, b[length:], true
}
