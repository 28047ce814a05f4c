package httpapi

import (
	"context"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
)

// answerPage is a page of documents on its way to the answer.
type answerPage struct {
	search.Result
	cursors []func() (string, error) // by document: the page that begins after it
	dropped int                      // no longer what the index said
}

// find searches and, where that was asked for, reads what was found again.
func (q *queries) find(ctx context.Context, asked *queryRequest, r search.Request) (*answerPage, error) {
	if asked.verified {
		return q.verified(ctx, asked, r)
	}
	result, err := q.search(ctx, asked, r)
	if err != nil {
		return nil, err
	}
	page := &answerPage{Result: result}
	for i := range result.Documents {
		page.cursors = append(page.cursors, func() (string, error) { return result.CursorAfter(i) })
	}
	return page, nil
}

// verified fills a page with documents as the table holds them now. What is
// gone or does not match any more is dropped, and the page filled up from the
// index. Its order is that of the index, as are counts and aggregates; where a
// document was dropped, those are seen not to be exact.
func (q *queries) verified(ctx context.Context, asked *queryRequest, r search.Request) (*answerPage, error) {
	page := &answerPage{}
	examined, read, bytes := 0, 0, 0
	for limit := r.Limit; ; {
		result, err := q.search(ctx, asked, r)
		if err != nil {
			return nil, err
		}
		if page.Count == 0 && r.Count {
			page.Count, page.CountExact = result.Count, result.CountExact
		}
		if len(r.Aggregate) > 0 {
			page.Aggregates = result.Aggregates
		}
		r.Count, r.Aggregate = false, nil // once is enough
		examined += result.Examined
		page.WhereErrors += result.WhereErrors
		page.Next = result.Next
		for rest := result.Documents; len(rest) > 0; {
			current, taken, err := q.reread(ctx, rest)
			if err != nil {
				return nil, err
			}
			done := len(result.Documents) - len(rest)
			for i, now := range current {
				read++
				matches := now != nil && q.stillMatches(ctx, asked, now, page)
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if !matches {
					page.dropped++
					continue
				}
				page.Documents = append(page.Documents, *now)
				page.cursors = append(page.cursors, func() (string, error) { return result.CursorAfter(done + i) })
			}
			rest = rest[taken:]
			bytes += sizeInMemory(current)
			if len(rest) > 0 && (bytes > answerBytes || read >= search.MaxExamined) {
				if page.Next, err = result.CursorAfter(len(result.Documents) - len(rest) - 1); err != nil {
					return nil, err
				}
				break
			}
		}
		r.Limit, r.After = limit-len(page.Documents), page.Next
		if page.Next == "" || r.Limit == 0 || bytes > answerBytes || max(read, examined) >= search.MaxExamined {
			page.Examined = max(read, examined)
			if page.dropped > 0 {
				page.CountExact = false
				for i := range page.Aggregates {
					page.Aggregates[i].Exact = false
				}
			}
			return page, nil
		}
	}
}

// reread loads the first of the documents anew: for each of the taken ones its
// current version, or nil where there is none.
func (q *queries) reread(ctx context.Context, found []doc.Document) (current []*doc.Document, taken int, err error) {
	ids := make([]doc.ID, min(len(found), mostIDs))
	for i := range ids {
		ids[i] = found[i].ID
	}
	result, err := q.o.Loader.LoadMany(ctx, ids, answerBytes)
	if err != nil {
		return nil, 0, err
	}
	unread := make(map[doc.ID]bool, len(result.Remaining))
	for _, id := range result.Remaining {
		unread[id] = true
	}
	for _, id := range ids {
		if unread[id] {
			break
		}
		if d, exists := result.Documents[id]; exists {
			current = append(current, &d)
		} else {
			current = append(current, nil)
		}
	}
	if len(current) == 0 {
		return nil, 0, doc.Errorf(doc.Throttled, "the documents cannot be read again at the moment")
	}
	return current, len(current), nil
}

// stillMatches decides anew about a document that was read again.
func (q *queries) stillMatches(ctx context.Context, asked *queryRequest, now *doc.Document, page *answerPage) bool {
	if !filter.Match(asked.filter, now) {
		return false
	}
	if asked.where == nil {
		return true
	}
	holds, err := asked.where(ctx, now.Data)
	if err != nil {
		page.WhereErrors++
	}
	return err == nil && holds
}

// sizeInMemory is what the documents take in an answer.
func sizeInMemory(docs []*doc.Document) int {
	n := 0
	for _, d := range docs {
		if d != nil {
			n += len(appendEnvelope(nil, *d))
		}
	}
	return n
}
