package lambdahost

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/httpapi"
)

const (
	// maxAnswer is the largest answer that a function may return, in bytes of
	// JSON, with room for what is not the body: a gateway passes 10 KB of headers.
	//
	// Source: AWS Lambda Developer Guide, "Lambda quotas",
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	maxAnswer = 6<<20 - 16<<10

	// compressFrom is the size from which a body is compressed, in bytes. Below,
	// what is saved on the way is lost in the function.
	compressFrom = 16 << 10
)

// fit is an answer that a function may return: the given one, or, where that has
// too many bytes, a refusal that says how to get it in parts.
func fit(r *httpapi.Request, res *httpapi.Response) *httpapi.Response {
	size := payloadSize(res)
	if size <= maxAnswer {
		return res
	}
	return httpapi.Refuse(r, doc.Errorf(doc.RequestTooLarge,
		"the answer has more bytes than a function may return; ask for less: a lower limit, fewer ids or fields").
		With("limit", maxAnswer).With("actual", size))
}

// compress gives an answer in gzip, where its client takes that and it is worth
// it, or as it is. What carries an entity tag stays as it is: the tag is strong,
// and the compressed form would be another representation under the same one.
//
// An HTTP API sends what a function gives in base64 as bytes. A REST API does so
// only for types that it was told of and that the client accepts by name, so
// nothing is compressed there.
func compress(r *httpapi.Request, res *httpapi.Response) *httpapi.Response {
	if len(res.Body) < compressFrom || res.Header.Get("Etag") != "" || res.Header.Get("Content-Encoding") != "" {
		return res
	}
	h := res.Header.Clone()
	h.Add("Vary", "Accept-Encoding")
	plain := &httpapi.Response{Status: res.Status, Header: h, Body: res.Body}
	if !takesGzip(r.Header.Values("Accept-Encoding")) {
		return plain
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return plain // the level is a constant of the package itself
	}
	_, writeErr := w.Write(res.Body)
	if closeErr := w.Close(); writeErr != nil || closeErr != nil || base64.StdEncoding.EncodedLen(packed.Len()) >= len(res.Body) {
		return plain
	}
	h = h.Clone()
	h.Set("Content-Encoding", "gzip")
	return &httpapi.Response{Status: res.Status, Header: h, Body: packed.Bytes()}
}

// takesGzip reads the codings that a client accepts (RFC 9110, section 12.5.3).
func takesGzip(values []string) bool {
	any, gzip := false, ""
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, params, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		weight := "1"
		if q, ok := params["q"]; ok {
			weight = q
		}
		switch coding {
		case "gzip", "x-gzip":
			gzip = weight
		case "*":
			any = wanted(weight)
		}
	}
	if gzip == "" {
		return any
	}
	return wanted(gzip)
}

func wanted(weight string) bool {
	q, err := strconv.ParseFloat(weight, 64)
	return err == nil && q > 0
}

// payload is how a body travels inside a function's answer.
func payload(res *httpapi.Response) (body string, isBase64 bool) {
	if res.Header.Get("Content-Encoding") == "" {
		return string(res.Body), false
	}
	return base64.StdEncoding.EncodeToString(res.Body), true
}

// payloadSize is the size of a body inside a function's answer. It is counted
// only where it can matter: one byte becomes at most six.
func payloadSize(res *httpapi.Response) int {
	if res.Header.Get("Content-Encoding") != "" {
		return base64.StdEncoding.EncodedLen(len(res.Body))
	}
	if 6*len(res.Body) <= maxAnswer {
		return len(res.Body)
	}
	var n counter
	e := json.NewEncoder(&n)
	e.SetEscapeHTML(false) // as the Lambda runtime writes it
	if err := e.Encode(string(res.Body)); err != nil {
		return len(res.Body) // a string always has its JSON
	}
	return int(n)
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// joined are the headers of an answer, several values of one by commas.
func joined(h http.Header) map[string]string {
	m := make(map[string]string, len(h))
	for name, values := range h {
		m[name] = strings.Join(values, ", ")
	}
	return m
}
