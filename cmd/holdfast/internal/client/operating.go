package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Status is what a Holdfast says about itself.
type Status struct {
	Healthy     bool               `json:"healthy"`
	Problems    []StatusProblem    `json:"problems"`
	Collections []CollectionStatus `json:"collections"`
	Next        string             `json:"next,omitempty"`
	Pipeline    PipelineStatus     `json:"pipeline"`
	Jobs        []Job              `json:"jobs"`
	Version     string             `json:"version"`
}

// StatusProblem is something that is not as it should be.
type StatusProblem struct {
	Type   string `json:"type"`
	Detail string `json:"detail"`
	Action string `json:"action"`
}

// CollectionStatus is about one collection; what is not known is null.
type CollectionStatus struct {
	Name          string  `json:"name"`
	Documents     *int    `json:"documents"`
	Indexed       *int    `json:"indexed"`
	ProvenThrough *string `json:"provenThrough"`
	Quarantined   int     `json:"quarantined"`
	Generation    *int    `json:"generation"`
	Reindexing    bool    `json:"reindexing"`
}

// PipelineStatus is about the way from the table to the index; what is not known
// is null.
type PipelineStatus struct {
	LagSeconds     *float64 `json:"lagSeconds"`
	FeedLagSeconds *float64 `json:"feedLagSeconds"`
	Pending        *int     `json:"pending"`
	DeadLetters    *int     `json:"deadLetters"`
	GivenUp        *int     `json:"givenUp"`
}

// Job is something that runs by a schedule or when it is asked for.
type Job struct {
	Name     string       `json:"name"`
	Modes    []string     `json:"modes"`
	Last     *JobRun      `json:"last"`
	Requests []JobRequest `json:"requests"`
}

// JobRun is a run of a job that ended.
type JobRun struct {
	Mode     string          `json:"mode"`
	Started  string          `json:"started"`
	Finished string          `json:"finished"`
	Outcome  string          `json:"outcome"`
	Error    string          `json:"error,omitempty"`
	Detail   json.RawMessage `json:"detail,omitempty"`
}

// JobRequest is what a next run is asked for.
type JobRequest struct {
	Name       string `json:"name,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Collection string `json:"collection,omitempty"`
	At         string `json:"at"`
}

// QuarantinePage is a page of the documents that are not indexed in full.
type QuarantinePage struct {
	Entries []QuarantineEntry `json:"entries"`
	Next    string            `json:"next,omitempty"`
}

// QuarantineEntry is one of them.
type QuarantineEntry struct {
	ID       string      `json:"id"`
	Version  json.Number `json:"version"`
	Reason   string      `json:"reason"`
	Attempts int         `json:"attempts"`
	Since    string      `json:"since"`
	Partial  bool        `json:"partial"`
}

// Retried says how many signals were sent again.
type Retried struct {
	Signalled int    `json:"signalled"`
	Next      string `json:"next,omitempty"`
}

// DeadLetters are messages that were given up.
type DeadLetters struct {
	Messages []DeadLetter `json:"messages"`
	Counts   struct {
		Signals int `json:"signals"`
		Relay   int `json:"relay"`
	} `json:"counts"`
}

// DeadLetter is one of them.
type DeadLetter struct {
	Queue      string      `json:"queue"`
	ID         string      `json:"id"`
	Sent       *string     `json:"sent"`
	Receives   int         `json:"receives"`
	Signals    []Signalled `json:"signals,omitempty"`
	Unreadable string      `json:"unreadable,omitempty"`
}

// Signalled is a document that a message is about.
type Signalled struct {
	ID      string      `json:"id"`
	Version json.Number `json:"version"`
}

// Redriven says what became of dead letters.
type Redriven struct {
	Moved     int `json:"moved"`
	Discarded int `json:"discarded"`
	Remaining int `json:"remaining"`
}

// Read asks a route for JSON.
func Read[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var into T
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Path: path, Query: query, Repeatable: true})
	if err != nil {
		return into, err
	}
	return into, c.read(res.Body, &into)
}

// Post gives a route JSON and reads its answer. It is tried again also when
// nobody knows whether it happened: doing it twice has to be as good as once.
func Post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var into T
	text, err := json.Marshal(body)
	if err != nil {
		return into, err
	}
	res, err := c.Do(ctx, Request{Method: http.MethodPost, Path: path, Header: jsonHeader(), Body: text, Repeatable: true})
	if err != nil {
		return into, err
	}
	return into, c.read(res.Body, &into)
}
