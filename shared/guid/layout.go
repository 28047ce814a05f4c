package guid

import (
	"bytes"
	"strings"
)

// Layout says for which order of identifiers they are made.
type Layout string

// The layouts.
const (
	// Text is the order of the text, from left to right. It is also that of
	// .NET's Guid.CompareTo and of databases that keep the octets as they are
	// written, such as PostgreSQL's uuid. These identifiers are UUIDs of version 7.
	Text Layout = "text"
	// Binary is the order of the bytes that .NET makes of a GUID: that of an
	// Oracle raw(16) that a .NET driver writes.
	Binary Layout = "binary"
	// SQLServer is the order of SQL Server's uniqueidentifier.
	SQLServer Layout = "sqlserver"
)

// Layouts are all there are, the standard one first.
func Layouts() []Layout { return []Layout{Text, Binary, SQLServer} }

// Known reports whether there is such a layout.
func (l Layout) Known() bool {
	_, known := weights[l]
	return known
}

// Compare is negative when a comes before b in the layout's order, positive when
// it comes after it, and 0 when they are the same. An unknown layout has the
// order of Text.
func (l Layout) Compare(a, b GUID) int {
	switch l {
	case Binary:
		x, y := a.Stored(), b.Stored()
		return bytes.Compare(x[:], y[:])
	case SQLServer:
		return compareSQLServer(a.Stored(), b.Stored())
	}
	return strings.Compare(a.String(), b.String())
}

// compareSQLServer compares the stored bytes by groups, the last group first,
// and each group from left to right.
//
// Source: Microsoft SQL Server programmability blog, "How are GUIDs compared in
// SQL Server 2005?": "we look at bytes {10 to 15} first, then {8-9}, then {6-7},
// then {4-5}, and lastly {0 to 3}".
func compareSQLServer(a, b [16]byte) int {
	for _, group := range [][2]int{{10, 16}, {8, 10}, {6, 8}, {4, 6}, {0, 4}} {
		if c := bytes.Compare(a[group[0]:group[1]], b[group[0]:group[1]]); c != 0 {
			return c
		}
	}
	return 0
}

// weights are the octets of a GUID from the one that a layout's order looks at
// first to the one that it looks at last.
var weights = map[Layout][16]int{
	Text:      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	Binary:    {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15},
	SQLServer: {10, 11, 12, 13, 14, 15, 8, 9, 7, 6, 5, 4, 3, 2, 1, 0},
}

// The octets of a GUID that RFC 9562 has a word in.
const (
	versionOctet = 6 // its upper four bits
	variantOctet = 8 // its upper two bits are 10
)

// version is the one that RFC 9562 gives to the layout: 7 where the time comes
// first in the text, else 8, which leaves the meaning of the bits to who makes
// them.
func (l Layout) version() byte {
	if l == Text {
		return 7
	}
	return 8
}

// lay puts the bits of high and then of low, 122 in all, where the layout's order
// looks at them in this order.
func (l Layout) lay(high, low uint64) (g GUID) {
	take := func(bits int) byte { // the foremost bits of what is left
		taken := byte(high >> (64 - bits))
		high = high<<bits | low>>(64-bits)
		low <<= bits
		return taken
	}
	for _, octet := range weights[l] {
		switch octet {
		case versionOctet:
			g[octet] = l.version()<<4 | take(4)
		case variantOctet:
			g[octet] = 0b10<<6 | take(6)
		default:
			g[octet] = take(8)
		}
	}
	return g
}
