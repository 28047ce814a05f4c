package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	quickjson "github.com/go-json-experiment/json" // in one pass: pages are megabytes

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// retryAfter is what callers are told when the index cannot answer, in seconds.
const retryAfter = 5

// unavailable tells the caller that the index does not answer, and keeps why
// for the logs.
func unavailable(cause error) error {
	return doc.Errorf(doc.IndexUnavailable, "the index cannot answer at the moment; documents can be loaded by id all the same").
		With("retryAfter", retryAfter).Because(cause)
}

// found is the answer to one search.
type found struct {
	Status int             `json:"status"`
	Error  json.RawMessage `json:"error"`
	Hits   struct {
		Total struct {
			Value int `json:"value"`
		} `json:"total"`
		Hits []hit `json:"hits"`
	} `json:"hits"`
	Aggregations bucket `json:"aggregations"`
}

// hit is one document of an answer.
type hit struct {
	Source struct {
		ID        doc.ID      `json:"$id"`
		Version   doc.Version `json:"$version"`
		CreatedAt *int64      `json:"$createdAt"`
		UpdatedAt *int64      `json:"$updatedAt"`
		ExpiresAt *int64      `json:"$expiresAt"`
		Raw       string      `json:"$raw"`
	} `json:"_source"`
	Sort    []json.RawMessage `json:"sort"`
	Matched []string          `json:"matched_queries"`
}

// hitFields are the parts of an index document that a hit is made of.
var hitFields = []string{fieldID, fieldVersion, fieldCreatedAt, fieldUpdatedAt, fieldExpiresAt, fieldRaw}

// foundPath keeps everything else out of the answers.
const foundPath = "responses.status,responses.error.type,responses.error.reason,responses.error.root_cause,responses.error.caused_by," +
	"responses.hits.total.value,responses.hits.hits._source,responses.hits.hits.sort,responses.hits.hits.matched_queries," +
	"responses.aggregations"

// document decodes what the hit's text and envelope say.
func (h *hit) document() (doc.Document, error) {
	data, err := value.DecodeDocument([]byte(h.Source.Raw))
	if err != nil {
		return doc.Document{}, fmt.Errorf("read the text of document %s in the index: %w", h.Source.ID, err)
	}
	d := h.envelope()
	d.Data = data
	return d, nil
}

// envelope is the document without its data.
func (h *hit) envelope() doc.Document {
	return doc.Document{
		ID: h.Source.ID, Version: h.Source.Version,
		CreatedAt: moment(h.Source.CreatedAt), UpdatedAt: moment(h.Source.UpdatedAt), ExpiresAt: moment(h.Source.ExpiresAt),
	}
}

func moment(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	return time.UnixMicro(*micros).UTC()
}

// maxRequestBytes is how long a request may be that every size of OpenSearch
// takes: 10 MiB, the limit of Amazon's smaller instances.
const maxRequestBytes = 10 << 20

// tooLong refuses searches that are too long together to be sent; nil for others.
// Each has the filter in it, mostly twice.
func tooLong(bytes int) error {
	if bytes <= maxRequestBytes {
		return nil
	}
	return doc.Errorf(doc.QueryTooCostly, "what the query becomes is longer than the index takes at once").
		With("limit", maxRequestBytes).With("actual", bytes)
}

// searches runs searches over the indexes, at least one, in one request. The
// error is errIndexGone where one of them is not there. A shard that fails, fails
// the search, because half an answer looks like a whole one.
//
// OpenSearch stops them when the context's time is over, and also when the
// connection ends, which it does when the context is cancelled: nobody waits
// for a search that still runs.
func (c *Client) searches(ctx context.Context, indexes []string, bodies ...object) ([]found, error) {
	about := object{"index": indexes, "allow_partial_search_results": false}
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end), time.Millisecond)
		about["cancel_after_time_interval"] = strconv.FormatInt(left.Milliseconds(), 10) + "ms"
	}
	request := make([]byte, 0, 2048)
	for _, body := range bodies {
		for _, line := range []object{about, body} {
			var err error
			if request, err = appendDSL(request, line); err != nil {
				return nil, fmt.Errorf("write a search: %w", err)
			}
			request = append(request, '\n')
		}
	}
	if err := tooLong(len(request)); err != nil {
		return nil, err
	}
	a, err := c.read(ctx, http.MethodPost, "/_msearch?filter_path="+foundPath, request)
	if err != nil {
		return nil, unavailable(err)
	}
	if f := a.failed(); f != nil {
		return nil, searchFailure(f)
	}
	var told struct {
		Responses []found `json:"responses"`
	}
	if err := quickjson.Unmarshal(a.body, &told); err != nil {
		return nil, unavailable(fmt.Errorf("read the answer of opensearch: %w", err))
	}
	if len(told.Responses) != len(bodies) {
		return nil, unavailable(fmt.Errorf("opensearch answered %d of %d searches", len(told.Responses), len(bodies)))
	}
	for _, r := range told.Responses {
		if r.Status/100 == 2 {
			continue
		}
		if bytes.Contains(r.Error, []byte("too_many_buckets_exception")) {
			return nil, tooManyGroups()
		}
		f := &failure{status: r.Status}
		var e engineError
		if json.Unmarshal(r.Error, &e) == nil {
			f.kind, f.reason = e.deepest()
		}
		return nil, searchFailure(f)
	}
	return told.Responses, nil
}

// What OpenSearch calls an index that is not there, and one that is closed.
const (
	missingIndex = "index_not_found_exception"
	closedIndex  = "index_closed_exception"
)

// searchFailure tells a query that is too much for OpenSearch from an
// OpenSearch that does not work. Any other refusal is this package's fault.
func searchFailure(f *failure) error {
	switch {
	case f.kind == missingIndex:
		return unavailable(errors.Join(errIndexGone, f))
	case f.kind == closedIndex:
		return unavailable(f)
	case f.status == http.StatusRequestEntityTooLarge: // of an index that takes less than others
		return doc.Errorf(doc.QueryTooCostly, "what the query becomes is longer than the index takes at once").Because(f)
	case strings.Contains(f.kind, "too_many") || strings.Contains(f.reason, "too_many") ||
		strings.Contains(f.reason, "maxClauseCount") || strings.Contains(f.reason, "nested depth"):
		return doc.Errorf(doc.QueryTooCostly, "the filter has more conditions than the index takes at once").
			With("limit", maxQueryClauses).Because(f)
	case strings.Contains(f.kind, "task_cancelled"):
		return unavailable(f)
	case f.status == http.StatusBadRequest:
		return errors.Join(errors.New("opensearch does not take a compiled query"), f)
	}
	return unavailable(f)
}
