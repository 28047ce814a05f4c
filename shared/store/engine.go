package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"holdfast/shared/doc"
)

const (
	// smallTime and largeTime are how long one request may take, answer
	// included, that moves little or up to 16 MB: well above DynamoDB's slowest
	// answers and a small function's time to read them, well below its life, so
	// that a hung connection leaves time for another attempt.
	smallTime = 4 * time.Second
	largeTime = 10 * time.Second
	// maxAttempts bounds the attempts of one request when the context has no
	// deadline that ends them sooner: with the pauses between them, about five
	// seconds of throttling are sat out.
	maxAttempts = 10

	firstPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// engine makes requests to DynamoDB: one attempt at a time, each with its own
// time limit, reading the server's clock from the answers.
type engine struct {
	client  *dynamodb.Client
	clock   *doc.Clock
	attempt time.Duration // of requests that may be repeated freely
}

// options are the options of every request.
func (e *engine) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.APIOptions = append(o.APIOptions, e.readDate)
}

// trustedTrip is the longest answer time that still says something about the
// clock, and trustedSkew the largest error that is believed: requests signed
// with a larger one are refused anyway, so such a Date is not DynamoDB's.
const (
	trustedTrip = 2 * time.Second
	trustedSkew = 24 * time.Hour
)

// readDate adds the step that corrects the clock by the Date of the answer. It
// stands next to the transport, so it sees the time of this request alone.
func (e *engine) readDate(stack *middleware.Stack) error {
	step := middleware.DeserializeMiddlewareFunc("HoldfastReadDate", func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (middleware.DeserializeOutput, middleware.Metadata, error) {
		sent := e.clock.Local()
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if resp, ok := out.RawResponse.(*smithyhttp.Response); ok && resp != nil && resp.Response != nil {
			e.correct(resp.Header.Get("Date"), sent, e.clock.Local())
		}
		return out, metadata, err
	})
	return stack.Deserialize.Add(step, middleware.After)
}

func (e *engine) correct(date string, sent, received time.Time) {
	authority, err := http.ParseTime(date)
	if err != nil || received.Before(sent) || received.Sub(sent) > trustedTrip || authority.Sub(received).Abs() > trustedSkew {
		return
	}
	e.clock.Correct(authority, sent, received)
}

// failure says what a failed attempt means for the request.
type failure int

const (
	none     failure = iota
	refused          // the engine decided against it: a condition, a malformed request, missing rights. Not applied; again is useless
	busy             // throttled or in conflict with a transaction. Not applied; again later
	unsent           // the engine was not reached. Not applied; again later
	unclear          // the answer was lost or says that the engine failed: may be applied
	unusable         // failed in this process before sending, such as without credentials. Not applied
)

// busyCodes are the refusals that mean "later": throttling in its spellings, and
// transactions that hold the item.
var busyCodes = map[string]bool{
	"LimitExceededException":                 true,
	"ProvisionedThroughputExceededException": true,
	"ReplicatedWriteConflictException":       true,
	"RequestLimitExceeded":                   true,
	"Throttling":                             true,
	"ThrottlingException":                    true,
	"TooManyRequestsException":               true,
	"TransactionConflictException":           true,
}

// classify tells what err means.
func classify(err error) failure {
	if err == nil {
		return none
	}
	var cut *smithy.DeserializationError
	if errors.As(err, &cut) {
		return unclear
	}
	var answer *smithyhttp.ResponseError
	status := 0
	if errors.As(err, &answer) {
		status = answer.HTTPStatusCode()
	}
	var named smithy.APIError
	if errors.As(err, &named) && (status == 0 || status < 500) {
		if busyCodes[named.ErrorCode()] {
			return busy
		}
		if status >= 400 {
			return refused
		}
	}
	if status != 0 {
		return unclear // 5xx; or an answer that is none: cut, or a checksum that does not fit
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return unsent
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return unsent
	}
	var send *smithyhttp.RequestSendError
	if errors.As(err, &send) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return unclear
	}
	return unusable
}

// problem is the error to return for a failed request of the given class; doing
// says what was being done, for the logs.
func problem(f failure, doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	switch f {
	case busy:
		return doc.Errorf(doc.Throttled, "the store takes no more requests at the moment").Because(err)
	case unsent, unclear:
		return doc.Errorf(doc.Unavailable, "the store cannot be reached at the moment").Because(err)
	}
	return err
}

// conditionFailed returns the item that made a condition fail: nil when there
// was none. ok is false for every other error.
func conditionFailed(err error) (found map[string]types.AttributeValue, ok bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

// once makes a single attempt under its own time limit.
func once[T any](ctx context.Context, limit time.Duration, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return request(ctx)
}

// again makes a request that may be repeated freely, a read or an idempotent
// write, until it is answered, the attempts are used up or the context ends.
func again[T any](ctx context.Context, e *engine, doing string, request func(context.Context) (T, error)) (T, error) {
	for n := 0; ; n++ {
		out, err := once(ctx, e.attempt, request)
		f := classify(err)
		switch f {
		case none:
			return out, nil
		case refused, unusable:
			return out, fmt.Errorf("%s: %w", doing, err)
		}
		if n+1 >= maxAttempts || !pause(ctx, n) {
			return out, problem(f, doing, err)
		}
	}
}

// pause waits before attempt n+2, longer each time and never the same, so that
// clients refused together do not come back together. It returns false, at
// once, when the context ends before.
func pause(ctx context.Context, n int) bool {
	longest := min(mostPause, firstPause<<min(n, 10))
	d := longest/2 + rand.N(longest/2)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// tooLarge reports whether the engine refused an item for its size.
func tooLarge(err error) bool {
	var named smithy.APIError
	return errors.As(err, &named) && named.ErrorCode() == "ValidationException" &&
		strings.Contains(named.ErrorMessage(), "Item size") && strings.Contains(named.ErrorMessage(), "exceeded")
}
