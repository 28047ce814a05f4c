package search

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// roundTripper signs requests, where there are credentials, and sends them. The
// body is read once for its hash and a second time on the wire, from the same
// bytes. It never retries.
type roundTripper struct {
	next        http.RoundTripper
	credentials aws.CredentialsProvider // nil: not signed
	signer      *v4.Signer
	service     string
	region      string
	now         func() time.Time
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.credentials != nil {
		signed, err := t.sign(req)
		if err != nil {
			return nil, err
		}
		req = signed
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		// Wrapped, because opensearchtransport sends a request again, its body
		// already used, when it meets a bare io.EOF.
		return nil, fmt.Errorf("talk to opensearch: %w", err)
	}
	return res, nil
}

func (t *roundTripper) sign(req *http.Request) (*http.Request, error) {
	ctx := req.Context()
	credentials, err := t.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("retrieve credentials for opensearch: %w", err)
	}
	hash := sha256.New()
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("read the request's body: %w", err)
		}
		_, err = io.Copy(hash, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return nil, fmt.Errorf("hash the request's body: %w", err)
		}
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	signed := req.Clone(ctx)
	signed.Header.Set("X-Amz-Content-Sha256", sum)
	if err := t.signer.SignHTTP(ctx, credentials, signed, sum, t.service, t.region, t.now()); err != nil {
		return nil, fmt.Errorf("sign a request to opensearch: %w", err)
	}
	return signed, nil
}

// answer is a response read to its end.
type answer struct {
	status int
	body   []byte
}

// failure is an answer that is not a success. Its text is for logs.
type failure struct {
	status int
	kind   string // OpenSearch's error type
	reason string
}

func (f *failure) Error() string {
	return fmt.Sprintf("opensearch answered %d %s: %s", f.status, f.kind, f.reason)
}

// maxReason bounds what is kept of OpenSearch's explanations.
const maxReason = 500

// connectionAgain reports whether a read that failed so is worth one more try.
func connectionAgain(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded)
}
