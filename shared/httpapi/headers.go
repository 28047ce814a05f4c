package httpapi

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"holdfast/shared/doc"
)

// MaxBody is the longest request body in bytes: what AWS Lambda takes as the
// payload of one call (6 MB, AWS Lambda Developer Guide, "Lambda quotas"), in
// which the body travels. The gateway's own limit of 10 MB lies above it.
const MaxBody = 6 << 20

// checkBody applies what holds for the body of any request.
func checkBody(r *Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		if len(r.Body) > 0 {
			return doc.Errorf(doc.InvalidRequest, "%s takes no body", r.Method)
		}
	}
	if len(r.Body) > MaxBody {
		return doc.Errorf(doc.RequestTooLarge, "a request body has at most %d bytes", MaxBody).
			With("limit", MaxBody).With("actual", len(r.Body))
	}
	return nil
}

// wantMediaType refuses a body of another media type. A body without any
// Content-Type is taken for what the route expects. Parameters do not matter,
// but text in another encoding than UTF-8 is refused.
func wantMediaType(h http.Header, want string) error {
	refuse := func(format string, args ...any) error {
		return doc.Errorf(doc.UnsupportedMediaType, format, args...).With(memberAccept, want)
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refuse("bodies are taken as they are, without a content encoding")
	}
	values := h.Values("Content-Type")
	if len(values) == 0 {
		return nil
	}
	got, params, err := mime.ParseMediaType(strings.Join(values, ", "))
	if err != nil || got != want {
		return refuse("this route takes %s", want)
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return refuse("bodies are UTF-8")
	}
	return nil
}

// tags are the entity tags of an If-Match or If-None-Match header.
type tags struct {
	any      bool // "*"
	versions []doc.Version
	foreign  bool   // there are tags that can be no version of ours: weak ones and other texts
	text     string // the header as it came
}

// matches reports whether a document that stands at version is meant. Weak and
// foreign tags never match.
func (t tags) matches(version doc.Version) bool {
	if t.any {
		return true
	}
	for _, v := range t.versions {
		if v == version {
			return true
		}
	}
	return false
}

// parseTags reads a header of entity tags, RFC 9110 section 8.8.3. ok is false
// when there is no such header.
func parseTags(h http.Header, name string) (t tags, ok bool, err error) {
	values := h.Values(name)
	if len(values) == 0 {
		return tags{}, false, nil
	}
	malformed := func() (tags, bool, error) {
		return tags{}, false, inParameter(doc.Errorf(doc.InvalidRequest,
			`%s is * or a list of entity tags such as "1796029203123456"`, name), name)
	}
	t.text = strings.TrimSpace(strings.Join(values, ", "))
	if t.text == "*" {
		t.any = true
		return t, true, nil
	}
	rest, found := t.text, false
	for {
		rest = strings.TrimLeft(rest, " \t,") // a list may have empty elements
		if rest == "" {
			break
		}
		found = true
		strong, weak := strings.CutPrefix(rest, "W/")
		opaque, after, closed := cutQuoted(strong)
		if !closed {
			return malformed()
		}
		if v, isVersion := doc.ParseVersion(opaque); isVersion && !weak {
			t.versions = append(t.versions, v)
		} else {
			t.foreign = true
		}
		rest = strings.TrimLeft(after, " \t")
		if rest != "" && rest[0] != ',' {
			return malformed()
		}
	}
	if !found {
		return malformed()
	}
	return t, true, nil
}

// cutQuoted cuts the opaque tag at the beginning of s.
func cutQuoted(s string) (opaque, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	for i := 1; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"':
			return s[1:i], s[i+1:], true
		case b <= 0x20 || b == 0x7f:
			return "", "", false
		}
	}
	return "", "", false
}

// neverMatches stands for a list of tags none of which can be a version: no
// document has it.
const neverMatches doc.Version = -1

// demand is the condition of a write with what its headers said.
type demand struct {
	doc.Condition
	said string // the text of an If-Match that names tags which are no versions, else ""
}

// readDemand is what the condition headers of a read of one thing say.
type readDemand struct {
	match, none       tags
	hasMatch, hasNone bool
}

// readCondition reads the condition headers of a read. If-Modified-Since is
// passed over, as RFC 9110 allows: its seconds are too coarse to say that
// something has not changed.
func readCondition(h http.Header) (c readDemand, err error) {
	if err := refuseHeaders(h, "If-Unmodified-Since"); err != nil {
		return c, err
	}
	if c.match, c.hasMatch, err = parseTags(h, "If-Match"); err != nil {
		return c, err
	}
	c.none, c.hasNone, err = parseTags(h, "If-None-Match")
	return c, err
}

// check refuses what stands at another version than If-Match names; detail says
// what that is.
func (c readDemand) check(version doc.Version, detail string) error {
	if c.hasMatch && !c.match.matches(version) {
		return doc.Errorf(doc.VersionConflict, "%s", detail).With("expected", c.match.expected()).With("actual", version)
	}
	return nil
}

// reply is the answer with a body, or that the client has it already.
func (c readDemand) reply(version doc.Version, body func() []byte) *Response {
	var res *Response
	if c.hasNone && c.none.matches(version) {
		res = replyEmpty(http.StatusNotModified)
		res.Header.Set("Cache-Control", "no-cache")
	} else {
		res = reply(http.StatusOK, typeJSON, body())
	}
	res.Header.Set("ETag", etag(version))
	return res
}

// writeCondition reads the condition headers of a write. createOnly is whether
// the method can be asked to create only (If-None-Match: *).
func writeCondition(h http.Header, createOnly bool) (demand, error) {
	if err := refuseHeaders(h, "If-Unmodified-Since", "Content-Range"); err != nil {
		return demand{}, err
	}
	match, hasMatch, err := parseTags(h, "If-Match")
	if err != nil {
		return demand{}, err
	}
	none, hasNone, err := parseTags(h, "If-None-Match")
	if err != nil {
		return demand{}, err
	}
	var d demand
	switch {
	case hasMatch && hasNone:
		return demand{}, inParameter(doc.Errorf(doc.InvalidRequest, "If-Match and If-None-Match exclude each other"), "If-None-Match")
	case hasNone && !createOnly:
		return demand{}, inParameter(doc.Errorf(doc.InvalidRequest, "this method takes no If-None-Match"), "If-None-Match")
	case hasNone && !none.any:
		return demand{}, inParameter(doc.Errorf(doc.InvalidRequest, "a write takes If-None-Match: * only"), "If-None-Match")
	case hasNone:
		d.Absent = true
	case hasMatch:
		d.Exists = true
		d.AnyOf = match.versions
		if match.foreign {
			d.said = match.text
			d.AnyOf = append(d.AnyOf, neverMatches)
		}
	}
	return d, nil
}

// expected is what the tags of a condition that is not met demand, as a refusal
// tells it: a version, a list of them or "*"; the text where there are tags
// that are no versions.
func (t tags) expected() any {
	switch {
	case t.any || t.foreign:
		return t.text
	case len(t.versions) == 1:
		return t.versions[0]
	}
	return t.versions
}

// refuseConditions refuses the condition headers on a route where they mean
// nothing. If-None-Match and If-Modified-Since of a read pass: there they only
// save an answer that the client has, and it may be sent all the same.
func refuseConditions(method string, h http.Header) error {
	names := []string{"If-Match", "If-Unmodified-Since"}
	if method != http.MethodGet && method != http.MethodHead {
		names = append(names, "If-None-Match")
	}
	for _, name := range names {
		if len(h.Values(name)) > 0 {
			return inParameter(doc.Errorf(doc.InvalidRequest, "this route takes no conditions; nothing was done"), name)
		}
	}
	return nil
}

// explain puts what the client wrote into the member expected, where that were
// not only versions.
func (d demand) explain(err error) error {
	var e *doc.Error
	if d.said != "" && errors.As(err, &e) && e.Kind == doc.VersionConflict {
		e.With("expected", d.said)
	}
	return err
}

// refuseHeaders refuses headers that would change the meaning of a request and
// are not supported: a condition that is ignored is a lost update.
func refuseHeaders(h http.Header, names ...string) error {
	for _, name := range names {
		if len(h.Values(name)) > 0 {
			return inParameter(doc.Errorf(doc.InvalidRequest, "%s is not supported; conditions are If-Match and If-None-Match", name), name)
		}
	}
	return nil
}
