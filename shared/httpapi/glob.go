package httpapi

import (
	"strings"
	"unicode/utf8"

	"holdfast/shared/doc"
)

// maxGlob is the longest pattern in bytes. Longer ones than an id match nothing
// that a shorter one could not, and the work per id stays small.
const maxGlob = doc.MaxIDBytes

// glob is a list of patterns of which one has to match a whole text. In a
// pattern * stands for any text, also across / and also none, and ? for one
// code point. Patterns are joined by |. A backslash before *, ?, | or another
// backslash takes its meaning away; before anything else it is itself.
type glob [][]step

// step is what one character of a pattern, or one escape, stands for.
type step struct {
	kind stepKind
	char rune // of a literal
}

type stepKind int

const (
	literal stepKind = iota
	oneChar
	anyText
)

// parseGlob reads patterns joined by |.
func parseGlob(text string) (glob, error) {
	if len(text) > maxGlob {
		return nil, doc.Errorf(doc.InvalidRequest, "patterns have at most %d bytes together", maxGlob).
			With("limit", maxGlob).With("actual", len(text))
	}
	var g glob
	var pattern []step
	escaped := false
	add := func(s step) {
		if s.kind == anyText && len(pattern) > 0 && pattern[len(pattern)-1].kind == anyText {
			return // ** is *
		}
		pattern = append(pattern, s)
	}
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
			add(step{literal, r})
		case r == '\\' && i+1 < len(text) && strings.IndexByte(`*?|\`, text[i+1]) >= 0:
			escaped = true
		case r == '*':
			add(step{kind: anyText})
		case r == '?':
			add(step{kind: oneChar})
		case r == '|':
			g = append(g, pattern)
			pattern = nil
		default:
			add(step{literal, r})
		}
	}
	return append(g, pattern), nil
}

// match reports whether one of the patterns matches all of text.
func (g glob) match(text string) bool {
	for _, pattern := range g {
		if matchPattern(pattern, text) {
			return true
		}
	}
	return false
}

// matchPattern goes back to the latest * only, never to an earlier one: what an
// earlier one could take, the latest can take as well. So the time is at most
// the product of both lengths.
func matchPattern(pattern []step, text string) bool {
	p, t := 0, 0
	star, resume := -1, 0 // the latest *, and where its text ends for now
	for t < len(text) {
		r, size := utf8.DecodeRuneInString(text[t:])
		switch {
		case p < len(pattern) && pattern[p].kind == anyText:
			star, resume = p, t
			p++
		case p < len(pattern) && (pattern[p].kind == oneChar || pattern[p].char == r):
			p++
			t += size
		case star >= 0:
			_, skipped := utf8.DecodeRuneInString(text[resume:])
			resume += skipped
			p, t = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p].kind == anyText {
		p++
	}
	return p == len(pattern)
}
