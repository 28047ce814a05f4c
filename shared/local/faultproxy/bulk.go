package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// RejectItems keeps operations of an OpenSearch bulk request from the server
// and answers for them with a status and an error type of its own; the others
// are carried out. reject decides by the document's id.
func RejectItems(status int, kind string, reject func(id string) bool) Fault {
	return Rewrite(fmt.Sprintf("reject items with %d", status),
		func(body []byte) []byte {
			var kept []byte
			for _, op := range bulkOperations(body) {
				if !reject(op.id) {
					kept = append(kept, op.lines...)
				}
			}
			if len(kept) == 0 {
				return []byte("\n") // refused as a whole, and then nothing of that answer is used
			}
			return kept
		},
		func(request, answer []byte) []byte {
			var told struct {
				Items []json.RawMessage `json:"items"`
			}
			_ = json.Unmarshal(answer, &told) // without items there is nothing to mix in
			var items []json.RawMessage
			for _, op := range bulkOperations(request) {
				if reject(op.id) {
					items = append(items, fmt.Appendf(nil, `{"index":{"_id":%q,"status":%d,"error":{"type":%q,"reason":"rejected by the proxy"}}}`, op.id, status, kind))
				} else if len(told.Items) > 0 {
					items = append(items, told.Items[0])
					told.Items = told.Items[1:]
				}
			}
			whole, err := json.Marshal(map[string]any{"took": 1, "errors": true, "items": items})
			if err != nil {
				return answer
			}
			return whole
		})
}

type bulkOperation struct {
	id    string
	lines []byte
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
		ops = append(ops, bulkOperation{meta.Index.ID, body[:len(action)+len(source)+2]})
		body = after
	}
	return ops
}
