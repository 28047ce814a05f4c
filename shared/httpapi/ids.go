package httpapi

import (
	"context"
	"net/http"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/guid"
)

// largestIDs is the most identifiers of one answer.
const largestIDs = 1000

// makeIDs answers GET /ids with new identifiers, each answer with others.
func (d *documents) makeIDs(_ context.Context, c *call) (*Response, error) {
	if err := c.query.only("layout", "count"); err != nil {
		return nil, err
	}
	layout := guid.Text
	if text, given := c.query["layout"]; given {
		layout = guid.Layout(text)
		if !layout.Known() {
			return nil, inParameter(doc.Errorf(doc.InvalidRequest, "layout is one of %s", layoutNames()), "layout")
		}
	}
	count, err := c.query.number("count", 1, largestIDs)
	if err != nil {
		return nil, err
	}
	body := append([]byte(nil), `{"ids":[`...)
	for i, id := range d.ids.Make(layout, count) {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendText(body, id.String())
	}
	res := reply(http.StatusOK, typeJSON, append(body, `]}`...))
	res.Header.Set("Cache-Control", "no-store") // nobody may get them a second time
	return res, nil
}

func layoutNames() string {
	var names []string
	for _, l := range guid.Layouts() {
		names = append(names, string(l))
	}
	return strings.Join(names, ", ")
}
