package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// explain answers with what a query becomes: it has been read and checked like
// any other, but nothing is waited for, searched or looked at. So there is
// nothing to say of how current the answer is.
func (q *queries) explain(ctx context.Context, asked *queryRequest) (*Response, error) {
	r := q.request(asked)
	r.From, r.MaxBytes = asked.reads.sources, answerBytes
	e, err := q.o.Search.Explain(ctx, r)
	switch {
	case errors.Is(err, search.ErrTooLong):
		return nil, explanationTooLong()
	case err != nil:
		return nil, atMember(err)
	}
	body := appendExplanation(nil, asked, e)
	if !newBudget(0).take(body) {
		return nil, explanationTooLong()
	}
	return reply(http.StatusOK, typeJSON, body), nil
}

// explanationTooLong refuses to explain a query, which may be fine otherwise.
func explanationTooLong() error {
	return at(doc.Errorf(doc.QueryTooCostly, "what the query becomes is longer than an answer may be").
		With("limit", answerBytes), "/explain")
}

// appendExplanation writes the answer.
func appendExplanation(dst []byte, asked *queryRequest, e search.Explanation) []byte {
	dst = append(dst, `{"explain":{"indexes":[`...)
	for i, x := range e.Indexes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(append(dst, `{"collection":`...), string(x.Collection)), `,"generation":`...)
		if x.Generation == nil {
			dst = append(dst, `null,"index":null}`...)
			continue
		}
		dst = append(strconv.AppendInt(dst, int64(x.Generation.Number), 10), `,"index":`...)
		dst = append(appendText(dst, x.Index), '}')
	}
	dst = append(dst, `],"filter":{"decidedBy":`...)
	dst = append(appendText(dst, string(e.DecidedBy)), `,"undecided":[`...)
	for i, u := range e.Undecided {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if u.Path != "" {
			dst = append(appendText(append(dst, `"path":`...), u.Path), ',')
		}
		dst = append(appendText(append(dst, `"why":`...), u.Why), '}')
	}
	dst = append(dst, `]}`...)
	dst = appendAsked(dst, "search", e.Search, nil)
	dst = appendAsked(dst, "count", e.Count, nil)
	dst = appendAsked(dst, "aggregate", e.Aggregate, asked.aggregationNames)
	if asked.where != nil {
		dst = append(dst, `,"where":{"expression":`...)
		dst = append(appendText(dst, asked.whereText), `,"language":"CEL","evaluatedOn":"every document that the filter leaves","budget":`...)
		dst = append(strconv.AppendInt(dst, int64(e.Budget), 10), '}')
	}
	if asked.verified {
		dst = append(dst, `,"read":"verified"`...)
	}
	dst = append(dst, `,"limits":{"examined":`...)
	dst = append(strconv.AppendInt(dst, int64(e.Budget), 10), `,"timeMs":`...)
	dst = append(strconv.AppendInt(dst, e.Time.Milliseconds(), 10), `,"clauses":{"used":`...)
	dst = append(strconv.AppendInt(dst, int64(e.Clauses), 10), `,"allowed":`...)
	dst = append(strconv.AppendInt(dst, int64(e.MostClauses), 10), `}}`...)
	if e.Nothing != "" {
		dst = appendText(append(dst, `,"notice":`...), e.Nothing)
	}
	return append(dst, `}}`...)
}

// appendAsked writes a member for a request to OpenSearch, where there is one:
// with one body, or with one for each of the names, of which there may be none.
func appendAsked(dst []byte, member string, a *search.Asked, names []namedAggregation) []byte {
	if a == nil {
		return dst
	}
	dst = append(appendText(append(dst, ','), member), `:{"indexes":[`...)
	for i, index := range a.Indexes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, index)
	}
	dst = append(dst, ']')
	if names == nil {
		dst = append(append(dst, `,"body":`...), a.Bodies[0]...)
	} else {
		dst = append(dst, `,"bodies":{`...)
		for i, body := range a.Bodies {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(appendText(dst, names[i].name), ':'), body...)
		}
		dst = append(dst, '}')
	}
	if len(a.Beside) > 0 {
		dst = append(dst, `,"beside":[`...)
		for i, b := range a.Beside {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(append(dst, `{"why":`...), b.Why), `,"body":`...)
			dst = append(append(dst, b.Body...), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
