package filter

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// The limits of one filter unless ParseOptions say otherwise. They are this
// package's choice, well below what OpenSearch refuses (1,024 clauses in a
// boolean query, 65,536 terms), so that a refusal is ours and names the limit.
const (
	MaxDepth       = 16   // levels of $and, $or, $nor, $not and $elemMatch, the filter itself counting as one
	MaxClauses     = 256  // conditions; an empty filter object counts as one
	MaxTerms       = 1024 // values of one $in or $nin
	MaxPrefixBytes = 500  // of the text of one $prefix
	MaxTextBytes   = 1000 // of the text of one $text
	MaxWords       = 32   // different words of one $text
)

// ParseOptions say where the filter stands in the request and what it may cost.
type ParseOptions struct {
	Pointer    string   // RFC 6901 pointer to the filter, the beginning of every error's pointer
	Text       []string // the paths with full-text search, on which alone $text is allowed
	MaxDepth   int      // 0: the constant of the same name, likewise below
	MaxClauses int
	MaxTerms   int
}

// Parse reads a filter from a decoded JSON value.
//
// Every error has the member pointer. It is of kind InvalidQuery where the
// filter is wrong, and of kind QueryTooCostly, with limit and actual, where it
// is larger than the options or the limits of paths allow.
func Parse(v any, opts ParseOptions) (Expr, error) {
	p := parser{
		maxDepth:   orDefault(opts.MaxDepth, MaxDepth),
		maxClauses: orDefault(opts.MaxClauses, MaxClauses),
		maxTerms:   orDefault(opts.MaxTerms, MaxTerms),
		text:       opts.Text,
	}
	top := &place{step: opts.Pointer}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(top, "a filter is an object")
	}
	e, err := p.filter(object, top, 1)
	if err != nil {
		return nil, err
	}
	if p.tooDeep != nil {
		return nil, tooCostly(p.tooDeep, "the filter", "levels", p.maxDepth, p.depth)
	}
	if p.tooMany != nil {
		return nil, tooCostly(p.tooMany, "the filter", "conditions", p.maxClauses, p.clauses)
	}
	return e, nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// parser counts while it reads. A filter that is too large is read to its end
// all the same, which costs no more than decoding it did, so that the refusal
// can tell how large it is.
type parser struct {
	maxDepth, maxClauses, maxTerms int
	text                           []string

	inside bool       // an $elemMatch, at
	above  value.Path // the path of its array

	depth, clauses   int
	tooDeep, tooMany *place // where the limit was first passed
}

func (p *parser) level(depth int, at *place) {
	p.depth = max(p.depth, depth)
	if depth > p.maxDepth && p.tooDeep == nil {
		p.tooDeep = at
	}
}

func (p *parser) clause(at *place) {
	p.clauses++
	if p.clauses > p.maxClauses && p.tooMany == nil {
		p.tooMany = at
	}
}

// filter reads an object of conditions, all of which must hold. They are read
// in the order of their names, so that one filter makes one tree.
func (p *parser) filter(object map[string]any, at *place, depth int) (Expr, error) {
	p.level(depth, at)
	if len(object) == 0 {
		p.clause(at)
		return And{}, nil
	}
	parts := make([]Expr, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		part, err := p.member(name, object[name], at.under(name), depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return all(parts), nil
}

func (p *parser) member(name string, v any, at *place, depth int) (Expr, error) {
	switch name {
	case "$and":
		parts, err := p.list(name, v, at, depth)
		return all(parts), err
	case "$or":
		parts, err := p.list(name, v, at, depth)
		return either(parts), err
	case "$nor":
		parts, err := p.list(name, v, at, depth)
		return Not{either(parts)}, err
	case "$not":
		return nil, invalid(at, "$not belongs to a field, such as {\"a\":{\"$not\":{\"$gt\":1}}}; around whole filters use $nor")
	}
	if strings.HasPrefix(name, "$") && !IsPseudo(name) {
		if isFieldOperator(name) {
			return nil, invalid(at, "%s belongs to a field, such as {\"a\":{%q:…}}", name, name)
		}
		return nil, invalid(at, "there is no operator or pseudo-field %s; a name that begins with $ is written as a pointer, such as /%s", name, name)
	}
	if IsPseudo(name) && p.inside {
		return nil, invalid(at, "%s is of the whole document, not of an element; a member of this name is written as a pointer, such as /%s", name, name)
	}
	field, err := ParseField(name)
	if err != nil {
		return nil, badPath(at, err)
	}
	if err := p.checkLength(field, at); err != nil {
		return nil, err
	}
	return p.condition(field, v, at, depth)
}

// list reads the operand of $and, $or and $nor.
func (p *parser) list(name string, v any, at *place, depth int) ([]Expr, error) {
	array, ok := v.([]any)
	if !ok || len(array) == 0 {
		return nil, invalid(at, "%s takes an array of at least one filter", name)
	}
	parts := make([]Expr, 0, len(array))
	for i, element := range array {
		place := at.at(i)
		object, ok := element.(map[string]any)
		if !ok {
			return nil, invalid(place, "%s takes filters, which are objects", name)
		}
		part, err := p.filter(object, place, depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// condition reads what is demanded of a field: operators, or the value that it
// equals. An object is the former where one of its names begins with $.
func (p *parser) condition(field Field, v any, at *place, depth int) (Expr, error) {
	if object, ok := v.(map[string]any); ok && hasOperator(object) {
		return p.operators(field, object, at, depth)
	}
	return p.compare(field, Eq, v, at)
}

// operators reads an object of operators, all of which must hold, though
// different elements of an array may meet them.
func (p *parser) operators(field Field, object map[string]any, at *place, depth int) (Expr, error) {
	parts := make([]Expr, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		part, err := p.operator(field, name, object[name], at.under(name), depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return all(parts), nil
}

// isFieldOperator reports whether operator knows the name.
func isFieldOperator(name string) bool {
	switch name {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not",
		"$type", "$size", "$all", "$elemMatch", "$prefix", "$text":
		return true
	}
	return false
}

func (p *parser) operator(field Field, name string, v any, at *place, depth int) (Expr, error) {
	switch name {
	case "$eq", "$gt", "$gte", "$lt", "$lte":
		return p.compare(field, Op(name), v, at)
	case "$ne":
		e, err := p.compare(field, Eq, v, at)
		return Not{e}, err
	case "$in":
		return p.in(field, name, v, at)
	case "$nin":
		e, err := p.in(field, name, v, at)
		return Not{e}, err
	case "$exists":
		want, ok := v.(bool)
		if !ok {
			return nil, invalid(at, "$exists takes true or false")
		}
		p.clause(at)
		return Exists{Field: field, Want: want}, nil
	case "$type", "$size", "$all", "$elemMatch", "$prefix", "$text":
		return p.further(field, name, v, at, depth)
	case "$not":
		object, ok := v.(map[string]any)
		if !ok || !hasOperator(object) {
			return nil, invalid(at, "$not takes an object of operators; for the opposite of equality use $ne")
		}
		p.level(depth+1, at)
		e, err := p.operators(field, object, at, depth+1)
		return Not{e}, err
	case "$and", "$or", "$nor":
		return nil, invalid(at, "%s stands around filters, not inside a field", name)
	}
	if !strings.HasPrefix(name, "$") {
		return nil, invalid(at, "operators and other names do not mix in one object")
	}
	return nil, invalid(at, "there is no operator %s", name)
}

func (p *parser) compare(field Field, op Op, v any, at *place) (Expr, error) {
	p.clause(at)
	c := Compare{Field: field, Op: op, Value: v}
	if field.Pseudo != "" {
		if err := checkPseudo(field.Pseudo, v, at); err != nil {
			return nil, err
		}
	}
	switch v := v.(type) {
	case []any, map[string]any:
		if op != Eq {
			return nil, invalid(at, "%s compares numbers, strings, booleans and null only", op)
		}
	case string:
		if isInstantField(field) || op != Eq && field.Pseudo == "" {
			c.Instant, c.IsInstant = value.ParseInstant(v)
		}
	}
	return c, nil
}

func (p *parser) in(field Field, name string, v any, at *place) (Expr, error) {
	p.clause(at)
	array, ok := v.([]any)
	if !ok {
		return nil, invalid(at, "%s takes an array of values", name)
	}
	if len(array) > p.maxTerms {
		return nil, tooCostly(at, name, "values", p.maxTerms, len(array))
	}
	for i, element := range array {
		place := at.at(i)
		if object, ok := element.(map[string]any); ok && hasOperator(object) {
			return nil, invalid(place, "%s takes values; operators have no place in it", name)
		}
		if field.Pseudo != "" {
			if err := checkPseudo(field.Pseudo, element, place); err != nil {
				return nil, err
			}
		}
	}
	return NewIn(field, array), nil
}

// checkPseudo refuses an operand that no value of the pseudo-field can equal by
// its type: that is a mistake, not a question.
func checkPseudo(name string, v any, at *place) error {
	switch name {
	case ID, Root:
		if _, ok := v.(string); !ok {
			return invalid(at, "%s is compared with a string", name)
		}
	case Version:
		if _, ok := v.(json.Number); !ok {
			return invalid(at, "%s is compared with a number", name)
		}
	case CreatedAt, UpdatedAt:
		text, ok := v.(string)
		if ok {
			_, ok = value.ParseInstant(text)
		}
		if !ok {
			return invalid(at, "%s is compared with an RFC 3339 instant, such as 2026-01-31T10:20:30Z", name)
		}
	}
	return nil
}

func isInstantField(f Field) bool { return f.Pseudo == CreatedAt || f.Pseudo == UpdatedAt }

func hasOperator(object map[string]any) bool {
	for name := range object {
		if strings.HasPrefix(name, "$") {
			return true
		}
	}
	return false
}

// all is the conjunction of the parts, which for one is itself.
func all(parts []Expr) Expr {
	if len(parts) == 1 {
		return parts[0]
	}
	return And{parts}
}

func either(parts []Expr) Expr {
	if len(parts) == 1 {
		return parts[0]
	}
	return Or{parts}
}

// place is a position in the filter, written as a pointer only when needed.
type place struct {
	above *place
	step  string // of the topmost: the pointer to the filter
}

func (p *place) under(step string) *place { return &place{above: p, step: step} }

func (p *place) at(i int) *place { return p.under(strconv.Itoa(i)) }

func (p *place) pointer() string {
	if p.above == nil {
		return p.step
	}
	return p.above.pointer() + value.Pointer(p.step)
}

func invalid(at *place, format string, args ...any) *doc.Error {
	return doc.Errorf(doc.InvalidQuery, format, args...).With("pointer", at.pointer())
}

func tooCostly(at *place, what, unit string, limit, actual int) error {
	return doc.Errorf(doc.QueryTooCostly, "%s has %d %s; at most %d are allowed", what, actual, unit, limit).
		With("pointer", at.pointer()).With("limit", limit).With("actual", actual)
}

// badPath makes a query's error of one about a path: a path that is too long
// costs too much, any other is wrong.
func badPath(at *place, err error) error {
	var e *doc.Error
	if !errors.As(err, &e) {
		return invalid(at, "this is not a path").Because(err)
	}
	kind := doc.InvalidQuery
	if _, ok := e.Members["limit"]; ok {
		kind = doc.QueryTooCostly
	}
	refusal := doc.Errorf(kind, "%s", e.Detail).With("pointer", at.pointer())
	for name, member := range e.Members {
		refusal.With(name, member)
	}
	return refusal
}
