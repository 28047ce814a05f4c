// Package collection holds what a collection declares about itself and the
// generations of its index. It is pure: no engine, no clock.
package collection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"holdfast/shared/doc"
)

// Definition is what is declared of one collection. The zero value is that of a
// collection nobody declared anything about.
type Definition struct {
	Name     doc.Collection `json:"name"`
	Revision int64          `json:"revision"`          // grows by one with each change; 0: no definition
	Removed  bool           `json:"removed,omitempty"` // nothing is declared any more; the rest is the form its documents are still indexed in
	Index    IndexKind      `json:"index,omitempty"`   // "" means Shared unless something below is declared
	Nested   []string       `json:"nested,omitempty"`  // paths to arrays whose elements are matched one by one
	Text     []string       `json:"text,omitempty"`    // paths with full-text search
	Include  []string       `json:"include,omitempty"` // only what is at or below these paths is indexed; none: everything
	Exclude  []string       `json:"exclude,omitempty"` // what is at or below these paths is not indexed
}

// IndexKind says in which index a collection's documents live.
type IndexKind string

// The kinds of index.
const (
	Shared IndexKind = "shared" // one index with other collections, told apart by $collection
	Own    IndexKind = "own"
)

// Family names the set of generations that hold a collection's documents: the
// shared one, or the collection's own.
type Family string

// SharedFamily is the family of all collections without an index of their own.
const SharedFamily Family = "$shared"

// Family tells where the collection's documents are indexed.
func (d Definition) Family() Family {
	if d.Index == Own || d.needsOwn() {
		return Family(d.Name)
	}
	return SharedFamily
}

// Generation is one physical index of a family with a frozen projection.
// Whatever changes an index document is a new generation, so that one version
// of a document has exactly one body per generation.
type Generation struct {
	Family    Family          `json:"family"`
	Number    int             `json:"number"`    // 1, 2, …
	Projector int             `json:"projector"` // the number of the projection code that fills it
	Revision  int64           `json:"revision"`  // the definition's revision that it was made from
	Nested    []string        `json:"nested,omitempty"`
	Text      []string        `json:"text,omitempty"`
	Include   []string        `json:"include,omitempty"`
	Exclude   []string        `json:"exclude,omitempty"`
	State     GenerationState `json:"state"`
}

// GenerationState is where a generation stands in its life.
type GenerationState string

// The states of a generation.
const (
	Building GenerationState = "building" // written to, not read
	Active   GenerationState = "active"   // written to and read through the alias
	Retired  GenerationState = "retired"  // neither; to be removed
)

// First is the generation a family begins with.
func First(d Definition, projector int) Generation {
	return Generation{
		Family: d.Family(), Number: 1, Projector: projector, Revision: d.Revision,
		Nested: d.Nested, Text: d.Text, Include: d.Include, Exclude: d.Exclude, State: Active,
	}
}

// IndexName is the physical name of the generation's index,
// <prefix>-<slug>-<hash>-<number>: lower case, unique for the family's exact
// name, recognisable to a person.
func (g Generation) IndexName(prefix string) string {
	return fmt.Sprintf("%s-%d", familyName(prefix, g.Family), g.Number)
}

// Alias is the name through which the family's active generation is queried.
func (f Family) Alias(prefix string) string {
	return familyName(prefix, f)
}

func familyName(prefix string, f Family) string {
	sum := sha256.Sum256([]byte(f))
	return prefix + "-" + slug(string(f)) + "-" + hex.EncodeToString(sum[:5])
}

// slug keeps what OpenSearch allows in an index name and a person can read.
func slug(s string) string {
	const most = 40
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if b.Len() == most {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
				b.WriteByte('-')
			}
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "x"
}
