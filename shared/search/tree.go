package search

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// The budgets of one document. What is beyond them is not indexed but listed
// in $partial, and so still found by looking at the document.
const (
	maxPaths     = 1200  // distinct paths; each makes three to five fields in the mapping, which has 6,000
	maxPathBytes = 1024  // of one path as a field name
	maxLevels    = 40    // steps of a path; documents that are stored have fewer
	maxElements  = 5000  // objects at declared nested paths, each an index document of its own; OpenSearch takes 10,000
	maxNodes     = 12000 // paths looked at at all, so that a document of names only stays small in memory
)

// The typed leaves.
const (
	leafString  = "$str"
	leafNumber  = "$num"
	leafDecimal = "$dec"
	leafBool    = "$bool"
	leafDate    = "$date"
	leafKey     = "$key"
	leafText    = "$text"
	leafShape   = "$shape" // of an element of a declared nested path only
)

// node gathers what a document has at one path, through all arrays on the way.
type node struct {
	name     string // as a field name
	path     string // all names from the root joined by dots
	children map[string]*node
	indexed  bool // within the budgets
	unwanted bool // left out by the definition, with everything below
	shapes   shapes
	lengths  []int // of the arrays here

	texts, decimals, keys []string
	numbers               []float64
	bools                 []bool
	dates                 []int64 // milliseconds since 1970, rounded down
	words                 []string

	elements  []nestedObject // the objects at a declared nested path
	isElement bool           // of one
}

// nestedObject is an object at a declared nested path.
type nestedObject struct {
	object map[string]any
	counts bool // stands in an array that a path leads to: not alone, nor in an array inside an array
}

// projector builds one index document.
type projector struct {
	nested, text map[string]bool
	chosen       *collection.Selection
	known        Fields
	onlyKnown    bool

	root     *node
	nodes    int
	elements int  // objects at all declared nested paths
	inner    bool // gathering one element of a nested path, which is counted already
	partial  []string
	unwanted []string // what the definition leaves out of this document
}

// plant builds the tree and decides which paths are indexed.
func (p *projector) plant(data map[string]any) {
	p.root = &node{}
	p.gatherMembers(p.root, data, false)
	p.choose(p.root, nil)
	p.allot()
}

// leaveOut lists a path whose values are not all in the index.
func (p *projector) leaveOut(path string) {
	if !p.inner {
		p.partial = append(p.partial, path)
	}
}

// gather adds what v is to n, which v stands at within so many arrays. many
// tells that there may be further values at the same path, because v stands
// below an array: then null, objects and empty arrays need a key to be sorted
// by, while alone they sort as missing does.
func (p *projector) gather(n *node, v any, arrays int, many bool) {
	switch v := v.(type) {
	case nil:
		n.shapes |= shapeNull
		n.addNull(many)
	case bool:
		n.shapes |= shapeBool
		n.bools = append(n.bools, v)
		n.keys = append(n.keys, orderKey(v))
	case json.Number:
		n.shapes |= shapeNumber
		n.addNumber(v)
		p.addWords(n, v)
	case string:
		n.shapes |= shapeString
		p.addString(n, v)
	case map[string]any:
		n.shapes |= shapeObject
		n.addNull(many)
		if p.nested[n.path] {
			n.elements = append(n.elements, nestedObject{object: v, counts: arrays == 1})
			if !p.inner {
				p.elements++
			}
		}
		p.gatherMembers(n, v, many)
	case []any:
		n.shapes |= shapeArray
		if !slices.Contains(n.lengths, len(v)) {
			n.lengths = append(n.lengths, len(v))
		}
		if len(v) == 0 {
			n.addNull(many)
		}
		for _, element := range v {
			if _, ok := element.([]any); ok {
				n.shapes |= shapeNest
			}
			p.gather(n, element, arrays+1, true)
		}
	}
}

// gatherMembers adds the members of an object at n, in the order of their
// names, so that the budgets cut every document at the same place each time.
func (p *projector) gatherMembers(n *node, object map[string]any, many bool) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		child := n.children[name]
		if child == nil {
			if child = p.grow(n, name); child == nil {
				p.leaveOut(n.path)
				continue
			}
		}
		p.gather(child, object[name], 0, many)
	}
}

// grow makes the child of n for a member name, or nil where that is beyond the
// budgets that do not depend on the rest of the document.
func (p *projector) grow(n *node, name string) *node {
	path := make([]byte, 0, len(n.path)+len(name)+3)
	if n != p.root {
		path = append(append(path, n.path...), '.')
	}
	start := len(path)
	path = appendName(path, name)
	if len(path) > maxPathBytes || strings.Count(string(path), ".") >= maxLevels || p.nodes >= maxNodes && !p.inner {
		return nil
	}
	if !p.inner {
		p.nodes++
	}
	text := string(path)
	child := &node{name: text[start:], path: text}
	if n.children == nil {
		n.children = map[string]*node{}
	}
	n.children[name] = child
	return child
}

func (n *node) addNull(many bool) {
	if many {
		n.keys = append(n.keys, nullKey)
	}
}

func (n *node) addNumber(v json.Number) {
	double, exact := nearestDouble(v)
	n.numbers = append(n.numbers, double)
	if !exact {
		n.decimals = append(n.decimals, string(v))
	}
	n.keys = append(n.keys, orderKey(v))
}

func (p *projector) addString(n *node, s string) {
	if kept, whole := keep(s); whole {
		n.texts = append(n.texts, kept)
	} else {
		p.leaveOut(n.path)
	}
	n.keys = append(n.keys, orderKey(s))
	p.addWords(n, s)
	if t, ok := value.ParseInstant(s); ok {
		n.dates = append(n.dates, t.UnixMilli())
		if t.Nanosecond()%int(time.Millisecond) != 0 {
			n.shapes |= shapeFine
		}
	}
}

// addWords adds the words of a text at a declared full-text path.
func (p *projector) addWords(n *node, v any) {
	if !p.text[n.path] {
		return
	}
	for word := range filter.WordsOf(v) {
		if _, whole := keep(word); !whole {
			p.leaveOut(n.path)
			continue
		}
		n.words = append(n.words, word)
	}
}

// nearestDouble is the double next to v and whether its shortest decimal is v
// itself, so that no other number that is stored in full has that double.
func nearestDouble(v json.Number) (double float64, exact bool) {
	double, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return double, false
	}
	shortest, err := value.Number(strconv.FormatFloat(double, 'e', -1, 64))
	return double, err == nil && shortest == v
}

// allot gives the budget of paths out from the top of the document downwards
// and, on one level, to small objects before large ones, so that an object that
// is used as a table of thousands of names does not take it from its neighbours.
func (p *projector) allot() {
	left := maxPaths
	level := []*node{p.root}
	for len(level) > 0 {
		var next []*node
		slices.SortStableFunc(level, func(a, b *node) int { return cmp.Compare(len(a.children), len(b.children)) })
		for _, n := range level {
			n.indexed = true
			for _, name := range slices.Sorted(maps.Keys(n.children)) {
				child := n.children[name]
				if child.unwanted {
					continue
				}
				tooMany := p.elements > maxElements && p.nested[child.path]
				if left == 0 || tooMany {
					p.leaveOut(child.path)
					continue
				}
				left--
				next = append(next, child)
			}
		}
		level = next
	}
}
