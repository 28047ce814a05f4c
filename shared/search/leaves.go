package search

import (
	"maps"
	"slices"
	"strconv"

	"holdfast/shared/value"
)

// sorted are the indexed children in the order of their names.
func (n *node) sorted() []*node {
	children := make([]*node, 0, len(n.children))
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		if child := n.children[name]; child.indexed {
			children = append(children, child)
		}
	}
	return children
}

// appendTree writes the object of n: its typed leaves and its indexed children.
// A path through arrays is written once with all its values, as the index
// sees them anyway; only the elements of declared nested paths stay apart.
func (p *projector) appendTree(dst []byte, n *node) []byte {
	dst = append(dst, '{')
	dst = p.appendLeaves(dst, n)
	if n.isElement {
		dst = p.appendElementShape(dst, n)
	}
	for _, child := range n.sorted() {
		before := len(dst)
		if len(dst) > 0 && dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = value.AppendString(dst, child.name)
		dst = append(dst, ':')
		start := len(dst)
		if len(child.elements) > 0 {
			dst = p.appendElements(dst, child)
		} else {
			dst = p.appendTree(dst, child)
		}
		if len(dst) == start+2 { // {} or [] says nothing that $shape does not
			dst = dst[:before]
		}
	}
	return append(dst, '}')
}

// appendElements writes a declared nested path as an array: an object per
// element and, where there are scalars too, one with their leaves.
func (p *projector) appendElements(dst []byte, n *node) []byte {
	dst = append(dst, '[')
	for _, one := range n.elements {
		element := p.element(n, one)
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = p.appendTree(dst, element)
	}
	scalars := *n
	scalars.children, scalars.elements = nil, nil
	before := len(dst)
	dst = p.appendTree(append(dst, ','), &scalars)
	if len(dst) == before+len(",{}") {
		dst = dst[:before]
	}
	return append(dst, ']')
}

// element builds the tree of one element of the nested path at n, with the
// paths that are indexed in the whole document.
//
// The element says itself of which shapes its values are, so that conditions on
// one element are decided as those on a document. Its own shape is told only
// where it counts as an element.
func (p *projector) element(n *node, one nestedObject) *node {
	element := &node{name: n.name, path: n.path, indexed: true, isElement: true}
	if one.counts {
		element.shapes = shapeObject
	}
	p.inner = true
	p.gatherMembers(element, one.object, true)
	p.inner = false
	element.adopt(n)
	return element
}

// adopt marks the nodes below n as indexed where they are so below whole.
func (n *node) adopt(whole *node) {
	for name, child := range n.children {
		if same := whole.children[name]; same != nil && same.indexed {
			child.indexed = true
			child.adopt(same)
		}
	}
}

// appendLeaves writes the typed leaves of n, each a value or an array of them.
func (p *projector) appendLeaves(dst []byte, n *node) []byte {
	dst = appendLeaf(p, dst, n, leafString, n.texts, appendText)
	dst = appendLeaf(p, dst, n, leafNumber, n.numbers, appendDouble)
	dst = appendLeaf(p, dst, n, leafDecimal, n.decimals, appendText)
	dst = appendLeaf(p, dst, n, leafBool, n.bools, strconv.AppendBool)
	dst = appendLeaf(p, dst, n, leafDate, n.dates, appendMillis)
	slices.Sort(n.words)
	dst = appendLeaf(p, dst, n, leafText, slices.Compact(n.words), appendText)
	return appendLeaf(p, dst, n, leafKey, n.keys, appendText)
}

// appendElementShape writes the shapes of an element's values and its own.
func (p *projector) appendElementShape(dst []byte, n *node) []byte {
	if p.onlyKnown && !p.known[leafField(n.path, leafShape)] {
		p.leaveOut(n.path)
		return dst
	}
	dst = appendMember(dst, leafShape)
	dst = append(dst, '[')
	dst = n.appendShape(dst, n.path)
	return append(dst, ']')
}

func appendLeaf[T any](p *projector, dst []byte, n *node, leaf string, values []T, write func([]byte, T) []byte) []byte {
	if len(values) == 0 {
		return dst
	}
	if p.onlyKnown && !p.known[leafField(n.path, leaf)] {
		p.leaveOut(n.path)
		return dst
	}
	dst = appendMember(dst, leaf)
	if len(values) == 1 {
		return write(dst, values[0])
	}
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = write(dst, v)
	}
	return append(dst, ']')
}

// leafField is the full name of a leaf in the index.
func leafField(path, leaf string) string {
	return fieldTree + "." + path + "." + leaf
}

func appendText(dst []byte, s string) []byte { return value.AppendString(dst, s) }

func appendMillis(dst []byte, ms int64) []byte { return strconv.AppendInt(dst, ms, 10) }

// appendDouble writes large values with an exponent, so that OpenSearch never
// sees an integer that does not fit its integers.
func appendDouble(dst []byte, f float64) []byte {
	if f > -1e15 && f < 1e15 {
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64)
}
