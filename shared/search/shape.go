package search

import (
	"strconv"
	"strings"

	"holdfast/shared/value"
)

// shapes are the kinds of node that a path leads to.
type shapes uint16

// The kinds. An array adds shapeArray; what its elements are is added at the
// same path.
const (
	shapeNull shapes = 1 << iota
	shapeBool
	shapeNumber
	shapeString
	shapeObject
	shapeArray
	shapeNest // an array directly inside an array
	shapeFine // an instant finer than a millisecond
)

// shapeTags begin the terms of $shape: a tag, a colon and the field path. An
// array also adds its length, as "len:3:tags".
var shapeTags = [...]struct {
	kind shapes
	tag  string
}{
	{shapeNull, "null"}, {shapeBool, "bool"}, {shapeNumber, "num"}, {shapeString, "str"},
	{shapeObject, "obj"}, {shapeArray, "arr"}, {shapeNest, "nest"}, {shapeFine, "fine"},
}

// shapeTerm is the term of one kind at a path.
func shapeTerm(kind shapes, path string) string {
	for _, t := range shapeTags {
		if t.kind == kind {
			return t.tag + ":" + path
		}
	}
	return path
}

// presentTerms are the terms of which every path that leads to something has
// at least one.
func presentTerms(path string) []string {
	terms := make([]string, 0, 6)
	for _, t := range shapeTags[:6] {
		terms = append(terms, t.tag+":"+path)
	}
	return terms
}

// lengthTerm is the term of an array of a length.
func lengthTerm(length int, path string) string {
	return "len:" + strconv.Itoa(length) + ":" + path
}

// fromElement is what follows the path of an element in a path at or below it:
// "" for itself. An element names its shapes so, because there may be thousands
// of them at a long path.
func fromElement(path, element string) string {
	if element == "" {
		return path
	}
	return strings.TrimPrefix(path[len(element):], ".")
}

// appendShape writes the terms of all indexed nodes as a JSON array.
func (p *projector) appendShape(dst []byte) []byte {
	dst = append(dst, '[')
	dst = p.root.appendShape(dst, "")
	return append(dst, ']')
}

// appendShape writes the terms of n and below, their paths from the element at
// within on.
func (n *node) appendShape(dst []byte, within string) []byte {
	path := fromElement(n.path, within)
	add := func(term string) {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = value.AppendString(dst, term)
	}
	for _, t := range shapeTags {
		if n.shapes&t.kind != 0 {
			add(t.tag + ":" + path)
		}
	}
	for _, length := range n.lengths {
		add(lengthTerm(length, path))
	}
	for _, child := range n.sorted() {
		dst = child.appendShape(dst, within)
	}
	return dst
}
