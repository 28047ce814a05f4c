// Package collection holds what a collection declares about itself and the
// generations of its index. It is pure: no engine, no clock.
package collection

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

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
	// Serving is the form in which queries read the documents, while they are
	// on their way to the index of another family; nil: the declared one. With
	// Moved they read the declared one already, and the family they left is
	// still written to for those who have not heard of it.
	Serving *Form     `json:"serving,omitempty"`
	Moved   bool      `json:"moved,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when Serving and Moved became what they are
	// Amended counts the changes of Serving and Moved that the system made itself,
	// which are no revisions.
	Amended int64 `json:"amended,omitempty"`
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
