package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"holdfast/shared/doc"
)

// listing names what one page after the other walks through: a route and those
// of its parameters that decide what is listed. limit is none of them, it may
// change from page to page.
//
// A cursor of a listing is the base64url of twelve bytes, of which six are the
// listing and six a check over it and the position, and then the position as the
// store tells it. So a cursor that was altered is told from one that belongs to
// something else, where it would go on in the wrong place without a word. The
// check is no secret: behind a cursor there is nothing that its bearer may not
// read.
type listing [listingBytes]byte

const (
	listingBytes = 6
	sealBytes    = 2 * listingBytes
	sealText     = sealBytes / 3 * 4
)

// listingOf names a listing. parameters are always the same ones, in the same
// order; one that is not given is "".
func listingOf(route string, parameters ...string) (l listing) {
	h := sha256.New()
	for _, text := range append([]string{route}, parameters...) {
		h.Write(binary.AppendUvarint(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	copy(l[:], h.Sum(nil))
	return l
}

// cursor is what a client gets for a position; "" for none.
func (l listing) cursor(position string) string {
	if position == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(l[:], l.check(position)...)) + position
}

func (l listing) check(position string) []byte {
	sum := sha256.Sum256(append(l[:], position...))
	return sum[:listingBytes]
}

// position is what cursor was given. The error is of kind InvalidCursor, or
// CursorMismatch for a cursor of another listing.
func (l listing) position(cursor string) (string, error) {
	invalid := doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	if len(cursor) <= sealText {
		return "", invalid
	}
	position := cursor[sealText:]
	seal, err := base64.RawURLEncoding.Strict().DecodeString(cursor[:sealText])
	if err != nil || len(seal) != sealBytes {
		return "", invalid
	}
	belongs := listing(seal[:listingBytes])
	switch {
	case !bytes.Equal(belongs.check(position), seal[listingBytes:]):
		return "", invalid
	case belongs != l:
		return "", doc.Errorf(doc.CursorMismatch, "the cursor belongs to a listing with other parameters")
	}
	return position, nil
}

// after reads the parameter after as a position in a listing; "" is its
// beginning.
func (q query) after(l listing) (string, error) {
	text, given := q["after"]
	if !given {
		return "", nil
	}
	// An empty one is refused like any other that is none: it can only be a mistake.
	position, err := l.position(text)
	return position, inParameter(err, "after")
}

// page is what the parameters collection, after and limit ask for.
type page struct {
	listing
	collection doc.Collection // "": all
	after      string         // position; "": the beginning
	limit      int
}

// page reads the parameters of a listing that is of one collection or of all.
// They are all that its route takes.
func (q query) page(route string, standard int) (p page, err error) {
	if err := q.only("collection", "after", "limit"); err != nil {
		return p, err
	}
	if name, given := q["collection"]; given {
		if p.collection, err = doc.ParseCollection(name); err != nil {
			return p, inParameter(err, "collection")
		}
	}
	p.listing = listingOf(route, string(p.collection))
	if p.after, err = q.after(p.listing); err != nil {
		return p, err
	}
	p.limit, err = q.limit(standard, largestPage)
	return p, err
}

// largestList is the most collections of one page.
const largestList = 1000

// names is what the parameters after and limit ask for of a listing of
// collections by their names.
type names struct {
	listing
	after doc.Collection // "": the beginning
	limit int
}

// names reads the parameters of such a listing. They are all that its route
// takes.
func (q query) names(route string) (n names, err error) {
	if err := q.only("limit", "after"); err != nil {
		return n, err
	}
	if n.limit, err = q.limit(largestList, largestList); err != nil {
		return n, err
	}
	n.listing = listingOf(route)
	position, err := q.after(n.listing)
	if err != nil {
		return n, err
	}
	name, err := base64.RawURLEncoding.DecodeString(position)
	if err != nil {
		return n, inParameter(doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing"), "after")
	}
	n.after = doc.Collection(name)
	return n, nil
}

// behind is the cursor behind a collection.
func (n names) behind(name doc.Collection) string {
	return n.cursor(base64.RawURLEncoding.EncodeToString([]byte(name)))
}

// ofCursor names the parameter after in the store's refusal of a position.
func ofCursor(err error) error {
	if doc.KindOf(err) == doc.InvalidCursor {
		return inParameter(err, "after")
	}
	return err
}

// appendNext writes the cursor of the next page, where there is one.
func appendNext(dst []byte, cursor string) []byte {
	if cursor == "" {
		return dst
	}
	return appendText(append(dst, `,"next":`...), cursor)
}
