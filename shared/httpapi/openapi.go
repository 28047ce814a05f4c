package httpapi

import (
	"context"
	_ "embed"
	"net/http"
)

// openapiJSON is openapi.yaml as JSON. A test keeps the two equal, so that no
// function needs to read YAML.
//
//go:embed openapi.json
var openapiJSON []byte

// serveOpenAPI answers GET /openapi.json.
func serveOpenAPI(_ context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	return reply(http.StatusOK, typeJSON, openapiJSON), nil
}
