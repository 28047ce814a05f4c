package lambdahost

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/httpapi"
	"holdfast/shared/pipeline"
)

// The payloads in events/ are as AWS sends them. `sam local` is given the same.
const eventFiles = "../../events/"

func eventFile(t *testing.T, name string, into any) []byte {
	t.Helper()
	payload, err := os.ReadFile(eventFiles + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(payload, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return payload
}

const ada = "iam:arn:aws:iam::123456789012:user/ada"

// httpEvents says what the request in each payload is: what gateways make of
// paths, stages, domains, headers, parameters and bodies.
var httpEvents = map[string]struct {
	method, path, base, query, principal string
	body                                 string
	header                               http.Header // some of them
}{
	"http-get":                {method: "GET", path: "/docs/users/1"},
	"http-get-fields":         {method: "GET", path: "/docs/users/1", query: "fields=name,address.city", header: http.Header{"If-None-Match": {`"1773119783100010"`}}},
	"http-get-by-query":       {method: "GET", path: "/docs", query: "id=users%2Fa%252Fb%20c%2B%26d"}, // the query stays encoded
	"http-head":               {method: "HEAD", path: "/docs/users/1"},
	"http-delete":             {method: "DELETE", path: "/docs/users/2", header: http.Header{"If-Match": {"*"}}},
	"http-create":             {method: "POST", path: "/docs/users/1/account/", body: `{"amount":12.50}`}, // the slash at the end is kept
	"http-put":                {method: "PUT", path: "/docs/users/1", body: `{"name":"Ada","born":1815,"tags":["first"]}`, header: http.Header{"Content-Type": {"application/json"}}},
	"http-put-base64":         {method: "PUT", path: "/docs/users/a b", body: `{"name":"Ada ü"}`},
	"http-load":               {method: "POST", path: "/load", body: `{"ids":["users/1","users/absent"]}`},
	"http-bulk":               {method: "POST", path: "/bulk", body: `{"id":"users/1","data":{"name":"Ada"}}` + "\n" + `{"id":"users/2","delete":true}` + "\n"},
	"http-changes":            {method: "GET", path: "/changes", query: "limit=10"},
	"http-ids":                {method: "GET", path: "/ids", query: "layout=sqlserver&count=3"},
	"http-openapi":            {method: "GET", path: "/openapi.json"},
	"http-prefix":             {method: "GET", path: "/docs", query: "startsWith=users%2F1%2F&limit=2&matches=account%2F*"},
	"http-prefix-gzip":        {method: "GET", path: "/docs", query: "startsWith=users%2F1&limit=1000", header: http.Header{"Accept-Encoding": {"gzip, deflate, br"}}},
	"http-repeated-parameter": {method: "GET", path: "/docs", query: "startsWith=users%2F1&limit=2&limit=3"}, // both are there
	"http-query":              {method: "POST", path: "/query", body: `{"from":"users","filter":{"name":"Ada"},"count":true}`},
	"http-query-get":          {method: "GET", path: "/query"},
	"http-root":               {method: "GET", path: "/"},
	"http-unknown":            {method: "GET", path: "/users/1"},
	"http-query-now":          {method: "POST", path: "/query", body: `{"from":"users","filter":{"name":"Ada"},"where":"doc.born > 1800","include":["friend"],"read":"verified","sort":[{"born":"desc"}],"wait":{"asOfNow":true,"timeout":"5s","onTimeout":"stale"}}`},
	// A route with a path of its own before the parameter.
	"http-collections":          {method: "GET", path: "/collections"},
	"http-collection-get":       {method: "GET", path: "/collections/books/chapters"},
	"http-collection-put":       {method: "PUT", path: "/collections/books/chapters", body: `{"index":"own"}`},
	"http-status":               {method: "GET", path: "/status"},
	"http-quarantine":           {method: "GET", path: "/quarantine", query: "collection=users&limit=10"},
	"http-quarantine-retry":     {method: "POST", path: "/quarantine/retry", body: `{"ids":["users/1","users/absent"]}`},
	"http-jobs":                 {method: "GET", path: "/jobs"},
	"http-job":                  {method: "GET", path: "/jobs/repair"},
	"http-job-start":            {method: "POST", path: "/jobs/repair", body: `{"mode":"compare"}`},
	"http-dead-letters":         {method: "GET", path: "/dead-letters", query: "limit=10"},
	"http-dead-letters-redrive": {method: "POST", path: "/dead-letters/redrive", body: `{"limit":100}`},
	// A gateway with origins answers this itself; one without lets it through to whoever is allowed to call.
	"http-options": {method: "OPTIONS", path: "/docs/users/1", header: http.Header{"Access-Control-Request-Method": {"PUT"}}},
	// Several headers of one name come joined by commas, cookies apart.
	"http-put-conditions": {method: "PUT", path: "/docs/users/1", body: `{"name":"Ada"}`, header: http.Header{"If-Match": {`"1773119783100010","1773119783100020"`}, "Cookie": nil}},
	// Paths are decoded, once, before they come: nothing is decoded again.
	"http-odd-path": {method: "PUT", path: "/docs/users/a b+c/50%/%41/é/日本;x=1,y?q#f&g", body: `{"odd":true}`},
	// Stages and the base paths of domains precede the path, and do not belong to it.
	"http-stage":               {method: "GET", path: "/docs/users/1", base: "/prod"},
	"http-stage-default-route": {method: "GET", path: "/docs/users/1", base: "/prod"},
	"http-domain":              {method: "POST", path: "/docs/users/", base: "/store/v1", body: `{"name":"Ada"}`},
	"http-domain-query":        {method: "POST", path: "/query", base: "/store/v1", body: `{"from":"users"}`},
	"http-domain-stage":        {method: "GET", path: "/docs/prod/docs", base: "/prod"},
	"http-jwt":                 {method: "GET", path: "/docs/users/1", principal: "jwt:https://issuer.example#ada"},

	"http-rest-get":        {method: "GET", path: "/docs/users/1", base: "/v1", query: "fields=name"},
	"http-rest-head":       {method: "HEAD", path: "/docs/users/1", base: "/v1"},
	"http-rest-options":    {method: "OPTIONS", path: "/docs/users/1", base: "/v1"},
	"http-rest-put-base64": {method: "PUT", path: "/docs/users/1", base: "/v1", body: `{"name":"Ada ü"}`},
	"http-rest-multi":      {method: "PUT", path: "/docs/users/1", base: "/v1", body: `{"name":"Ada"}`, header: http.Header{"If-Match": {`"1773119783100010"`, `"1773119783100020"`}}},
	// Here paths are as the client encoded them, and parameters are decoded.
	"http-rest-odd-path":         {method: "GET", path: "/docs/users/a b+c/50%/%41/é", base: "/v1"},
	"http-rest-query-parameters": {method: "GET", path: "/docs", base: "/v1", query: "limit=2&limit=3&startsWith=users%2Fa%2Bb%2Fc%26d"},
	"http-rest-domain":           {method: "GET", path: "/docs/users/1", base: "/store"},
	"http-rest-domain-stage":     {method: "GET", path: "/docs/users/1", base: "/store/prod"},
}

func TestRequestsInTheEventFiles(t *testing.T) {
	for name, want := range httpEvents {
		h := &echo{}
		res, err := Gateway(h)(t.Context(), eventFile(t, name, nil))
		if err != nil || h.got == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want.principal == "" {
			want.principal = ada
		}
		got := h.got
		if got.Method != want.method || got.Path != want.path || got.Base != want.base || got.RawQuery != want.query ||
			got.Principal != want.principal || string(got.Body) != want.body || got.ID == "" {
			t.Errorf("%s: %s %q after %q ? %q by %q, body %q", name, got.Method, got.Path, got.Base, got.RawQuery, got.Principal, got.Body)
		}
		for header, values := range want.header {
			if !slices.Equal(got.Header.Values(header), values) {
				t.Errorf("%s: %s: %q", name, header, got.Header.Values(header))
			}
		}
		if _, isV1 := res.(events.APIGatewayProxyResponse); isV1 != strings.Contains(name, "-rest-") {
			t.Errorf("%s is answered with %T", name, res)
		}
	}
}

// A file that no test reads could say anything.
func TestEveryEventFileIsRead(t *testing.T) {
	read := []string{"env", "stream", "stream-types", "stream-ttl", "stream-foreign", "signals", "signals-again", "relay-failure", "schedule-prove", "schedule-compare"}
	files, err := filepath.Glob(eventFiles + "*.json")
	if err != nil || len(files) < len(read)+len(httpEvents) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if _, ok := httpEvents[name]; !ok && !slices.Contains(read, name) {
			t.Errorf("no test reads %s", f)
		}
	}
}

// The statuses that a client gets for what never reaches a document, through
// the real handlers. Nothing here needs a table.
func TestAnswersThatNeedNoTable(t *testing.T) {
	documents := Gateway(httpapi.Documents(httpapi.DocumentsOptions{}))
	query := Gateway(httpapi.Query(httpapi.QueryOptions{Now: time.Now}))
	for name, want := range map[string]struct {
		status int
		header http.Header
	}{
		// A preflight that reaches the function: it does not take OPTIONS, and says what it takes.
		"http-options":            {405, http.Header{"Allow": {"GET"}}},
		"http-rest-options":       {405, http.Header{"Allow": {"GET"}}},
		"http-query-get":          {405, http.Header{"Allow": {"POST"}}},
		"http-root":               {404, nil},
		"http-unknown":            {404, nil},
		"http-repeated-parameter": {400, nil},
		"http-openapi":            {200, http.Header{"Content-Encoding": {"gzip"}}},
	} {
		handler := documents
		if strings.Contains(name, "query") {
			handler = query
		}
		answer, err := handler(t.Context(), eventFile(t, name, nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var status int
		var headers map[string]string
		switch a := answer.(type) {
		case events.APIGatewayV2HTTPResponse:
			status, headers = a.StatusCode, a.Headers
		case events.APIGatewayProxyResponse:
			status, headers = a.StatusCode, a.Headers
		}
		if status != want.status || headers["Holdfast-Request-Id"] == "" {
			t.Errorf("%s: %d %v", name, status, headers)
		}
		for header, values := range want.header {
			if !strings.Contains(headers[header], values[0]) {
				t.Errorf("%s: %s: %q", name, header, headers[header])
			}
		}
	}
}

func streamFile(t *testing.T, name string) []pipeline.Record {
	t.Helper()
	var e events.DynamoDBEvent
	eventFile(t, name, &e)
	records := Records(e)
	if len(records) == 0 {
		t.Fatalf("%s has no records", name)
	}
	for _, r := range records {
		if r.Sequence == "" || r.Event == "" || (r.ID == "") == (r.Unreadable == "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	return records
}

func TestRecordsInTheEventFiles(t *testing.T) {
	r := streamFile(t, "stream")
	if len(r) != 4 || r[0].Event != pipeline.Insert || r[0].Old != nil || r[0].New == nil || r[1].Event != pipeline.Modify || r[1].Old == nil ||
		r[1].New.Version <= r[1].Old.Version || r[1].New.Nonce == "" || r[2].ID != "users/1/account/3" || !r[3].New.Deleted || r[3].ByTTL {
		t.Errorf("%+v", r)
	}
	r = streamFile(t, "stream-ttl")
	if len(r) != 1 || r[0].Event != pipeline.Remove || !r[0].ByTTL || r[0].New != nil || !r[0].Old.Deleted {
		t.Errorf("%+v", r)
	}
	r = streamFile(t, "stream-foreign")
	if len(r) != 2 || r[0].New.Version != 0 || r[1].Event != pipeline.Remove || r[1].ByTTL {
		t.Errorf("%+v", r)
	}
	r = streamFile(t, "stream-types")
	if len(r) != 5 || r[0].New.Version != 1773119783200010 || r[0].New.Nonce == "" || r[1].New.ExpiresAt.IsZero() || r[1].Old.Version != r[0].New.Version ||
		*r[2].New != (pipeline.Image{}) || r[3].Unreadable == "" || r[4].New != nil || r[4].ByTTL {
		t.Errorf("%+v", r)
	}
}

// Every type that an attribute can have is somewhere in the payloads.
func TestEveryAttributeTypeIsInTheEventFiles(t *testing.T) {
	seen := map[string]bool{}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if len(v) == 1 && slices.Contains([]string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}, name) {
					seen[name] = true
				}
				look(member)
			}
		case []any:
			for _, member := range v {
				look(member)
			}
		}
	}
	var event any
	eventFile(t, "stream-types", &event)
	look(event)
	if len(seen) != 10 {
		t.Errorf("%v", seen)
	}
}

func TestMessagesInTheEventFiles(t *testing.T) {
	var e events.SQSEvent
	eventFile(t, "signals", &e)
	m := Messages(e)
	if len(m) != 3 || m[0].Sent.UnixMilli() != 1773119783991 || m[0].Receives != 1 {
		t.Fatalf("%+v", m)
	}
	signals, tries, err := pipeline.Unpack(m[0].Body)
	if err != nil || tries != 0 || len(signals) != 2 || signals[1].ID != "users/1/account/3" || signals[1].Version != 1773119783100020 {
		t.Errorf("%v, %d tries, %v", signals, tries, err)
	}
	if _, tries, err = pipeline.Unpack(m[1].Body); err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	if _, _, err = pipeline.Unpack(m[2].Body); err == nil {
		t.Error("it was read as signals")
	}
	eventFile(t, "signals-again", &e)
	m = Messages(e)
	if signals, tries, err = pipeline.Unpack(m[0].Body); err != nil || tries != 40 || len(signals) != 3 || m[0].Receives != 9 {
		t.Errorf("%v, %d tries, %v", signals, tries, err)
	}
}

// What Lambda tells the destination on failure names a place in the stream and
// no content. Somebody who sends it to the indexer by mistake loses nothing: it
// is no signal, and ends among the dead letters.
func TestAFailureRecordIsNoSignal(t *testing.T) {
	var e events.SQSEvent
	payload := eventFile(t, "relay-failure", &e)
	m := Messages(e)
	var told struct {
		DDBStreamBatchInfo struct {
			StreamArn, ShardID, StartSequenceNumber, EndSequenceNumber string
			BatchSize                                                  int
		}
	}
	if err := json.Unmarshal([]byte(m[0].Body), &told); err != nil || told.DDBStreamBatchInfo.BatchSize == 0 || told.DDBStreamBatchInfo.StartSequenceNumber == "" {
		t.Errorf("%+v, %v", told, err)
	}
	if strings.Contains(string(payload), "Image") {
		t.Error("it has content")
	}
	if _, _, err := pipeline.Unpack(m[0].Body); err == nil {
		t.Error("it was read as signals")
	}
}
