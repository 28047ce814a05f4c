package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// RejectItems keeps operations of an OpenSearch bulk request from the server
// and answers for them with a status and an error type of its own; the others
// are carried out. reject decides by the document's id, and is asked once for
// each. The answer has the member items only.
func RejectItems(status int, kind string, reject func(id string) bool) Fault {
	return Fault{fmt.Sprintf("reject items with %d", status), func(p *Proxy, w http.ResponseWriter, r *http.Request, body []byte) {
		ops := bulkOperations(body)
		var kept []byte
		for i, op := range ops {
			if ops[i].rejected = reject(op.id); !ops[i].rejected {
				kept = append(kept, op.lines...)
			}
		}
		answer := reply{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}}
		var told struct {
			Items []json.RawMessage `json:"items"`
		}
		if len(kept) > 0 {
			var err error
			if answer, err = p.forward(r, kept); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			if err := json.Unmarshal(answer.body, &told); err != nil || answer.status != http.StatusOK {
				answer.write(w) // the server has its own opinion
				return
			}
		}
		var items [][]byte
		for _, op := range ops {
			switch {
			case op.rejected:
				items = append(items, fmt.Appendf(nil, `{"index":{"_id":%q,"status":%d,"error":{"type":%q,"reason":"rejected by the proxy"}}}`, op.id, status, kind))
			case len(told.Items) > 0:
				items = append(items, told.Items[0])
				told.Items = told.Items[1:]
			}
		}
		answer.body = append(append([]byte(`{"items":[`), bytes.Join(items, []byte(","))...), "]}"...)
		answer.write(w)
	}}
}

type bulkOperation struct {
	id       string
	lines    []byte
	rejected bool
}

// bulkOperations reads a bulk request of index operations, each of two lines.
func bulkOperations(body []byte) []bulkOperation {
	var ops []bulkOperation
	for len(body) > 0 {
		action, rest, _ := bytes.Cut(body, []byte("\n"))
		source, after, _ := bytes.Cut(rest, []byte("\n"))
		var meta struct {
			Index struct {
				ID string `json:"_id"`
			} `json:"index"`
		}
		if err := json.Unmarshal(action, &meta); err != nil {
			return ops
		}
		ops = append(ops, bulkOperation{id: meta.Index.ID, lines: body[:len(action)+len(source)+2]})
		body = after
	}
	return ops
}
