package freshness

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"

	"holdfast/shared/doc"
)

const (
	// MaxAwaited is the most documents that one query may wait for, in all of
	// its tokens together. It bounds the memory and the requests of a wait.
	MaxAwaited = 100_000
	// maxTokenBytes bounds an unpacked token. The ids of the largest request a
	// function takes, 6 MB, fit.
	maxTokenBytes = 8 << 20
	// deflateAbove is the size from which packing is worth its time.
	deflateAbove = 256
	sumBytes     = 4
)

// The first byte of a token says how the rest is written.
const (
	plainToken    = 1
	deflatedToken = 2
)

// A token is, in base64url without padding: one byte for the form, the entries,
// and a checksum of everything before it. Entries are in the order of their
// ids; each is the number of bytes the id shares with the one before, the
// number of the bytes that follow, these bytes, and the version as the
// difference to the one before. The checksum tells a cut or mistyped token; it
// is no signature, because a token gives nothing but the right to wait.

// Tokens makes one token for all that was written: a client that sends it along
// with a query waits for every one of these versions. Writes that wrote
// nothing are left out; the token of nothing is "".
func Tokens(written []doc.Written) string {
	signals := make([]doc.Signal, 0, len(written))
	for _, w := range written {
		if w.Version > 0 {
			signals = append(signals, doc.Signal{ID: w.ID, Version: w.Version})
		}
	}
	return encode(signals)
}

func encode(signals []doc.Signal) string {
	signals = newest(signals)
	if len(signals) == 0 {
		return ""
	}
	var entries []byte
	var before doc.Signal
	for _, s := range signals {
		shared := sharedPrefix(string(before.ID), string(s.ID))
		entries = binary.AppendUvarint(entries, uint64(shared))
		entries = binary.AppendUvarint(entries, uint64(len(s.ID)-shared))
		entries = append(entries, s.ID[shared:]...)
		entries = binary.AppendVarint(entries, int64(s.Version-before.Version))
		before = s
	}
	token := append([]byte{plainToken}, entries...)
	if len(entries) > deflateAbove {
		if packed, ok := deflate(entries); ok {
			token = append([]byte{deflatedToken}, packed...)
		}
	}
	token = binary.BigEndian.AppendUint32(token, crc32.ChecksumIEEE(token))
	return base64.RawURLEncoding.EncodeToString(token)
}

// deflate packs the entries and reports whether that made them smaller.
func deflate(entries []byte) ([]byte, bool) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, false
	}
	if _, err := w.Write(entries); err != nil {
		return nil, false
	}
	if err := w.Close(); err != nil {
		return nil, false
	}
	return b.Bytes(), b.Len() < len(entries)
}

// ParseToken reads what Tokens wrote. The error is of kind InvalidQuery.
func ParseToken(s string) ([]doc.Signal, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) < 1+sumBytes {
		return nil, notAToken()
	}
	body, sum := raw[:len(raw)-sumBytes], raw[len(raw)-sumBytes:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return nil, notAToken()
	}
	entries := body[1:]
	switch body[0] {
	case plainToken:
	case deflatedToken:
		entries, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(entries)), maxTokenBytes+1))
		if err != nil || len(entries) > maxTokenBytes {
			return nil, notAToken()
		}
	default:
		return nil, notAToken()
	}
	signals, ok := decodeEntries(entries)
	if !ok {
		return nil, notAToken()
	}
	return signals, nil
}

// decodeEntries reads entries. It accepts only what encode writes.
func decodeEntries(entries []byte) ([]doc.Signal, bool) {
	var signals []doc.Signal
	var before doc.Signal
	for len(entries) > 0 {
		shared, n := binary.Uvarint(entries)
		if n <= 0 || shared > uint64(len(before.ID)) {
			return nil, false
		}
		entries = entries[n:]
		length, n := binary.Uvarint(entries)
		if n <= 0 || length > uint64(len(entries)-n) {
			return nil, false
		}
		rest := entries[n : n+int(length)]
		entries = entries[n+int(length):]
		difference, n := binary.Varint(entries)
		if n <= 0 {
			return nil, false
		}
		entries = entries[n:]
		id, err := doc.ParseStoredID(string(before.ID[:shared]) + string(rest))
		version := before.Version + doc.Version(difference)
		if err != nil || id <= before.ID || version <= 0 {
			return nil, false
		}
		before = doc.Signal{ID: id, Version: version}
		if signals = append(signals, before); len(signals) > MaxAwaited {
			return signals, true // ParseTokens refuses so many
		}
	}
	return signals, len(signals) > 0
}

// ParseTokens reads the tokens of one query into the newest version of each
// document. pointer is where they stand in the request. The error is of kind
// InvalidQuery, or QueryTooCostly for more than MaxAwaited documents.
func ParseTokens(tokens []string, pointer string) ([]doc.Signal, error) {
	var all []doc.Signal
	for i, token := range tokens {
		signals, err := ParseToken(token)
		if err != nil {
			return nil, notAToken().With("pointer", elementPointer(pointer, i))
		}
		all = append(all, signals...)
		if len(all) > MaxAwaited {
			if all = newest(all); len(all) > MaxAwaited {
				return nil, doc.Errorf(doc.QueryTooCostly, "the tokens name more than %d documents", MaxAwaited).
					With("pointer", pointer).With("limit", MaxAwaited)
			}
		}
	}
	return newest(all), nil
}

func notAToken() *doc.Error {
	return doc.Errorf(doc.InvalidQuery, "this is not a token that a write answered with")
}

// newest sorts by id and keeps the newest version of each.
func newest(signals []doc.Signal) []doc.Signal {
	if len(signals) == 0 {
		return nil
	}
	sorted := slices.Clone(signals)
	slices.SortFunc(sorted, func(a, b doc.Signal) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Version, a.Version))
	})
	return slices.CompactFunc(sorted, func(a, b doc.Signal) bool { return a.ID == b.ID })
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
