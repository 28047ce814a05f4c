package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Query is the body of a query.
type Query struct {
	From   string              `json:"from"`
	Filter json.RawMessage     `json:"filter,omitempty"`
	Where  string              `json:"where,omitempty"` // a CEL expression over doc
	Scan   bool                `json:"scan,omitempty"`  // Where may look at all documents
	Fields []string            `json:"fields,omitempty"`
	Read   string              `json:"read,omitempty"` // "indexed", which is the default, or "verified"
	Sort   []map[string]string `json:"sort,omitempty"` // each {"path":"asc"} or {"path":"desc"}
	Limit  *int                `json:"limit,omitempty"`
	After  string              `json:"after,omitempty"`
	Count  bool                `json:"count,omitempty"`
	Wait   *Wait               `json:"wait,omitempty"`

	Explain bool `json:"explain,omitempty"` // set by Client.Explain
}

// Wait is what a query waits for.
type Wait struct {
	Tokens    []string `json:"tokens"`
	AsOfNow   bool     `json:"asOfNow,omitempty"`
	Timeout   string   `json:"timeout,omitempty"`
	OnTimeout string   `json:"onTimeout,omitempty"`
}

// Found is a page of a query's answer.
type Found struct {
	Page
	Count *struct {
		Value json.Number `json:"value"`
		Exact bool        `json:"exact"`
	} `json:"count,omitempty"`
	Examined  json.Number     `json:"examined,omitempty"`
	Staleness json.RawMessage `json:"staleness"`
}

// Notice is what the answer says to people about how current it is.
func (f Found) Notice() string {
	var s struct {
		Notice string `json:"notice"`
	}
	if json.Unmarshal(f.Staleness, &s) != nil {
		return ""
	}
	return Printable(s.Notice)
}

// Query asks for one page.
func (c *Client) Query(ctx context.Context, q Query) (found Found, err error) {
	_, err = c.query(ctx, q, &found)
	return found, err
}

// query asks, and reads the answer into v.
func (c *Client) query(ctx context.Context, q Query, v any) (answer []byte, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(ctx, Request{Method: http.MethodPost, Path: "/query", Header: jsonHeader(), Body: body, Repeatable: true})
	if err != nil {
		return nil, err
	}
	return res.Body, c.read(res.Body, v)
}

// Change is an entry of the change feed.
type Change struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Deleted bool   `json:"deleted"`
}

// Changes is a page of the change feed, in the order of versions.
type Changes struct {
	Changes     []Change  `json:"changes"`
	Next        string    `json:"next"`
	SafeThrough time.Time `json:"safeThrough"`
	End         bool      `json:"end"` // nothing up to SafeThrough is left to be told
}

// Changes reads a page of the change feed; collection "" means all, after ""
// the beginning.
func (c *Client) Changes(ctx context.Context, collection, after string, limit int) (Changes, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if collection != "" {
		q.Set("collection", collection)
	}
	if after != "" {
		q.Set("after", after)
	}
	var page Changes
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/changes", Query: q, Repeatable: true})
	if err != nil {
		return page, err
	}
	return page, c.read(res.Body, &page)
}

// IDs has ordered GUIDs made, at most 1000.
func (c *Client) IDs(ctx context.Context, layout string, count int) ([]string, error) {
	q := url.Values{"layout": {layout}, "count": {strconv.Itoa(count)}}
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/ids", Query: q, Repeatable: true})
	if err != nil {
		return nil, err
	}
	var made struct {
		IDs []string `json:"ids"`
	}
	if err := c.read(res.Body, &made); err != nil {
		return nil, err
	}
	if len(made.IDs) != count {
		return nil, fmt.Errorf("%s made %d identifiers, not %d", c.Endpoint(), len(made.IDs), count)
	}
	return made.IDs, nil
}
