package httpapi

import (
	"context"
	"net/http"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

const (
	standardPage = 25
	largestPage  = 1000
	// pageBytes is how much data a page is asked for. What stands around the
	// data of a thousand documents then fits as well, most often.
	pageBytes = answerBytes - 400_000
)

// prefix answers GET /docs?startsWith=.
func (d *documents) prefix(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only("startsWith", "limit", "after", "matches", "exclude"); err != nil {
		return nil, err
	}
	text, given := c.query["startsWith"]
	if !given {
		return nil, inParameter(doc.Errorf(doc.InvalidRequest, "documents are listed by prefix, /docs?startsWith=users/1/; across roots use POST /query"), "startsWith")
	}
	var q store.PrefixQuery
	var err error
	if q.Prefix, err = doc.ParsePrefix(text); err != nil {
		return nil, inParameter(err, "startsWith")
	}
	if q.Limit, err = c.query.limit(standardPage, largestPage); err != nil {
		return nil, err
	}
	if q.Keep, err = keep(c.query); err != nil {
		return nil, err
	}
	l := listingOf("documents", q.Prefix.String(), c.query.said("matches"), c.query.said("exclude"))
	if q.After, err = c.query.after(l); err != nil {
		return nil, err
	}
	q.MaxBytes = pageBytes
	for {
		page, err := d.store.Prefix(ctx, q)
		if err != nil {
			return nil, ofCursor(err)
		}
		page.Next = l.cursor(page.Next)
		body, fit := appendPage(page)
		if fit == len(page.Documents) {
			return reply(http.StatusOK, typeJSON, body), nil
		}
		// In an answer they are longer than the store could know. It alone can say
		// where a page begins, so it is asked for as many as fit.
		q.Limit = max(fit, 1)
	}
}

// appendPage writes a page of documents and says how many fit an answer. Where
// that is not all of them the text is of no use. One always fits: a document's
// JSON is at most some seven times its 400 KB in the table.
func appendPage(page store.PrefixPage) (body []byte, fit int) {
	left := newBudget(len(page.Next) + 64)
	body = append(body, `{"documents":[`...)
	for i, found := range page.Documents {
		begin := len(body)
		if i > 0 {
			body = append(body, ',')
		}
		body = appendEnvelope(body, found)
		if !left.take(body[begin:]) {
			return nil, i
		}
	}
	body = append(body, ']')
	return append(appendNext(body, page.Next), '}'), len(page.Documents)
}

// keep makes the filter of the parameters matches and exclude, which look at
// what follows the prefix; nil without them.
func keep(q query) (func(rest string) bool, error) {
	patterns := map[string]glob{}
	for _, name := range []string{"matches", "exclude"} {
		text, given := q[name]
		if !given {
			continue
		}
		g, err := parseGlob(text)
		if err != nil {
			return nil, inParameter(err, name)
		}
		patterns[name] = g
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	matches, wanted := patterns["matches"]
	exclude, unwanted := patterns["exclude"]
	return func(rest string) bool {
		return (!wanted || matches.match(rest)) && (!unwanted || !exclude.match(rest))
	}, nil
}
