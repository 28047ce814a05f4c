package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"holdfast/shared/doc"
)

// TestRequestsAreWellFormed: DynamoDB refuses placeholders that are used and not
// named as well as those that are named and not used, in any combination.
func TestRequestsAreWellFormed(t *testing.T) {
	placeholder := regexp.MustCompile(`[#:][A-Za-z_0-9]+`)
	check := func(name string, names map[string]string, values map[string]types.AttributeValue, texts ...*string) {
		t.Helper()
		used := map[string]bool{}
		for _, text := range texts {
			for _, p := range placeholder.FindAllString(aws.ToString(text), -1) {
				used[p] = true
				if _, ok := names[p]; ok || values[p] != nil {
					continue
				}
				t.Errorf("%s uses %s, which is not named", name, p)
			}
		}
		for p := range names {
			if !used[p] {
				t.Errorf("%s names %s and does not use it", name, p)
			}
		}
		for p := range values {
			if !used[p] {
				t.Errorf("%s names %s and does not use it", name, p)
			}
		}
	}
	s := New(Options{Client: dynamodb.New(dynamodb.Options{}), Documents: "d", State: "s"})
	data := &types.AttributeValueMemberM{}
	for _, d := range []demand{anything, absent, unused, present, exactly} {
		for _, odd := range []string{"", "1e60"} {
			for _, exact := range []doc.Version{unversioned, 5} {
				a := attempt{version: 7, nonce: "n", demand: d, exact: exact, oddVersion: odd, now: time.Now()}
				name := fmt.Sprintf("demand %d, odd %q, exact %d", d, odd, exact)
				u := updateRequest("d", "a/b", data, 1, a)
				check(name, u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.UpdateExpression, u.ConditionExpression)
				p := putRequest("d", "a/b", data, 1, a)
				check(name, p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ConditionExpression)
				r := s.tombstoneRequest("a/b", 1, a)
				check(name, r.ExpressionAttributeNames, r.ExpressionAttributeValues, r.ConditionExpression)
			}
		}
	}
	for _, prefix := range []doc.Prefix{{Root: "a/b"}, {Root: "a/b", Rest: "/"}, {Root: "a/b", Rest: "/c"}} {
		q := prefixRequest("d", prefix, "/x", 5)
		check(prefix.String(), q.ExpressionAttributeNames, q.ExpressionAttributeValues, q.KeyConditionExpression, q.FilterExpression)
		if !aws.ToBool(q.ConsistentRead) {
			t.Errorf("%s is not read strongly", prefix)
		}
	}
	for _, only := range [][]doc.Collection{nil, {"a"}, {"a", "b/c"}} {
		q := changesRequest("d", 1, only, 5)
		check(fmt.Sprint("changes of ", only), q.ExpressionAttributeNames, q.ExpressionAttributeValues, q.KeyConditionExpression, q.FilterExpression)
	}
	for _, item := range []map[string]types.AttributeValue{itemKey("a/b"), {attrVersion: num(3), attrNonce: str("x"), attrDeleted: trueValue}, {attrExpiresAt: num(5), attrCreatedAt: num(6)}} {
		u := s.adoptRequest("a/b", item, standingOf(item), 1, attempt{version: 9, now: time.Now()})
		check("adopt", u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.UpdateExpression, u.ConditionExpression)
	}
}

func TestCursors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		position := func(name string) feedPosition {
			return feedPosition{version: doc.Version(rapid.Int64Range(0, int64(maxVersion)).Draw(t, name)), id: doc.ID(rapid.String().Draw(t, name+" id"))}
		}
		c := feedCursor{floor: position("floor"), read: position("read"), told: rapid.SliceOfN(rapid.Uint64(), 0, maxTold).Draw(t, "told")}
		if got, err := parseFeedCursor(c.String()); err != nil || got.floor != c.floor || got.read != c.read || !slices.Equal(got.told, c.told) {
			t.Fatalf("%+v was read as %+v, %v", c, got, err)
		}
		belongs, at := rapid.String().Draw(t, "belongs"), []byte(rapid.String().Draw(t, "position"))
		cursor := writeCursor(prefixCursor, belongs, at)
		if got, err := readCursor(prefixCursor, belongs, cursor); err != nil || string(got) != string(at) {
			t.Fatalf("%q was read as %q, %v", at, got, err)
		}
		if _, err := readCursor(prefixCursor, belongs+"x", cursor); doc.KindOf(err) != doc.InvalidCursor {
			t.Fatalf("of another listing: %v", err)
		}
		if _, err := parseFeedCursor(cursor); doc.KindOf(err) != doc.InvalidCursor {
			t.Fatalf("of another kind: %v", err)
		}
		raw, _ := base64.RawURLEncoding.DecodeString(cursor)
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := readCursor(prefixCursor, belongs, base64.RawURLEncoding.EncodeToString(raw)); doc.KindOf(err) != doc.InvalidCursor {
			t.Fatalf("altered: %v", err)
		}
	})
	for _, garbage := range []string{"a", "=", "\x00", "Q0NDQ0ND", strings.Repeat("A", 3000)} {
		if _, err := parseFeedCursor(garbage); doc.KindOf(err) != doc.InvalidCursor {
			t.Errorf("%.20q: %v", garbage, err)
		}
	}
}

// A follower of the feed is told everything, although entries appear late and
// in any order, as long as they appear within the margin. While few changes are
// that young, it is told everything once.
func TestAFollowerMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const margin, end = 10, 60
		type late struct {
			doc.Change
			appears int
		}
		var all []late
		newest := map[doc.ID]doc.Version{}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			id := doc.ID(fmt.Sprintf("c/%d", rapid.IntRange(0, 12).Draw(t, "id")))
			version := rapid.IntRange(1, end).Draw(t, "version")
			if newest[id] == doc.Version(version) {
				continue
			}
			newest[id] = max(newest[id], doc.Version(version))
			all = append(all, late{doc.Change{ID: id, Version: doc.Version(version)}, version + rapid.IntRange(0, margin).Draw(t, "lateness")})
		}
		limit := rapid.IntRange(1, 7).Draw(t, "limit")
		told := map[doc.Change]int{}
		var c feedCursor
		for now := 0; now < end+3*margin; now += rapid.IntRange(0, 4).Draw(t, "pause") {
			now++
			// The feed as it stands: the newest of each document that has appeared.
			standing := map[doc.ID]doc.Change{}
			for _, e := range all {
				if e.appears <= now && e.Version > standing[e.ID].Version {
					standing[e.ID] = e.Change
				}
			}
			f := feed{query: ChangesQuery{Limit: limit}, from: c.read, told: c.toldSet(), buckets: []*feedBucket{{done: true}}}
			for _, e := range standing {
				switch b := f.buckets[0]; {
				case !c.read.before(e.Version, e.ID):
				case f.told[mark(e)]:
					b.told = append(b.told, e)
				default:
					b.entries = append(b.entries, e)
				}
			}
			changes, next, finished := f.merge()
			for _, e := range changes {
				told[e]++
			}
			c, _ = parseFeedCursor(c.after(changes, f.again(), next, feedPosition{version: doc.Version(max(now-margin, 0))}, finished).String())
		}
		for range 2 * len(newest) { // to the end of the feed
			f := feed{query: ChangesQuery{Limit: limit}, from: c.read, told: c.toldSet(), buckets: []*feedBucket{{done: true}}}
			for id, version := range newest {
				e := doc.Change{ID: id, Version: version}
				switch b := f.buckets[0]; {
				case !c.read.before(version, id):
				case f.told[mark(e)]:
					b.told = append(b.told, e)
				default:
					b.entries = append(b.entries, e)
				}
			}
			changes, next, finished := f.merge()
			for _, e := range changes {
				told[e]++
			}
			c = c.after(changes, f.again(), next, feedPosition{version: 10 * end}, finished)
		}
		for id, version := range newest {
			if n := told[doc.Change{ID: id, Version: version}]; n != 1 {
				t.Fatalf("%s at %d was told %d times", id, version, n)
			}
		}
	})
}

func TestFeedPositionOrder(t *testing.T) {
	p := feedPosition{version: 5, id: "b/1"}
	for _, c := range []struct {
		version doc.Version
		id      doc.ID
		want    bool
	}{{4, "z/9", false}, {5, "a/9", false}, {5, "b/1", false}, {5, "b/2", true}, {6, "a/1", true}} {
		if got := p.before(c.version, c.id); got != c.want {
			t.Errorf("before %d %s: %t", c.version, c.id, got)
		}
	}
	if start := (feedPosition{version: 5}); !start.before(5, "a/1") {
		t.Error("a position without id is not before the first of its version")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestClassify asks a real client, since what errors look like is the SDK's
// business and may change with it.
func TestClassify(t *testing.T) {
	response := func(status int, body string) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"X-Amzn-Requestid": {"1"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
	}
	fails := func(err error) roundTrip {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	named := func(code string) string {
		return `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"m"}`
	}
	for name, c := range map[string]struct {
		transport roundTrip
		want      failure
	}{
		"answered":         {response(200, `{"Item":{}}`), none},
		"condition":        {response(400, named("ConditionalCheckFailedException")), refused},
		"validation":       {response(400, named("ValidationException")), refused},
		"no table":         {response(400, named("ResourceNotFoundException")), refused},
		"no rights":        {response(400, named("AccessDeniedException")), refused},
		"throttled table":  {response(400, named("ProvisionedThroughputExceededException")), busy},
		"throttled":        {response(400, named("ThrottlingException")), busy},
		"account limit":    {response(400, named("RequestLimitExceeded")), busy},
		"transaction":      {response(400, named("TransactionConflictException")), busy},
		"server error":     {response(500, named("InternalServerError")), unclear},
		"service away":     {response(503, "<html>"), unclear},
		"throttled in 5xx": {response(503, named("ThrottlingException")), unclear},
		"cut answer":       {response(200, `{"Item":{"a":{"S":`), unclear},
		"cut refusal":      {response(400, `{"__type":"com.amaz`), unclear},
		"no JSON":          {response(200, `<html>`), unclear},
		"dial":             {fails(&net.OpError{Op: "dial", Err: errors.New("refused")}), unsent},
		"name":             {fails(&net.DNSError{Err: "no such host"}), unsent},
		"reset":            {fails(&net.OpError{Op: "read", Err: errors.New("reset")}), unclear},
		"end of file":      {fails(io.EOF), unclear},
		"deadline":         {fails(context.DeadlineExceeded), unclear},
		"failing mid-body": {func(r *http.Request) (*http.Response, error) {
			resp, _ := response(200, "")(r)
			resp.Body = io.NopCloser(brokenBody{})
			return resp, nil
		}, unclear},
	} {
		client := dynamodb.New(dynamodb.Options{
			Region: "r", BaseEndpoint: aws.String("http://localhost:1"), Retryer: aws.NopRetryer{},
			Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: &http.Client{Transport: c.transport},
		})
		_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")})
		if got := classify(err); got != c.want {
			t.Errorf("%s: %d, want %d (%v)", name, got, c.want, err)
		}
	}
	noCredentials := dynamodb.New(dynamodb.Options{Region: "r", BaseEndpoint: aws.String("http://localhost:1"), Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("none") })})
	if _, err := noCredentials.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")}); classify(err) != unusable {
		t.Errorf("without credentials: %d (%v)", classify(err), err)
	}
	for name, text := range map[string]string{"put": "Item size has exceeded the maximum allowed size", "update": "Item size to update has exceeded the maximum allowed size"} {
		if !tooLarge(&smithyError{"ValidationException", text}) {
			t.Errorf("%s: the engine's refusal for size is not seen", name)
		}
	}
	if tooLarge(&smithyError{"ValidationException", "something else"}) || tooLarge(errors.New("Item size exceeded")) {
		t.Error("another refusal is taken for one for size")
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBuckets(t *testing.T) {
	counts := make([]int, 8)
	for i := range 8000 {
		counts[bucketOf(doc.ID(fmt.Sprintf("users/%d", i)), 8)]++
	}
	for b, n := range counts {
		if n < 800 || n > 1200 {
			t.Errorf("bucket %d has %d of 8000", b, n)
		}
	}
}

type smithyError struct{ code, message string }

func (e *smithyError) Error() string                 { return e.code + ": " + e.message }
func (e *smithyError) ErrorCode() string             { return e.code }
func (e *smithyError) ErrorMessage() string          { return e.message }
func (e *smithyError) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }
