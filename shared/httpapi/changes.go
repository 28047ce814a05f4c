package httpapi

import (
	"context"
	"net/http"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

const standardChanges = 100

// readChanges answers GET /changes.
func (d *documents) readChanges(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only("collection", "after", "limit"); err != nil {
		return nil, err
	}
	var q store.ChangesQuery
	var err error
	if name, given := c.query["collection"]; given {
		if q.Collection, err = doc.ParseCollection(name); err != nil {
			return nil, inParameter(err, "collection")
		}
	}
	if q.After, err = c.query.cursor(); err != nil {
		return nil, err
	}
	if q.Limit, err = c.query.limit(standardChanges, largestPage); err != nil {
		return nil, err
	}
	page, err := d.store.Changes(ctx, q)
	if err != nil {
		if doc.KindOf(err) == doc.InvalidCursor {
			err = inParameter(err, "after")
		}
		return nil, err
	}
	body := append([]byte(nil), `{"changes":[`...)
	for i, change := range page.Changes {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"id":`...)
		body = appendText(body, string(change.ID))
		body = append(body, `,"version":`...)
		body = appendVersion(body, change.Version)
		if change.Deleted {
			body = append(body, `,"deleted":true}`...)
		} else {
			body = append(body, `,"deleted":false}`...)
		}
	}
	body = append(body, `],"next":`...)
	body = appendText(body, page.Next)
	body = append(body, `,"safeThrough":`...)
	body = appendTime(body, page.SafeThrough)
	return reply(http.StatusOK, typeJSON, append(body, '}')), nil
}
