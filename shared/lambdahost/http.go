package lambdahost

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/doc"
	"holdfast/shared/httpapi"
)

// HTTP serves a handler to an API Gateway HTTP API (payload format 2.0). The
// returned function never fails: what goes wrong is an answer.
func HTTP(h httpapi.Handler) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		r, err := RequestV2(e)
		if err != nil {
			return ResponseV2(httpapi.Refuse(r, err)), nil
		}
		return ResponseV2(fit(r, compress(r, h.Serve(ctx, r)))), nil
	}
}

// REST serves a handler to an API Gateway REST API (payload format 1.0). The
// returned function never fails.
func REST(h httpapi.Handler) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return func(ctx context.Context, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		r, err := RequestV1(e)
		if err != nil {
			return ResponseV1(httpapi.Refuse(r, err)), nil
		}
		return ResponseV1(fit(r, h.Serve(ctx, r))), nil
	}
}

// Gateway serves a handler to whichever kind of API Gateway asks, by the
// version that the payload states; REST APIs state none.
func Gateway(h httpapi.Handler) func(context.Context, json.RawMessage) (any, error) {
	v2, v1 := HTTP(h), REST(h)
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		var format struct {
			Version string `json:"version"`
		}
		if err := json.Unmarshal(payload, &format); err != nil {
			return nil, fmt.Errorf("reading the gateway's event: %w", err)
		}
		if strings.HasPrefix(format.Version, "2.") {
			var e events.APIGatewayV2HTTPRequest
			if err := json.Unmarshal(payload, &e); err != nil {
				return nil, fmt.Errorf("reading the gateway's event of format 2.0: %w", err)
			}
			return v2(ctx, e)
		}
		var e events.APIGatewayProxyRequest
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, fmt.Errorf("reading the gateway's event of format 1.0: %w", err)
		}
		return v1(ctx, e)
	}
}

// defaultStage is the stage of an HTTP API that does not show in its URLs.
const defaultStage = "$default"

// RequestV2 is the request in an event of an HTTP API. The request is there also
// with an error, for the answer.
//
// rawPath is percent-decoded already, once: an encoded slash of the client is a
// slash here, and decoding again would change ids with a percent sign. It begins
// with the name of the stage, unless that is the default one, and with the base
// path of a custom domain.
func RequestV2(e events.APIGatewayV2HTTPRequest) (*httpapi.Request, error) {
	r := &httpapi.Request{
		Method:    e.RequestContext.HTTP.Method,
		Path:      e.RawPath,
		RawQuery:  e.RawQueryString,
		Header:    make(http.Header, len(e.Headers)),
		Principal: principalV2(e.RequestContext.Authorizer),
		ID:        e.RequestContext.RequestID,
	}
	_, pattern, _ := strings.Cut(e.RouteKey, " ")
	if base, own, ok := afterBase(r.Path, pattern, e.PathParameters["proxy"]); ok {
		r.Base, r.Path = base, own
	} else if stage := e.RequestContext.Stage; stage != "" && stage != defaultStage {
		base := "/" + stage
		if rest, ok := strings.CutPrefix(r.Path, base); ok && (rest == "" || rest[0] == '/') {
			r.Base, r.Path = base, rest
		}
	}
	for name, joined := range e.Headers { // several values come joined by commas
		r.Header.Set(name, joined)
	}
	var err error
	r.Body, err = body(e.Body, e.IsBase64Encoded)
	return r, err
}

// ResponseV2 is the answer for an HTTP API. Bodies are text unless they are
// compressed.
func ResponseV2(res *httpapi.Response) events.APIGatewayV2HTTPResponse {
	body, encoded := payload(res)
	return events.APIGatewayV2HTTPResponse{StatusCode: res.Status, Headers: joined(res.Header), Body: body, IsBase64Encoded: encoded}
}

// RequestV1 is the request in an event of a REST API. The request is there also
// with an error, for the answer.
//
// The path comes as the client encoded it, so it is decoded here.
func RequestV1(e events.APIGatewayProxyRequest) (*httpapi.Request, error) {
	r := &httpapi.Request{
		Method:    e.HTTPMethod,
		Path:      decodePath(e.Path),
		RawQuery:  queryV1(e).Encode(),
		Header:    make(http.Header, len(e.Headers)),
		Principal: principalV1(e.RequestContext),
		ID:        e.RequestContext.RequestID,
	}
	// The context's path has the stage, where the path itself does not. Both have
	// the base path of a custom domain.
	if stage, ok := strings.CutSuffix(e.RequestContext.Path, e.Path); ok {
		r.Base = stage
	}
	if base, own, ok := afterBase(r.Path, e.Resource, e.PathParameters["proxy"]); ok {
		r.Base, r.Path = r.Base+base, own
	}
	if len(e.MultiValueHeaders) > 0 {
		for name, values := range e.MultiValueHeaders {
			for _, v := range values {
				r.Header.Add(name, v)
			}
		}
	} else {
		for name, v := range e.Headers {
			r.Header.Set(name, v)
		}
	}
	var err error
	r.Body, err = body(e.Body, e.IsBase64Encoded)
	return r, err
}

// ResponseV1 is the answer for a REST API. Bodies are text.
func ResponseV1(res *httpapi.Response) events.APIGatewayProxyResponse {
	return events.APIGatewayProxyResponse{StatusCode: res.Status, Headers: joined(res.Header), Body: string(res.Body)}
}

// queryV1 are the parameters, which a REST API gives decoded.
func queryV1(e events.APIGatewayProxyRequest) url.Values {
	if len(e.MultiValueQueryStringParameters) > 0 {
		return e.MultiValueQueryStringParameters
	}
	q := make(url.Values, len(e.QueryStringParameters))
	for name, v := range e.QueryStringParameters {
		q.Set(name, v)
	}
	return q
}

func body(text string, encoded bool) ([]byte, error) {
	if !encoded {
		return []byte(text), nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, doc.Errorf(doc.InvalidRequest, "the gateway gave a body that is not base64").Because(err)
	}
	return b, nil
}

// principalV2 is who asks: the ARN of an IAM identity, or issuer and subject of
// a JWT. It is "" where the gateway authenticates nobody.
func principalV2(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) string {
	switch {
	case a == nil:
		return ""
	case a.IAM != nil && a.IAM.UserARN != "":
		return "iam:" + a.IAM.UserARN
	case a.JWT != nil && a.JWT.Claims["sub"] != "":
		return "jwt:" + a.JWT.Claims["iss"] + "#" + a.JWT.Claims["sub"]
	}
	return ""
}

func principalV1(c events.APIGatewayProxyRequestContext) string {
	if c.Identity.UserArn != "" {
		return "iam:" + c.Identity.UserArn
	}
	if claims, ok := c.Authorizer["claims"].(map[string]any); ok {
		if sub, ok := claims["sub"].(string); ok && sub != "" {
			iss, _ := claims["iss"].(string)
			return "jwt:" + iss + "#" + sub
		}
	}
	return ""
}
