// Package guid makes ordered identifiers for rows of other databases, and knows
// the orders in which those databases sort them.
//
// A database that sorts its rows by an identifier is fast while new ones come
// last. Which identifiers come last depends on the database, so each Layout puts
// the time where one kind of them looks first.
//
// Of the 128 bits, 48 are milliseconds since 1970, 16 count within a millisecond
// from a random beginning, 58 are random, and 6 are fixed by RFC 9562. Nothing in
// them tells of the host or the process.
//
// A Generator never gives the same identifier twice. Those of two generators,
// anywhere, are the same only if made for the same millisecond, with the same
// count, which has 15 random bits, and the same 58 random bits: for two of one
// millisecond that is one chance in 2^73. With n of them made for one
// millisecond in a whole cluster the chance of any collision is below n²/2^74;
// for a cluster that makes a million a second, 1000 in each millisecond, that is
// below 0.000002 in a year.
package guid

import (
	"encoding/hex"
	"errors"
)

// GUID is an identifier, as the sixteen octets of RFC 9562: in the order of its
// text.
type GUID [16]byte

// String is the canonical text: 32 lower-case hexadecimal digits in groups of 8,
// 4, 4, 4 and 12.
func (g GUID) String() string {
	var text [36]byte
	at := 0
	for i, group := range [][]byte{g[:4], g[4:6], g[6:8], g[8:10], g[10:]} {
		if i > 0 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], group)
	}
	return string(text[:])
}

// Parse reads canonical text, in lower or upper case.
func Parse(text string) (g GUID, err error) {
	wrong := errors.New("it is not a GUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, joined by hyphens")
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return g, wrong
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(g[:], []byte(digits)); err != nil {
		return GUID{}, wrong
	}
	return g, nil
}

// Stored are the bytes of .NET's Guid.ToByteArray, which are also those of SQL
// Server's uniqueidentifier: the first three groups have their least byte first.
//
// Source: .NET API reference, Guid.ToByteArray,
// https://learn.microsoft.com/en-us/dotnet/api/system.guid.tobytearray
func (g GUID) Stored() [16]byte {
	return [16]byte{g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]}
}
