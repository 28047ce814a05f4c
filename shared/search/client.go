// Package search keeps documents findable in OpenSearch. It makes the index
// document of a document, the indexes and their mappings, writes in bulk with
// an outcome for each document, and runs filters so that their answers are
// those of package filter.
package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/opensearch-project/opensearch-go/v2/opensearchtransport"

	"holdfast/shared/collection"
)

// DefaultBulkBytes is the largest bulk request unless Options say otherwise:
// below the 10 MiB that the smallest managed nodes take.
const DefaultBulkBytes = 8 << 20

// Options are what a Client is made from.
type Options struct {
	URL         string                  // of the cluster
	Prefix      string                  // of the names of all indexes and aliases
	Transport   http.RoundTripper       // nil: http.DefaultTransport
	Credentials aws.CredentialsProvider // nil: requests are not signed
	Region      string                  // to sign for
	Service     string                  // to sign for; "": "es"
	Replicas    int                     // copies of each index
	BulkBytes   int                     // largest bulk request; 0: DefaultBulkBytes
	Log         *slog.Logger            // nil: slog.Default()

	// CursorKey reads the secret that cursors are signed with, once. Clients
	// with the same one take each other's cursors. Nil: a random key, so that
	// cursors are good for this client only.
	CursorKey func(context.Context) ([]byte, error)
}

// Client talks to one cluster. It is safe for concurrent use. Time limits are
// those of the contexts it is given.
type Client struct {
	transport *opensearchtransport.Client
	prefix    string
	replicas  int
	bulkBytes int
	budget    int // MaxExamined, or less in tests
	keys      *cursorKeys
	log       *slog.Logger

	creation sync.Mutex
	guarded  bool // the cluster does not create indexes with our prefix by itself
}

// NewClient makes a client. It does not connect.
func NewClient(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the address of opensearch, %q, is not a URL", o.URL)
	}
	base = &url.URL{Scheme: base.Scheme, User: base.User, Host: base.Host, Path: strings.TrimRight(base.Path, "/")}
	if o.Prefix == "" {
		return nil, fmt.Errorf("the names of indexes need a prefix")
	}
	rt := &roundTripper{next: o.Transport, credentials: o.Credentials, service: o.Service, region: o.Region, now: time.Now}
	if rt.next == nil {
		rt.next = http.DefaultTransport
	}
	if rt.service == "" {
		rt.service = "es"
	}
	if rt.credentials != nil {
		rt.signer = v4.NewSigner()
	}
	transport, err := opensearchtransport.New(opensearchtransport.Config{
		URLs: []*url.URL{base}, Transport: rt, DisableRetry: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the transport to opensearch: %w", err)
	}
	c := &Client{
		transport: transport, prefix: o.Prefix, replicas: o.Replicas, bulkBytes: o.BulkBytes, budget: MaxExamined, keys: newCursorKeys(o.CursorKey), log: o.Log,
	}
	if c.bulkBytes <= 0 {
		c.bulkBytes = DefaultBulkBytes
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c, nil
}

// IndexName is the name of the generation's index in this cluster.
func (c *Client) IndexName(g collection.Generation) string { return g.IndexName(c.prefix) }

// mostGrown is the most room in bytes that is made for an answer before it comes.
const mostGrown = 16 << 20

// perform sends one request and reads the answer, whatever its status. The
// body must not be changed afterwards.
func (c *Client) perform(ctx context.Context, method, path string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("make a request to opensearch: %w", err)
	}
	if len(body) == 0 {
		req.Body, req.GetBody = http.NoBody, nil
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.transport.Perform(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var text bytes.Buffer
	text.Grow(int(min(max(res.ContentLength, 0), mostGrown)) + bytes.MinRead) // in one piece, where that is known
	if _, err := text.ReadFrom(res.Body); err != nil {
		return answer{}, fmt.Errorf("read the answer of opensearch: %w", err)
	}
	return answer{status: res.StatusCode, body: text.Bytes()}, nil
}

// read is perform for requests that change nothing: one that met a broken
// connection is sent once more.
func (c *Client) read(ctx context.Context, method, path string, body []byte) (answer, error) {
	a, err := c.perform(ctx, method, path, body)
	if connectionAgain(ctx, err) {
		a, err = c.perform(ctx, method, path, body)
	}
	return a, err
}

// ask is read with the answer decoded into v. The error is a *failure where the
// answer is none of success.
func (c *Client) ask(ctx context.Context, method, path string, body []byte, v any) error {
	a, err := c.read(ctx, method, path, body)
	if err != nil {
		return err
	}
	if f := a.failed(); f != nil {
		return f
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("read the answer of opensearch: %w", err)
	}
	return nil
}

// change is perform for requests whose answer says nothing but that they were
// carried out. The error is a *failure where they were not.
func (c *Client) change(ctx context.Context, method, path string, body []byte) error {
	a, err := c.perform(ctx, method, path, body)
	if err != nil {
		return err
	}
	if f := a.failed(); f != nil {
		return f
	}
	return nil
}

// failed is the failure that the answer tells of, or nil for a success.
func (a answer) failed() *failure {
	if a.status/100 == 2 {
		return nil
	}
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	f := &failure{status: a.status}
	if json.Unmarshal(a.body, &told) != nil {
		return f
	}
	var e engineError
	if json.Unmarshal(told.Error, &e) == nil {
		f.kind, f.reason = e.deepest()
	}
	if len(f.reason) > maxReason {
		f.reason = f.reason[:maxReason]
	}
	return f
}

// engineError is OpenSearch's description of an error.
type engineError struct {
	Type      string        `json:"type"`
	Reason    string        `json:"reason"`
	CausedBy  *engineError  `json:"caused_by"`
	RootCause []engineError `json:"root_cause"`
}

// deepest is the most telling of the descriptions: the first root cause where
// there is one.
func (e engineError) deepest() (kind, reason string) {
	if len(e.RootCause) > 0 {
		return e.RootCause[0].Type, e.RootCause[0].Reason
	}
	return e.Type, e.Reason
}
