package client

import (
	"context"
	"encoding/json"
)

// Explanation is what a query becomes, and what is told of it to people. Text is
// the answer as it came.
type Explanation struct {
	Text    []byte `json:"-"`
	Explain struct {
		Indexes []struct {
			Collection string      `json:"collection"`
			Generation json.Number `json:"generation"` // "": none yet
			Index      string      `json:"index"`
		} `json:"indexes"`
		Filter struct {
			DecidedBy string `json:"decidedBy"`
			Undecided []struct {
				Path string `json:"path"`
				Why  string `json:"why"`
			} `json:"undecided"`
		} `json:"filter"`
		Search *AskedOfIndex `json:"search"` // nil: nothing is asked
		Count  *AskedOfIndex `json:"count"`  // likewise
		Where  *struct {
			Expression  string      `json:"expression"`
			EvaluatedOn string      `json:"evaluatedOn"`
			Budget      json.Number `json:"budget"`
		} `json:"where"`
		Limits struct {
			Examined json.Number `json:"examined"`
			TimeMs   json.Number `json:"timeMs"`
			Clauses  struct {
				Used    json.Number `json:"used"`
				Allowed json.Number `json:"allowed"`
			} `json:"clauses"`
		} `json:"limits"`
		Notice string `json:"notice"`
	} `json:"explain"`
}

// AskedOfIndex is what OpenSearch is asked first for one purpose.
type AskedOfIndex struct {
	Indexes []string        `json:"indexes"`
	Body    json.RawMessage `json:"body"`
	Beside  []struct {
		Why  string          `json:"why"`
		Body json.RawMessage `json:"body"`
	} `json:"beside"`
}

// Explain asks what becomes of a query, which is not run.
func (c *Client) Explain(ctx context.Context, q Query) (e Explanation, err error) {
	q.Explain = true
	e.Text, err = c.query(ctx, q, &e)
	return e, err
}
