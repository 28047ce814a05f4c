package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"holdfast/shared/store"
)

const standardChanges = 100

// readChanges answers GET /changes.
func (d *documents) readChanges(ctx context.Context, c *call) (*Response, error) {
	p, err := c.query.page("changes", standardChanges)
	if err != nil {
		return nil, err
	}
	page, err := d.store.Changes(ctx, store.ChangesQuery{Collection: p.collection, After: p.after, Limit: p.limit})
	if err != nil {
		return nil, ofCursor(err)
	}
	body := append([]byte(nil), `{"changes":[`...)
	for i, change := range page.Changes {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendStanding(body, change.ID, change.Version)
		if change.Deleted {
			body = append(body, `,"deleted":true}`...)
		} else {
			body = append(body, `,"deleted":false}`...)
		}
	}
	body = append(body, `],"next":`...)
	body = appendText(body, p.cursor(page.Next))
	body = append(body, `,"safeThrough":`...)
	body = appendTime(body, page.SafeThrough)
	// A page may be short, or empty, although more follows, and of one collection
	// next goes on with the time: neither tells a reader that it may wait.
	body = append(body, `,"end":`...)
	body = strconv.AppendBool(body, page.End)
	return reply(http.StatusOK, typeJSON, append(body, '}')), nil
}
