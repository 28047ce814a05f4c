package filter

import (
	"encoding/json"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words are the words of a text, in order, as $text compares them.
//
// A word is a run of letters, digits and other numbers, with the marks that
// follow them; everything else separates. Letters of scripts that are written
// without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) are a word
// each. Case does not matter: words are given in lower case after Unicode's
// simple case folding. Accents do matter.
//
// The index holds the words that this function finds, so both readings of a
// filter see the same ones. What changes them, be it another Unicode version in
// Go's tables, makes other index documents and needs a new generation.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1 // where the word began that is being read
		for i, r := range text {
			class := classOf(r, start >= 0)
			if class == inWord {
				if start < 0 {
					start = i
				}
				continue
			}
			if start >= 0 {
				if !yield(fold(text[start:i])) {
					return
				}
				start = -1
			}
			if class == wholeWord && !yield(fold(text[i:i+utf8.RuneLen(r)])) {
				return
			}
		}
		if start >= 0 {
			yield(fold(text[start:]))
		}
	}
}

// WordsOf are the words of a scalar: none but those of strings and numbers.
func WordsOf(v any) iter.Seq[string] {
	switch v := v.(type) {
	case string:
		return Words(v)
	case json.Number:
		return Words(string(v))
	}
	return func(func(string) bool) {}
}

type class int

const (
	between class = iota
	inWord
	wholeWord
)

// spaceless are the scripts whose words cannot be told without a dictionary.
var spaceless = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

func classOf(r rune, inside bool) class {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' {
			return inWord
		}
		return between
	}
	switch {
	case unicode.IsLetter(r):
		if unicode.In(r, spaceless...) {
			return wholeWord
		}
		return inWord
	case unicode.IsNumber(r), inside && unicode.IsMark(r):
		return inWord
	}
	return between
}

// fold makes words equal that differ in case only. A word that stands for
// itself is not copied.
func fold(word string) string {
	for i := range len(word) {
		if c := word[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return strings.Map(foldRune, word)
		}
	}
	return word
}

// foldRune is the lower case of the first of all runes that are equal but for
// their case: of K, k and the Kelvin sign it is k.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		return unicode.ToLower(r)
	}
	first := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		first = min(first, other)
	}
	return unicode.ToLower(first)
}
