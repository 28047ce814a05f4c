package search

import (
	"errors"
	"net/http"

	"holdfast/shared/doc"
)

// Passing reports whether an error of this package may be gone in a moment: there
// was no answer, or OpenSearch has too much to do, a fault of its own, or a part of
// an index not ready. What it refuses it refuses again.
func Passing(err error) bool {
	var f *failure
	if errors.As(err, &f) {
		return f.status/100 == 2 || passing(f.status) // 2xx: an answer of which a part failed
	}
	return doc.KindOf(err) == doc.IndexUnavailable
}

// Passing is that of an outcome.
func (o Outcome) Passing() bool {
	return o.Kind == Environment && (o.Status == 0 || passing(o.Status))
}

func passing(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}
