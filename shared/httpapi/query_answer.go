package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/value"
)

// write writes the answer to a query. Its documents end where the answer is
// full, with the cursor of those that follow.
func (q *queries) write(ctx context.Context, asked *queryRequest, page *answerPage, staleness freshness.Staleness) ([]byte, error) {
	staleness.Dropped = page.dropped
	current, err := json.Marshal(staleness)
	if err != nil {
		return nil, fmt.Errorf("writing the staleness: %w", err)
	}
	var aggregates []byte
	if asked.aggregations != nil {
		aggregates = appendAggregates(nil, asked.aggregationNames, page.Aggregates)
	}
	texts := make([][]byte, len(page.Documents))
	sizes := make([]size, len(page.Documents))
	for i, d := range page.Documents {
		texts[i] = page.appendDocument(i, asked, d)
		sizes[i] = sizeOf(texts[i]).plus(size{1, 1})
	}
	frame := sizeOf(current).plus(sizeOf(aggregates)).plus(size{256, 512})
	next := page.Next
	var references *included
	var ids []doc.ID
	n := len(texts)
	for {
		left := newBudget(0).less(frame).less(sizeOf([]byte(next)))
		if left.answer < 0 || left.payload < 0 {
			return nil, doc.Errorf(doc.QueryTooCostly, "the aggregations have more to tell than fits an answer; a lower limit makes them shorter").
				With("limit", answerBytes).With("pointer", "/aggregate")
		}
		n = fitting(sizes[:n], left)
		if asked.include != nil {
			if references == nil {
				references = newIncluded(q.o.Loader, asked.include, page.Documents[:n])
			}
			if n, ids, err = references.fit(ctx, page.Documents[:n], sizes[:n], left); err != nil {
				return nil, err
			}
		}
		if n == len(texts) {
			break
		}
		// The page ends early; its cursor takes room too.
		cut, err := page.cursors[n-1]()
		if err != nil {
			return nil, fmt.Errorf("write a cursor: %w", err)
		}
		if len(cut) <= len(next) {
			next = cut
			break
		}
		next = cut
	}
	left := newBudget(0).less(frame).less(sizeOf([]byte(next)))
	body := append(make([]byte, 0, answerLength(sizes[:n], frame, next)), `{"documents":[`...)
	for i, text := range texts[:n] {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
		left = left.less(sizes[i])
	}
	body = append(body, ']')
	if asked.include != nil {
		body = references.append(body, ids, left)
	}
	body = append(body, aggregates...)
	if asked.count {
		body = append(body, `,"count":{"value":`...)
		body = strconv.AppendInt(body, int64(page.Count), 10)
		body = append(body, `,"exact":`...)
		body = strconv.AppendBool(body, page.CountExact)
		body = append(body, '}')
	}
	if page.Examined > 0 || asked.where != nil || asked.verified {
		body = append(body, `,"examined":`...)
		body = strconv.AppendInt(body, int64(page.Examined), 10)
	}
	if asked.where != nil {
		body = append(body, `,"whereErrors":`...)
		body = strconv.AppendInt(body, int64(page.WhereErrors), 10)
	}
	if next != "" {
		body = append(body, `,"next":`...)
		body = appendText(body, next)
	}
	body = append(body, `,"staleness":`...)
	body = append(body, current...)
	return append(body, '}'), nil
}

// appendDocument writes the i-th document, or what of it was asked for. What
// the index has as text need not be read and written again.
func (p *answerPage) appendDocument(i int, asked *queryRequest, d doc.Document) []byte {
	switch {
	case asked.projected:
		return appendEnvelopeWith(nil, d, value.Project(d.Data, asked.fields))
	case i < len(p.Texts) && p.Texts[i] != "":
		return appendEnvelopeText(make([]byte, 0, len(p.Texts[i])+len(d.ID)+envelopeLength), d, p.Texts[i])
	}
	return appendEnvelope(nil, d)
}

// fitting is how many of the first texts fit; one always does.
func fitting(sizes []size, left budget) int {
	for i, s := range sizes {
		if !left.has(s) && i > 0 {
			return i
		}
		left = left.less(s)
	}
	return len(sizes)
}

func answerLength(sizes []size, frame size, next string) int {
	n := frame.answer + len(next)
	for _, s := range sizes {
		n += s.answer
	}
	return n
}
