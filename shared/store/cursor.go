package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"holdfast/shared/doc"
)

// A cursor is, in base64url: a format byte, a check of four bytes over the rest
// and what the cursor belongs to, and the position. The check is not a secret;
// it tells cursors of another listing, and garbage, from ours.

const (
	prefixCursor  = 'P' // position: the last id's rest
	changesCursor = 'C' // position: version as uvarint, id
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

// feedPosition is a place in the order of the change feed: behind the entry of
// that version and id. With an empty id it is before all entries of the version.
type feedPosition struct {
	version doc.Version
	id      doc.ID
}

func (p feedPosition) String() string {
	return writeCursor(changesCursor, "", append(binary.AppendUvarint(nil, uint64(p.version)), p.id...))
}

func parseFeedPosition(cursor string) (feedPosition, error) {
	if cursor == "" {
		return feedPosition{}, nil
	}
	b, err := readCursor(changesCursor, "", cursor)
	if err != nil {
		return feedPosition{}, err
	}
	v, n := binary.Uvarint(b)
	if n <= 0 || v > uint64(maxVersion) {
		return feedPosition{}, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	}
	return feedPosition{version: doc.Version(v), id: doc.ID(b[n:])}, nil
}

// before reports whether the position lies before that of an entry.
func (p feedPosition) before(version doc.Version, id doc.ID) bool {
	return p.version < version || p.version == version && p.id < id
}
