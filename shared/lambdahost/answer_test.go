package lambdahost

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/httpapi"
)

func asking(encodings ...string) events.APIGatewayV2HTTPRequest {
	e := v2("GET", "/docs", "")
	if len(encodings) > 0 {
		e.Headers = map[string]string{"accept-encoding": strings.Join(encodings, ",")}
	}
	return e
}

func page(n int) *httpapi.Response {
	body := []byte(`{"documents":[` + strings.Repeat(`{"name":"Ada"},`, n/15) + `0]}`)
	return &httpapi.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

func TestCompression(t *testing.T) {
	big := page(100_000)
	res, err := HTTP(&echo{res: big})(t.Context(), asking("br", "gzip;q=0.5"))
	if err != nil || !res.IsBase64Encoded || res.Headers["Content-Encoding"] != "gzip" || res.Headers["Vary"] != "Accept-Encoding" {
		t.Fatalf("%v, %v", res.Headers, err)
	}
	packed, err := base64.StdEncoding.DecodeString(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(r); err != nil || !bytes.Equal(plain, big.Body) {
		t.Errorf("%d bytes came back, %v", len(plain), err)
	}
	if big.Header.Get("Content-Encoding") != "" {
		t.Error("the handler's own answer was changed")
	}

	for name, c := range map[string]struct {
		res       *httpapi.Response
		encodings []string
		vary      bool
	}{
		"not asked for":     {page(100_000), nil, true},
		"asked for another": {page(100_000), []string{"br"}, true},
		"refused":           {page(100_000), []string{"gzip;q=0", "*"}, true},
		"unreadable":        {page(100_000), []string{"gzip;q=much"}, true},
		"small":             {page(1000), []string{"gzip"}, false},
		"a strong tag":      {&httpapi.Response{Status: 200, Header: http.Header{"Etag": {`"1"`}}, Body: page(100_000).Body}, []string{"gzip"}, false},
		"nothing there":     {&httpapi.Response{Status: 204, Header: http.Header{}}, []string{"gzip"}, false},
	} {
		res, err := HTTP(&echo{res: c.res})(t.Context(), asking(c.encodings...))
		if err != nil || res.IsBase64Encoded || res.Headers["Content-Encoding"] != "" || res.Body != string(c.res.Body) || (res.Headers["Vary"] != "") != c.vary {
			t.Errorf("%s: %v, %v", name, res.Headers, err)
		}
	}
	if res, err := HTTP(&echo{res: page(100_000)})(t.Context(), asking("*")); err != nil || !res.IsBase64Encoded {
		t.Errorf("any coding: %v, %v", res.Headers, err)
	}
	// A REST API would send the base64 on as it is.
	rest, err := REST(&echo{res: page(100_000)})(t.Context(), events.APIGatewayProxyRequest{Headers: map[string]string{"Accept-Encoding": "gzip"}})
	if err != nil || rest.IsBase64Encoded || rest.Body != string(big.Body) {
		t.Errorf("%v, %v", rest.Headers, err)
	}
}

// An answer is measured as it travels: in JSON, where quotes count twice.
func TestAnAnswerThatIsTooLargeSaysHowToGetIt(t *testing.T) {
	const limit = 6 << 20
	quotes := func(n int) *httpapi.Response {
		return &httpapi.Response{Status: 200, Header: http.Header{}, Body: bytes.Repeat([]byte{'"'}, n)}
	}
	for name, c := range map[string]struct {
		res    *httpapi.Response
		status int
	}{
		"5 MB of text":   {&httpapi.Response{Status: 200, Header: http.Header{}, Body: bytes.Repeat([]byte{'x'}, 5_000_000)}, 200},
		"5 MB of quotes": {quotes(5_000_000), 413},
		"3 MB of quotes": {quotes(3_000_000), 200},
		"7 MB of text":   {&httpapi.Response{Status: 200, Header: http.Header{}, Body: bytes.Repeat([]byte{'x'}, 7_000_000)}, 413},
	} {
		httpAnswer, err := HTTP(&echo{res: c.res})(t.Context(), asking())
		if err != nil || httpAnswer.StatusCode != c.status {
			t.Errorf("%s: %d, %v", name, httpAnswer.StatusCode, err)
		}
		restAnswer, err := REST(&echo{res: c.res})(t.Context(), events.APIGatewayProxyRequest{})
		if err != nil || restAnswer.StatusCode != c.status {
			t.Errorf("%s: %d, %v", name, restAnswer.StatusCode, err)
		}
		if c.status == 413 && (!strings.Contains(httpAnswer.Body, "/problems/request-too-large") || !strings.Contains(httpAnswer.Body, "ask for less")) {
			t.Errorf("%s: %s", name, httpAnswer.Body)
		}
		var travels bytes.Buffer
		e := json.NewEncoder(&travels)
		e.SetEscapeHTML(false)
		if err := e.Encode(httpAnswer); err != nil || travels.Len() > limit {
			t.Errorf("%s: %d bytes, %v", name, travels.Len(), err)
		}
	}
	if res, err := HTTP(&echo{res: quotes(5_000_000)})(t.Context(), asking("gzip")); err != nil || res.StatusCode != 200 {
		t.Errorf("compressed: %d, %v", res.StatusCode, err)
	}
}
