package doc

import (
	"errors"
	"fmt"
)

// Kind is the stable name of a way to fail that a caller is told about. It is
// the last step of the problem type, /problems/<kind>.
type Kind string

// The kinds. Package httpapi gives each its status and title.
const (
	BatchConflict        Kind = "batch-conflict"
	BatchTooLarge        Kind = "batch-too-large"
	CursorMismatch       Kind = "cursor-mismatch"
	DocumentTooDeep      Kind = "document-too-deep"
	DocumentTooLarge     Kind = "document-too-large"
	DuplicateID          Kind = "duplicate-id"
	IdempotencyUnsup     Kind = "idempotency-unsupported"
	IndexUnavailable     Kind = "index-unavailable"
	Internal             Kind = "internal"
	InvalidCursor        Kind = "invalid-cursor"
	InvalidDefinition    Kind = "invalid-definition"
	InvalidID            Kind = "invalid-id"
	InvalidJSON          Kind = "invalid-json"
	InvalidQuery         Kind = "invalid-query"
	InvalidRequest       Kind = "invalid-request"
	JobRunning           Kind = "job-running"
	MethodNotAllowed     Kind = "method-not-allowed"
	NoSuchRoute          Kind = "no-such-route"
	NotAnObject          Kind = "not-an-object"
	NotFound             Kind = "not-found"
	NumberOutOfRange     Kind = "number-out-of-range"
	OutcomeUnknown       Kind = "outcome-unknown"
	QueryTooCostly       Kind = "query-too-costly"
	ReindexRequired      Kind = "reindex-required"
	RequestTooLarge      Kind = "request-too-large"
	Throttled            Kind = "throttled"
	TooMany              Kind = "too-many"
	Unavailable          Kind = "unavailable"
	UnrootedPrefix       Kind = "unrooted-prefix"
	UnsupportedMediaType Kind = "unsupported-media-type"
	VersionConflict      Kind = "version-conflict"
	WaitTimeout          Kind = "wait-timeout"
)

// Error is a failure that a caller is told about. Detail and Members are safe
// to show; the cause, reached with errors.Unwrap, is for logs only.
type Error struct {
	Kind    Kind
	Detail  string
	Members map[string]any // further members of the problem: pointer, parameter, limit, actual, expected …
	cause   error
}

// Errorf makes an Error; the text is shown to the caller.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// With adds a member to the problem and returns the same error.
func (e *Error) With(name string, value any) *Error {
	if e.Members == nil {
		e.Members = map[string]any{}
	}
	e.Members[name] = value
	return e
}

// Because keeps the internal cause, for logs, and returns the same error.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Kind, e.Detail, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Detail)
}

func (e *Error) Unwrap() error { return e.cause }

// KindOf is the kind of the first Error in err's chain; Internal for any other
// error, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}
