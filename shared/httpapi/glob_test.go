package httpapi

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"**", "x", true},
		{"a", "a", true}, {"a", "ab", false}, {"a", "ba", false},
		{"?", "é", true}, {"?", "", false}, {"?", "ab", false}, {"?", "/", true},
		{"account/*", "account/1/x", true}, {"account/*", "account", false}, {"*/1", "a/b/1", true},
		{"a*b*c", "axxbyyc", true}, {"a*b*c", "axxbyy", false}, {"*a*", "bab", true}, {"*a?", "aab", true},
		{"a|b", "b", true}, {"a|b", "a|b", false}, {"a|", "", true}, {"|a", "a", true},
		{`\*`, "*", true}, {`\*`, "x", false}, {`\?`, "x", false}, {`a\|b`, "a|b", true}, {`a\|b`, "a", false},
		{`\\`, `\`, true}, {`\\*`, `\x`, true}, {`a\b`, `a\b`, true}, {`a\`, `a\`, true}, {`\é`, `\é`, true},
	} {
		g, err := parseGlob(c.pattern)
		if err != nil {
			t.Fatalf("%q: %v", c.pattern, err)
		}
		if got := g.match(c.text); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.text, got)
		}
	}
	if _, err := parseGlob(strings.Repeat("a", 513)); doc.KindOf(err) != doc.InvalidRequest {
		t.Errorf("a long pattern: %v", err)
	}
}

// simply is the meaning of one pattern without escapes, as plainly as it can be said.
func simply(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	p, size := utf8.DecodeRuneInString(pattern)
	if p == '*' {
		for i := range text {
			if simply(pattern[size:], text[i:]) {
				return true
			}
		}
		return simply(pattern[size:], "")
	}
	c, n := utf8.DecodeRuneInString(text)
	return n > 0 && (p == '?' || p == c) && simply(pattern[size:], text[n:])
}

func TestGlobMeansWhatItSays(t *testing.T) {
	patterns := rapid.StringOfN(rapid.RuneFrom([]rune("ab/é*?")), 0, 8, -1)
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("ab/é")), 0, 10, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := patterns.Draw(t, "pattern"), texts.Draw(t, "text")
		g, err := parseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.match(text), simply(pattern, text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
	})
}

// A pattern made to be slow is not.
func TestGlobDoesNotExplode(t *testing.T) {
	g, err := parseGlob(strings.Repeat("*a", 255) + "b")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool, 1)
	go func() { done <- g.match(strings.Repeat("a", 511)) }()
	select {
	case got := <-done:
		if got {
			t.Error("it matches")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on and on")
	}
}
