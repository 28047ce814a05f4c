// Package doc holds the words that every other package speaks: document ids,
// versions, documents, signals and the kinds of error a caller can be told.
//
// It knows no engine and no transport and imports the standard library only.
package doc

import "time"

// Document is what the documents table holds for one id at one version.
//
// Data is a tree of nil, bool, string, json.Number, []any and map[string]any.
// Every json.Number in it is in the canonical text that package value produces,
// so that equal numbers are equal strings.
//
// A Document with Deleted set is a tombstone: it has an ID and a Version and no
// Data. A delete must stay visible as such, because late news about an earlier
// version has to lose against it.
type Document struct {
	ID        ID
	Version   Version
	CreatedAt time.Time // when the current life of the document began, to the microsecond, in UTC
	UpdatedAt time.Time // when it last changed, to the microsecond, in UTC
	ExpiresAt time.Time
	Deleted   bool
	Data      map[string]any
}

// Live reports whether a Load at the moment now answers with the document: it
// is neither deleted nor past its logical end.
func (d Document) Live(now time.Time) bool {
	return !d.Deleted && !d.Expired(now)
}

// Expired reports whether the document has reached its logical end at now.
func (d Document) Expired(now time.Time) bool {
	return !d.ExpiresAt.IsZero() && !now.Before(d.ExpiresAt)
}

// Signal is the news that an id has reached a version. It never carries a body:
// who acts on it reads the table again, so order, duplicates and age of signals
// do not matter.
type Signal struct {
	ID      ID      `json:"id"`
	Version Version `json:"v"`
}

// Change is one entry of the change feed.
type Change struct {
	ID         ID
	Version    Version
	Collection Collection
	Deleted    bool
}

// Quarantined says that the index does not hold a document in full, and why.
type Quarantined struct {
	ID         ID
	Collection Collection
	Version    Version   // the version that could not be indexed in full
	Reason     string    // what OpenSearch or the projection said; no document content
	Attempts   int       // how often indexing that version was refused
	Since      time.Time // when the first refusal was recorded
	Partial    bool      // a reduced form is in the index; false: the index has nothing of this version
}

// Written is the outcome of a write.
type Written struct {
	ID      ID
	Version Version // zero when nothing was written: the delete of an absent document
	Created bool    // there was no live document before
}
