package search

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
)

// The index keeps the beginning of a long string, cut between code points, so
// it may err about the order of strings that are the same in their first
// crowdBytes bytes, and about no others. Documents with such keys are a crowd:
// they stand side by side in the index's order, in an order that means nothing.
// A page takes a crowd out of that order as a whole and puts it in order by what
// the documents say.
const crowdBytes = keptBytes - (utf8.UTFMax - 1)

// maxCrowdText is how many bytes of different long strings one page holds for
// that, a small part of what a function has.
const maxCrowdText = 32 << 20

// crowdOf is what the key has in common with all of its crowd; false for a key
// that the index orders rightly.
func crowdOf(key any) (beginning string, crowded bool) {
	s, ok := key.(string)
	if !ok || len(s) <= crowdBytes || s[0] != stringTag {
		return "", false
	}
	return beginningOf(s, 1+crowdBytes), true // the tag is one byte
}

// crowded is the place of the first key that is in a crowd; false where there is
// none.
func (p position) crowded() (int, bool) {
	for i, key := range p {
		if _, is := crowdOf(key); is {
			return i, true
		}
	}
	return 0, false
}

// sameCrowd reports whether p is in the crowd that q is in by its i-th key.
func (p position) sameCrowd(q position, i int) bool {
	beginning, crowded := crowdOf(p[i])
	theirs, _ := crowdOf(q[i])
	return crowded && beginning == theirs && slices.Equal(p[:i], q[:i])
}

// lowest is a key that no key of the crowd comes before, and that comes after
// all that the crowd does. What fits in less than the beginning leaves open is
// not in the crowd.
func lowest(beginning string) string {
	switch 1 + crowdBytes - len(beginning) {
	case 1:
		return beginning + "\u0080"
	case 2:
		return beginning + "\u0800"
	case 3:
		return beginning + "\U00010000"
	}
	return beginning
}

// highest is a key that comes after every key of the crowd in the index, and
// before all that the crowd comes before.
func highest(beginning string) string { return beginning + "\U0010FFFF\U0010FFFF\U0010FFFF" }

// bound is a value that comes before all that the key may have in this order, or
// after all.
func (by orderBy) bound(after bool) any {
	least := by.desc == after
	switch by.key.Pseudo {
	case filter.Version, filter.CreatedAt, filter.UpdatedAt:
		if least {
			return json.Number(strconv.Itoa(math.MinInt64))
		}
		return json.Number(strconv.Itoa(math.MaxInt64))
	}
	switch {
	case least:
		return ""
	case by.key.Pseudo == "":
		return string(trueKey[0] + 1)
	}
	return strings.Repeat("\U0010FFFF", doc.MaxIDBytes/utf8.UTFMax+1)
}

// crowds are the documents in crowds that a page meets and that match, those
// included that an earlier page has told already: by them a cursor says where it
// stands.
type crowds struct {
	members []position
	texts   map[string]string
	bytes   int
}

// add takes in a document and gives back its position, in which equal strings
// are held once.
func (c *crowds) add(p position) (position, error) {
	for i, key := range p {
		if _, is := crowdOf(key); !is {
			continue
		}
		text := key.(string)
		held, have := c.texts[text]
		if !have {
			if c.bytes += len(text); c.bytes > maxCrowdText {
				return nil, doc.Errorf(doc.QueryTooCostly,
					"the sort would have to compare more than %d bytes of strings that are the same in their first %d", maxCrowdText, crowdBytes).
					With("limit", maxCrowdText)
			}
			if c.texts == nil {
				c.texts = map[string]string{}
			}
			held = text
			c.texts[held] = held
		}
		p[i] = held
	}
	c.members = append(c.members, p)
	return p, nil
}

// wholePosition is a hit's position with its long strings in full.
func (s *search) wholePosition(at position, d *doc.Document) position {
	p := slices.Clone(at)
	for i, by := range s.order {
		if _, is := crowdOf(p[i]); is {
			p[i] = wholeKey(by.key.Path.SortKey(d.Data, by.desc))
		}
	}
	return p
}
