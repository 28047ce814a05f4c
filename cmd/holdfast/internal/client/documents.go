package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Envelope is a document with what is known about it. Data is the JSON text as
// it came.
type Envelope struct {
	ID        string          `json:"id"`
	Version   json.Number     `json:"version"`
	CreatedAt string          `json:"createdAt"`
	UpdatedAt string          `json:"updatedAt"`
	Data      json.RawMessage `json:"data"`
}

// Written is what a write answers.
type Written struct {
	ID      string      `json:"id"`
	Version json.Number `json:"version"`
	Created bool        `json:"created"`
	Token   string      `json:"token"` // lets a query wait for the write
	// Repeated says that the write may have happened more than once.
	Repeated bool `json:"-"`
}

// Condition is what a write demands of the document. The zero value demands
// nothing.
type Condition struct {
	Version string // this version, or "*" for any
	Absent  bool
}

func (c Condition) header(h http.Header) {
	if c.Absent {
		h.Set("If-None-Match", "*")
	}
	if c.Version == "*" {
		h.Set("If-Match", "*")
	} else if c.Version != "" {
		h.Set("If-Match", `"`+c.Version+`"`)
	}
}

// one addresses a document by a parameter, which reaches the server as it was
// written, whatever a gateway does to odd characters in paths.
func one(id string) url.Values { return url.Values{"id": {id}} }

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// Get loads a document's data. With fields only these paths of it.
func (c *Client) Get(ctx context.Context, id string, fields []string) (data []byte, version string, err error) {
	q := one(id)
	if len(fields) > 0 {
		q.Set("fields", strings.Join(fields, ","))
	}
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/docs", Query: q, Repeatable: true})
	if err != nil {
		return nil, "", err
	}
	return res.Body, strings.Trim(res.Header.Get("ETag"), `"`), nil
}

// Put creates or replaces a document. Only a repeatable one is tried again when
// nobody knows whether it happened.
func (c *Client) Put(ctx context.Context, id string, data []byte, cond Condition, repeatable bool) (Written, error) {
	h := jsonHeader()
	cond.header(h)
	return c.write(ctx, Request{Method: http.MethodPut, Path: "/docs", Query: one(id), Header: h, Body: data, Repeatable: repeatable})
}

// Create stores data under a new id below parent, which ends in a slash.
func (c *Client) Create(ctx context.Context, parent string, data []byte) (Written, error) {
	return c.write(ctx, Request{Method: http.MethodPost, Path: "/docs", Query: one(parent), Header: jsonHeader(), Body: data})
}

func (c *Client) write(ctx context.Context, r Request) (Written, error) {
	res, err := c.Do(ctx, r)
	if err != nil {
		return Written{}, err
	}
	w := Written{Created: res.Status == http.StatusCreated, Token: res.Header.Get("Holdfast-Token"), Repeated: res.Repeated}
	return w, c.read(res.Body, &w)
}

// Delete removes a document. existed is false where there was none.
func (c *Client) Delete(ctx context.Context, id string, cond Condition) (token string, existed bool, err error) {
	h := http.Header{}
	cond.header(h)
	res, err := c.Do(ctx, Request{Method: http.MethodDelete, Path: "/docs", Query: one(id), Header: h})
	if err != nil {
		return "", false, err
	}
	token = res.Header.Get("Holdfast-Token")
	return token, token != "", nil
}

// MostIDs is how many ids one request to load takes.
const MostIDs = 100

// Load loads up to MostIDs documents, strongly. An absent one is nil.
func (c *Client) Load(ctx context.Context, ids []string) (map[string]*Envelope, error) {
	all := make(map[string]*Envelope, len(ids))
	for len(ids) > 0 {
		body, err := json.Marshal(map[string]any{"ids": ids})
		if err != nil {
			return nil, err
		}
		res, err := c.Do(ctx, Request{Method: http.MethodPost, Path: "/load", Header: jsonHeader(), Body: body, Repeatable: true})
		if err != nil {
			return nil, err
		}
		var page struct {
			Documents map[string]*Envelope `json:"documents"`
			Remaining []string             `json:"remaining"`
		}
		if err := c.read(res.Body, &page); err != nil {
			return nil, err
		}
		for id, d := range page.Documents {
			all[id] = d
		}
		if len(page.Remaining) >= len(ids) {
			return nil, fmt.Errorf("%s loads none of %d documents", c.Endpoint(), len(ids))
		}
		ids = page.Remaining
	}
	return all, nil
}

// Page is a page of documents.
type Page struct {
	Documents []Envelope `json:"documents"`
	Next      string     `json:"next"` // "" on the last page
}

// Prefix loads a page of the documents whose ids begin so, strongly and in the
// order of their ids.
func (c *Client) Prefix(ctx context.Context, prefix, after string, limit int) (Page, error) {
	q := url.Values{"startsWith": {prefix}, "limit": {strconv.Itoa(limit)}}
	if after != "" {
		q.Set("after", after)
	}
	var page Page
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/docs", Query: q, Repeatable: true})
	if err != nil {
		return page, err
	}
	return page, c.read(res.Body, &page)
}

// Line is the outcome of a line of a bulk request.
type Line struct {
	Line    int             `json:"line"`
	ID      *string         `json:"id"`
	Version json.Number     `json:"version"`
	Error   json.RawMessage `json:"error"` // a problem, or empty
	Token   *string         `json:"token"` // only of the last line
}

// Bulk sends lines and gives the outcome of each, in order, and a token for all
// that were written. Lines must not be blank.
func (c *Client) Bulk(ctx context.Context, lines [][]byte) ([]Line, string, error) {
	res, err := c.Do(ctx, Request{
		Method: http.MethodPost, Path: "/bulk", Header: http.Header{"Content-Type": {"application/x-ndjson"}},
		Body: bytes.Join(lines, []byte{'\n'}), Repeatable: true,
	})
	if err != nil {
		return nil, "", err
	}
	outcomes := make([]Line, 0, len(lines))
	answer := json.NewDecoder(bytes.NewReader(res.Body))
	for {
		var o Line
		if err := answer.Decode(&o); err != nil {
			return nil, "", fmt.Errorf("%s does not answer for every line: %w", c.Endpoint(), err)
		}
		if o.Token != nil {
			if len(outcomes) != len(lines) {
				return nil, "", fmt.Errorf("%s answers for %d of %d lines", c.Endpoint(), len(outcomes), len(lines))
			}
			return outcomes, *o.Token, nil
		}
		outcomes = append(outcomes, o)
		if o.Line != len(outcomes) || len(outcomes) > len(lines) {
			return nil, "", fmt.Errorf("%s answers for other lines than were sent", c.Endpoint())
		}
	}
}

// IsSlug reports whether the error is a problem of this kind.
func IsSlug(err error, slug string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Slug == slug
}

func (c *Client) read(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s gives an answer that cannot be read: %w", c.Endpoint(), err)
	}
	return nil
}
