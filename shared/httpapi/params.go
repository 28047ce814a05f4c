package httpapi

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// query holds the parameters of a query string, each at most once.
type query map[string]string

// parseQuery reads a query string: + is a space, %2B a plus. A parameter that is
// badly encoded or comes twice is refused, with its name in the member parameter.
func parseQuery(raw string) (query, error) {
	q := query{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil || !utf8.ValidString(name) {
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "the name of a query parameter is not percent-encoded UTF-8"),
				strings.ToValidUTF8(rawName, "\uFFFD"))
		}
		text, err := url.QueryUnescape(rawValue)
		if err != nil || !utf8.ValidString(text) && name != "id" { // of an id, its own rules speak
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "the value of this parameter is not percent-encoded UTF-8"), name)
		}
		if _, twice := q[name]; twice {
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "this parameter is given more than once"), name)
		}
		q[name] = text
	}
	return q, nil
}

// only refuses every parameter but the named ones.
func (q query) only(names ...string) error {
	unknown := ""
	for name := range q {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known && (unknown == "" || name < unknown) {
			unknown = name
		}
	}
	if unknown == "" && !q.has("") {
		return nil
	}
	if len(names) == 0 {
		return inParameter(doc.Errorf(doc.InvalidRequest, "this route takes no query parameters"), unknown)
	}
	return inParameter(doc.Errorf(doc.InvalidRequest, "unknown parameter; this route takes %s", strings.Join(names, ", ")), unknown)
}

func (q query) has(name string) bool {
	_, ok := q[name]
	return ok
}

// said is what a parameter says, so that one which is not given differs from one
// that is empty.
func (q query) said(name string) string {
	text, given := q[name]
	if !given {
		return ""
	}
	return "=" + text
}

// limit reads the parameter limit, a whole number from 1 to most.
func (q query) limit(standard, most int) (int, error) { return q.number("limit", standard, most) }

// number reads a parameter that is a whole number from 1 to most.
func (q query) number(name string, standard, most int) (int, error) {
	text, given := q[name]
	if !given {
		return standard, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 1 || n > uint64(most) || text[0] == '0' {
		return 0, inParameter(doc.Errorf(doc.InvalidRequest, "%s is a whole number from 1 to %d", name, most).With("limit", most), name)
	}
	return int(n), nil
}

// paths reads a parameter that lists paths inside a document, joined by commas.
// A name with a comma in it cannot be asked for.
func (q query) paths(name string) (paths []value.Path, given bool, err error) {
	text, given := q[name]
	if !given {
		return nil, false, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		p, err := value.ParsePath(part)
		if err != nil {
			return nil, false, inParameter(err, name)
		}
		paths = append(paths, p)
	}
	return paths, true, nil
}
