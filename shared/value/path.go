package value

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/shared/doc"
)

// Limits of a path, chosen by this package: no path of a stored document has
// more steps than it has levels, and the length keeps queries small.
const (
	MaxPathBytes    = 512
	MaxPathSegments = MaxDepth
)

// Path leads to values inside a document. Values come from ParsePath; the zero
// Path leads to the document itself.
type Path struct {
	segments []Segment
}

// Segment is one step of a path.
type Segment struct {
	Name  string // the name of a member
	Index int    // the position in an array that the name also is, or -1
}

// ParsePath reads a path in one of two notations.
//
// Dotted: names joined by dots, array positions as numbers, such as
// lines.0.price. A name may be followed by [], for each element of the array
// there: lines[].price is lines.price, which already reaches every element. A
// position does not follow [], nor a second []. Names that are empty, contain
// a dot or a bracket, or begin with $ need the other notation.
//
// Pointer: a path that begins with / is an RFC 6901 pointer, in which every
// name can be said: /a.b/$c, /a~1b, /lines/0/price. It reaches through arrays
// as the dotted notation does.
//
// The error is of kind InvalidRequest, with limit and actual where the path is
// longer than MaxPathBytes or has more than MaxPathSegments steps.
func ParsePath(s string) (Path, error) {
	switch {
	case s == "":
		return Path{}, doc.Errorf(doc.InvalidRequest, "a path is not empty")
	case len(s) > MaxPathBytes:
		return Path{}, doc.Errorf(doc.InvalidRequest, "a path has at most %d bytes", MaxPathBytes).
			With("limit", MaxPathBytes).With("actual", len(s))
	case !utf8.ValidString(s):
		return Path{}, doc.Errorf(doc.InvalidRequest, "a path is valid UTF-8")
	}
	var names []string
	var err error
	if s[0] == '/' {
		names, err = pointerNames(s)
	} else {
		names, err = dottedNames(s)
	}
	if err != nil {
		return Path{}, err
	}
	if len(names) > MaxPathSegments {
		return Path{}, doc.Errorf(doc.InvalidRequest, "a path has at most %d steps", MaxPathSegments).
			With("limit", MaxPathSegments).With("actual", len(names))
	}
	return PathOf(names...), nil
}

// PathOf is the path of these names and positions.
func PathOf(names ...string) Path {
	segments := make([]Segment, len(names))
	for i, name := range names {
		segments[i] = Segment{Name: name, Index: position(name)}
	}
	return Path{segments}
}

// pointerNames undoes the escapes of RFC 6901, of which it allows no others.
func pointerNames(s string) ([]string, error) {
	names := strings.Split(s[1:], "/")
	for i, name := range names {
		for j := range len(name) {
			if name[j] == '~' && (j+1 == len(name) || name[j+1] != '0' && name[j+1] != '1') {
				return nil, doc.Errorf(doc.InvalidRequest, "in a pointer ~ is written ~0, and / inside a name ~1")
			}
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names, nil
}

func dottedNames(s string) ([]string, error) {
	names := strings.Split(s, ".")
	each := false // the step before ended in []
	for i, name := range names {
		wasEach := each
		name, each = strings.CutSuffix(name, "[]")
		switch {
		case name == "":
			return nil, doc.Errorf(doc.InvalidRequest, "a path has no empty name; an empty name is written as a pointer, such as /a//b")
		case strings.ContainsAny(name, "[]"):
			return nil, doc.Errorf(doc.InvalidRequest, "only [] may follow a name, and only once; a position is a step of its own, such as a.0, and a name with brackets is written as a pointer, such as /a[0]")
		case name[0] == '$':
			return nil, doc.Errorf(doc.InvalidRequest, "a name that begins with $ is written as a pointer, such as /%s", name)
		case wasEach && position(name) >= 0:
			return nil, doc.Errorf(doc.InvalidRequest, "a position does not follow []")
		}
		names[i] = name
	}
	return names, nil
}

// position is the array position that a name is, or -1: digits without a
// leading zero, as in RFC 6901.
func position(name string) int {
	const mostDigits = 7 // an item of 400 KB holds no longer array
	if name == "" || len(name) > mostDigits || name[0] == '0' && name != "0" {
		return -1
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		return -1
	}
	return n
}

// Join is the path that goes on with the steps of another.
func (p Path) Join(q Path) Path {
	return Path{append(p.segments[:len(p.segments):len(p.segments)], q.segments...)}
}

// IsWhole reports whether the path has no steps, so that it leads to what it is
// applied to.
func (p Path) IsWhole() bool { return len(p.segments) == 0 }

// Segments are the steps of the path. The slice must not be changed.
func (p Path) Segments() []Segment { return p.segments }

// Names are the names of the steps, in a new slice.
func (p Path) Names() []string {
	names := make([]string, len(p.segments))
	for i, s := range p.segments {
		names[i] = s.Name
	}
	return names
}

// String is a text from which ParsePath makes the same path: dotted where that
// is possible, else a pointer. Equal paths have equal texts.
func (p Path) String() string {
	names := p.Names()
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, ".[]") || name[0] == '$' {
			return Pointer(names...)
		}
	}
	if len(names) > 0 && names[0][0] == '/' {
		return Pointer(names...)
	}
	return strings.Join(names, ".")
}

// Reached is one place to which a path leads.
type Reached struct {
	Value   any  // what is there
	Missing bool // nothing is there
	Whole   bool // Value was taken from an array by its position: if it is an array, it stands for itself only
}

// Visit calls visit for every place in v that the path leads to, in order,
// until visit returns true; it reports whether that happened.
//
// Arrays are passed through as MongoDB passes through them. A name that meets
// an array goes to each element that is an object; elements that are scalars
// or arrays are no places. A number that meets an array goes to the element at
// that position, and is tried as a name on the elements that are objects too.
// Where an object has no such member, or a scalar stands in the way, the place
// is there but Missing; an array without objects has no place at all, which is
// the difference that a filter for null sees. A path that ends at an array
// gives the array once: looking at its elements as well is the visitor's
// business, unless Whole says that MongoDB does not.
func (p Path) Visit(v any, visit func(Reached) bool) bool {
	return descend(v, p.segments, Reached{Value: v}, visit)
}

// descend goes on from v with the remaining steps; here is v as a place, for
// when there are none.
func descend(v any, steps []Segment, here Reached, visit func(Reached) bool) bool {
	if len(steps) == 0 {
		return visit(here)
	}
	switch v := v.(type) {
	case map[string]any:
		member, ok := v[steps[0].Name]
		if !ok {
			return visit(Reached{Missing: true})
		}
		return descend(member, steps[1:], Reached{Value: member}, visit)
	case []any:
		return descendArray(v, steps, visit)
	}
	return visit(Reached{Missing: true})
}

func descendArray(array []any, steps []Segment, visit func(Reached) bool) bool {
	for i, element := range array {
		if object, ok := element.(map[string]any); ok {
			if descend(object, steps, Reached{}, visit) {
				return true
			}
		}
		if steps[0].Index != i {
			continue
		}
		if len(steps) == 1 {
			if visit(Reached{Value: element, Whole: true}) {
				return true
			}
			continue
		}
		// Below a scalar at a position there is no place, not even a missing one.
		switch element.(type) {
		case map[string]any, []any:
			if descend(element, steps[1:], Reached{}, visit) {
				return true
			}
		}
	}
	return false
}

// Values are the values that the path reaches in v, as Visit visits them,
// without the missing ones. An array at the end is one value.
func (p Path) Values(v any) []any {
	var values []any
	p.Visit(v, func(r Reached) bool {
		if !r.Missing {
			values = append(values, r.Value)
		}
		return false
	})
	return values
}
