package collection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// How much a definition may declare. A nested path makes an index document of
// every element, and OpenSearch's mapping has room for 100 of them.
const (
	MaxNested  = 50
	MaxText    = 100
	MaxIndexed = 100 // of include, and of exclude
)

// maxFaults bounds how many faults of a definition are told.
const maxFaults = 20

// Fault is one thing that is wrong with a definition.
type Fault struct {
	Pointer string `json:"pointer"` // RFC 6901; "" is the whole
	Detail  string `json:"detail"`
}

// ParseDefinition reads what a client declares of a collection: a value as
// value.Decode makes it, an object with the members
//
//	index    "own" or "shared"
//	nested   paths to arrays whose elements are matched one by one
//	text     paths with full-text search
//	indexed  {"include":[paths],"exclude":[paths]}: what of a document is indexed
//
// A path names members; arrays on the way are passed through, so lines.price and
// lines[].price are the same. Nested and text paths have no number in them,
// because in a filter it could mean a position; in indexed a number is the name
// of a member. Everything but index: shared gives the collection an index of its
// own.
//
// The error is of kind InvalidDefinition. Its member errors is a list of Fault,
// at most 20, and pointer the place of the first.
func ParseDefinition(name doc.Collection, v any) (Definition, error) {
	p := &definitionParser{}
	d := Definition{Name: name}
	object, ok := v.(map[string]any)
	if !ok {
		p.fault("", "a definition is an object with the members index, nested, text and indexed")
		return d, p.err()
	}
	p.only(object, "", "index", "nested", "text", "indexed")
	if given, has := object["index"]; has {
		switch given {
		case string(Own):
			d.Index = Own
		case string(Shared):
			d.Index = Shared
		default:
			p.fault("/index", "index is own or shared")
		}
	}
	d.Nested = p.paths(object, "", "nested", MaxNested, false)
	d.Text = p.paths(object, "", "text", MaxText, false)
	if given, has := object["indexed"]; has {
		indexed, ok := given.(map[string]any)
		if !ok {
			p.fault("/indexed", `indexed is an object such as {"exclude":["log"]}`)
		}
		p.only(indexed, "/indexed", "include", "exclude")
		d.Include = p.paths(indexed, "/indexed", "include", MaxIndexed, true)
		d.Exclude = p.paths(indexed, "/indexed", "exclude", MaxIndexed, true)
	}
	if d.Index == Shared && d.Form().needsOwn() {
		p.fault("/index", "a collection in the shared index declares neither nested nor text paths nor what is indexed; leave index out, or make it own")
	}
	if len(p.faults) == 0 { // so that every list is whole
		p.checkLeftOut(d)
	}
	return d, p.err()
}

// definitionParser collects faults.
type definitionParser struct {
	faults []Fault
}

func (p *definitionParser) fault(pointer, format string, args ...any) {
	p.faults = append(p.faults, Fault{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

func (p *definitionParser) err() error {
	if len(p.faults) == 0 {
		return nil
	}
	detail := p.faults[0].Detail
	if more := len(p.faults) - 1; more > 0 {
		detail = fmt.Sprintf("%s; and %d more", detail, more)
	}
	return doc.Errorf(doc.InvalidDefinition, "%s", detail).
		With("pointer", p.faults[0].Pointer).With("errors", p.faults[:min(len(p.faults), maxFaults)])
}

// only faults every member of an object but the named ones.
func (p *definitionParser) only(object map[string]any, pointer string, members ...string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(members, name) {
			p.fault(pointer+value.Pointer(name), "unknown member; known are %s", strings.Join(members, ", "))
		}
	}
}

// paths reads a list of distinct paths. An empty one is none.
func (p *definitionParser) paths(object map[string]any, pointer, name string, most int, numbers bool) []string {
	given, has := object[name]
	if !has {
		return nil
	}
	pointer += "/" + name
	list, ok := given.([]any)
	if !ok {
		p.fault(pointer, "%s is a list of paths", name)
		return nil
	}
	if len(list) > most {
		p.fault(pointer, "%s lists at most %d paths, not %d", name, most, len(list))
		return nil
	}
	var paths []string
	first := map[string]int{}
	for i, v := range list {
		at := pointer + "/" + strconv.Itoa(i)
		text, ok := v.(string)
		if !ok {
			p.fault(at, "a path is a string such as lines.price")
			continue
		}
		path, err := value.ParsePath(text)
		if err != nil {
			p.fault(at, "%s", detailOf(err))
			continue
		}
		if !numbers && slices.ContainsFunc(path.Segments(), func(s value.Segment) bool { return s.Index >= 0 }) {
			p.fault(at, "a path declared here has no number in it: in a filter that could mean a position")
			continue
		}
		if j, twice := first[path.String()]; twice {
			p.fault(at, "this is the same path as that at %s/%d", pointer, j)
			continue
		}
		first[path.String()] = i
		paths = append(paths, text)
	}
	return paths
}

// checkLeftOut faults what contradicts the choice of what is indexed.
func (p *definitionParser) checkLeftOut(d Definition) {
	chosen := NewSelection(d.Include, d.Exclude)
	check := func(pointer string, texts []string) {
		for i, text := range texts {
			if path, err := value.ParsePath(text); err == nil && !chosen.Indexed(path.Names()) {
				p.fault(pointer+"/"+strconv.Itoa(i), "%s is declared, but indexed leaves it out", text)
			}
		}
	}
	check("/nested", d.Nested)
	check("/text", d.Text)
	excluded := NewSelection(nil, d.Exclude)
	for i, text := range d.Include {
		if path, err := value.ParsePath(text); err == nil && !excluded.Indexed(path.Names()) {
			p.fault("/indexed/include/"+strconv.Itoa(i), "%s is included, but exclude leaves it out", text)
		}
	}
}

func detailOf(err error) string {
	var e *doc.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}
