package filter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/value"
)

// further reads the operators that look at more than a value: at kinds, arrays
// and texts.
func (p *parser) further(field Field, name string, v any, at *place, depth int) (Expr, error) {
	if field.Pseudo != "" && (name != "$prefix" || field.Pseudo != ID && field.Pseudo != Root) {
		return nil, invalid(at, "%s has no meaning for %s", name, field.Pseudo)
	}
	p.clause(at)
	switch name {
	case "$type":
		kinds, err := p.kinds(v, at)
		return Type{Field: field, Kinds: kinds}, err
	case "$size":
		length, err := size(v, at)
		return Size{Field: field, Length: length}, err
	case "$all":
		return p.allOperator(field, v, at, depth)
	case "$elemMatch":
		return p.elemMatch(field, v, at, depth)
	case "$prefix":
		text, ok := v.(string)
		if !ok {
			return nil, invalid(at, "$prefix takes a string")
		}
		if len(text) > MaxPrefixBytes {
			return nil, tooCostly(at, name, "bytes", MaxPrefixBytes, len(text))
		}
		return Prefix{Field: field, Text: text}, nil
	}
	return p.textOperator(field, v, at)
}

// size reads a whole number that is not negative. One that no array in memory
// could have is as good as the largest.
func size(v any, at *place) (int, error) {
	n, ok := v.(json.Number)
	text := string(n)
	fraction := strings.ContainsRune(text, '.') && !strings.Contains(text, "e+") || strings.Contains(text, "e-")
	if !ok || fraction || strings.HasPrefix(text, "-") {
		return 0, invalid(at, "$size takes a whole number from 0 on")
	}
	length, err := strconv.Atoi(text)
	if err != nil {
		const none = 1<<31 - 1
		return none, nil
	}
	return length, nil
}

// allOperator reads $all as MongoDB explains it: as the conjunction of equality
// with each value, or of several $elemMatch. Without values it holds nowhere.
func (p *parser) allOperator(field Field, v any, at *place, depth int) (Expr, error) {
	array, ok := v.([]any)
	if !ok {
		return nil, invalid(at, "$all takes an array of values, or of $elemMatch")
	}
	if len(array) == 0 {
		return Or{}, nil
	}
	parts := make([]Expr, len(array))
	ofElements := false
	for i, element := range array {
		place := at.at(i)
		object, _ := element.(map[string]any)
		inner, ok := object["$elemMatch"]
		ok = ok && len(object) == 1
		switch {
		case !ok && hasOperator(object):
			return nil, invalid(place, "of the operators only $elemMatch may stand in $all")
		case i > 0 && ok != ofElements:
			return nil, invalid(place, "$all takes values or $elemMatch, not both")
		}
		ofElements = ok
		var err error
		if ok {
			p.clause(place)
			parts[i], err = p.elemMatch(field, inner, place.under("$elemMatch"), depth)
		} else {
			parts[i], err = p.compare(field, Eq, element, place)
		}
		if err != nil {
			return nil, err
		}
	}
	return all(parts), nil
}

// elemMatch reads what one element has to meet: operators, which are about the
// element itself, or a filter about its members.
func (p *parser) elemMatch(field Field, v any, at *place, depth int) (Expr, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(at, "$elemMatch takes a filter for the elements, or an object of operators")
	}
	inside, above := p.inside, p.above
	p.inside, p.above = true, above.Join(field.Path)
	defer func() { p.inside, p.above = inside, above }()
	if isAboutValues(object) {
		p.level(depth+1, at)
		of, err := p.operators(Field{}, object, at, depth+1)
		return ElemMatch{Field: field, Of: of, Values: true}, err
	}
	of, err := p.filter(object, at, depth+1)
	return ElemMatch{Field: field, Of: of}, err
}

// isAboutValues reports whether one of the names is an operator of a field.
func isAboutValues(object map[string]any) bool {
	for name := range object {
		if isFieldOperator(name) {
			return true
		}
	}
	return false
}

func (p *parser) textOperator(field Field, v any, at *place) (Expr, error) {
	text, ok := v.(string)
	if !ok {
		return nil, invalid(at, "$text takes a string of words")
	}
	if path := p.above.Join(field.Path); !p.isText(path) {
		return nil, invalid(at, "%s is not declared as a path with full-text search", path)
	}
	if len(text) > MaxTextBytes {
		return nil, tooCostly(at, "$text", "bytes", MaxTextBytes, len(text))
	}
	words := slices.Sorted(Words(text))
	words = slices.Compact(words)
	switch {
	case len(words) == 0:
		return nil, invalid(at, "$text takes at least one word of letters or digits")
	case len(words) > MaxWords:
		return nil, tooCostly(at, "$text", "words", MaxWords, len(words))
	}
	return Text{Field: field, Words: words}, nil
}

// isText reports whether the path is declared. One with a number in it is not:
// it could mean a position, and texts are found by names.
func (p *parser) isText(path value.Path) bool {
	for _, s := range path.Segments() {
		if s.Index >= 0 {
			return false
		}
	}
	return slices.ContainsFunc(p.text, func(declared string) bool {
		d, err := value.ParsePath(declared)
		return err == nil && d.String() == path.String()
	})
}

// checkLength holds the path of a condition inside $elemMatch, that of the
// array included, to the limits of one path.
func (p *parser) checkLength(field Field, at *place) error {
	if !p.inside {
		return nil
	}
	path := p.above.Join(field.Path)
	if n := len(path.Segments()); n > value.MaxPathSegments {
		return tooCostly(at, "the path with that of its array", "steps", value.MaxPathSegments, n)
	}
	if n := len(path.String()); n > value.MaxPathBytes {
		return tooCostly(at, "the path with that of its array", "bytes", value.MaxPathBytes, n)
	}
	return nil
}
