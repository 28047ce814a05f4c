package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Problem is a refusal, RFC 9457. Where the answer was none, but came from a
// gateway, Slug is "" and Title is the status in words.
type Problem struct {
	Status     int
	Slug       string // the last part of the type, such as version-conflict
	Title      string
	Detail     string
	RequestID  string
	RetryAfter time.Duration
	Members    map[string]json.RawMessage // all that the answer had
	// Repeated says that an earlier attempt of the request may have happened.
	Repeated bool
}

// problemOf makes a problem of any answer that is a refusal.
func problemOf(res *http.Response, body []byte) *Problem {
	p := &Problem{Status: res.StatusCode}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media == "application/problem+json" {
		p = ParseProblem(body)
		p.Status = res.StatusCode
	}
	if p.Title == "" {
		p.Title = fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	if p.Slug == "" && p.Detail == "" {
		p.Detail = foreignDetail(res, body)
	}
	p.RequestID = res.Header.Get(requestIDHeader)
	if p.RequestID == "" {
		p.RequestID = res.Header.Get("Apigw-Requestid")
	}
	p.RetryAfter = retryAfter(res.Header, time.Now())
	return p
}

// ParseProblem reads a problem object, also one inside an answer of /bulk. What
// cannot be read is left empty.
func ParseProblem(object []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(object, &p.Members) != nil {
		return p
	}
	text := func(name string) string {
		var s string
		if json.Unmarshal(p.Members[name], &s) != nil {
			return ""
		}
		return s
	}
	p.Slug = strings.TrimPrefix(text("type"), "/problems/")
	p.Title, p.Detail = text("title"), text("detail")
	_ = json.Unmarshal(p.Members["status"], &p.Status) // stays 0 where it is no number
	return p
}

// foreignDetail is what an answer that is no problem says: a gateway's own
// message, or the target of a redirect.
func foreignDetail(res *http.Response, body []byte) string {
	if to := res.Header.Get("Location"); to != "" {
		return "the endpoint points to " + to + ", which is not followed"
	}
	var gateway struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &gateway) == nil && gateway.Message != "" {
		return gateway.Message
	}
	const shown = 200
	return string(bytes.ToValidUTF8(bytes.TrimSpace(body[:min(len(body), shown)]), nil))
}

// shownMembers are the members that tell a person where and how much.
var shownMembers = []struct{ name, text string }{
	{"pointer", "at"}, {"parameter", "parameter"}, {"index", "operation"}, {"limit", "limit"}, {"actual", "actual"}, {"expected", "expected"},
}

// Error is title and detail with the place, the limit and what stood there.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Title)
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	}
	var extra []string
	for _, m := range shownMembers {
		raw, ok := p.Members[m.name]
		if !ok {
			continue
		}
		value := string(raw)
		var text string
		if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
			value = text
			if m.name == "pointer" && text == "" {
				value = "the top"
			}
		}
		if value == "null" {
			value = "none"
		}
		extra = append(extra, m.text+" "+value)
	}
	if p.RequestID != "" && (p.Status >= 500 || p.Slug == "") {
		extra = append(extra, "request "+p.RequestID)
	}
	if len(extra) > 0 {
		b.WriteString(" (" + strings.Join(extra, ", ") + ")")
	}
	return Printable(b.String())
}

// Printable is text without anything that a terminal would obey.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return '\ufffd'
		}
		return r
	}, s)
}
