package local

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"

	"holdfast/shared/doc"
)

// What is no HTTP, Go's server refuses before there is a request that it could
// hand to anybody: a path with a % that two hexadecimal digits do not follow, a
// method or a header name that is no token, no Host or two, two lengths of one
// body, a transfer coding other than chunked, headers of more than a megabyte,
// another protocol. It does so in a line of plain text. API Gateway refuses the
// same in JSON, so here these refusals are replaced, on the connection, by
// problems like all others.
//
// OPTIONS * reaches the gateway like any other request. Left as the server makes it is the answer 417, without a body, to an Expect
// that is not 100-continue; and nothing at all is answered to a client that does
// not come to the end of its headers in time.

// problemListener listens for connections on which refusals are problems.
type problemListener struct{ net.Listener }

// Accept waits for the next connection.
func (l problemListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return problemConn{c}, nil
}

// problemConn replaces the refusals among what is written to a connection.
type problemConn struct{ net.Conn }

// Write writes what the server answers.
func (c problemConn) Write(b []byte) (int, error) {
	refused := serverRefusal(b)
	if refused == nil {
		return c.Conn.Write(b)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\n", refused.status, http.StatusText(refused.status))
	h, body := refused.header(newRequestID()), refused.body()
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if err := h.Write(&text); err != nil {
		return 0, err
	}
	text.WriteString("\r\n")
	text.Write(body)
	if _, err := c.Conn.Write(text.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite ends the answer; the server does so when it has refused a request
// whose headers have no end.
func (c problemConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// plainRefusal is a refusal of the server's own, which it writes at once and in
// whole. No part of another answer looks like it from its beginning to its end.
var plainRefusal = regexp.MustCompile(`^HTTP/1\.1 ([0-9]{3}) [A-Za-z ]*(?:: )?([^\r\n]*)\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n[ -~]*$`)

// serverRefusal is the problem in the place of a refusal of the server's own;
// nil for every other answer.
func serverRefusal(b []byte) *refusal {
	m := plainRefusal.FindSubmatch(b)
	if m == nil {
		return nil
	}
	status, _ := strconv.Atoi(string(m[1])) // three digits
	if status == http.StatusRequestHeaderFieldsTooLarge {
		return headersTooLarge(0)
	}
	detail := string(m[2])
	if detail == "" {
		detail = "its method, its path, with two hexadecimal digits after each %, a header or the length of its body is malformed"
	}
	return &refusal{status: status, kind: doc.InvalidRequest, title: "Invalid request", detail: "this is no HTTP request: " + detail, close: true}
}
