package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// What was put is what is got, or it is refused with the place.
func TestValues(t *testing.T) {
	c := unique(t)
	nested := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	for name, v := range map[string]struct {
		in      string
		out     string // "" where it is refused
		problem string
		pointer string
		status  int
	}{
		"38 digits":               {in: `{"n":12345678901234567890123456789012345678}`, out: `{"n":12345678901234567890123456789012345678}`},
		"39 digits":               {in: `{"n":123456789012345678901234567890123456789}`, problem: "number-out-of-range", pointer: "/n"},
		"1e125":                   {in: `{"n":1e125}`, out: `{"n":1e+125}`},
		"1e126":                   {in: `{"n":1e126}`, problem: "number-out-of-range", pointer: "/n"},
		"1e-130":                  {in: `{"n":1e-130}`, out: `{"n":1e-130}`},
		"1e-131":                  {in: `{"a":{"n":1e-131}}`, problem: "number-out-of-range", pointer: "/a/n"},
		"a hostile exponent":      {in: `{"n":1e99999999999999999999}`, problem: "number-out-of-range", pointer: "/n"},
		"zero to a great power":   {in: `{"n":0e99999}`, out: `{"n":0}`},
		"-0":                      {in: `{"n":-0}`, out: `{"n":0}`},
		"1.0":                     {in: `{"n":1.0}`, out: `{"n":1}`},
		"19-digit integer":        {in: `{"n":9223372036854775807}`, out: `{"n":9223372036854775807}`},
		"control characters":      {in: `{"s":"` + controls() + `"}`, out: `{"s":"` + controls() + `"}`},
		"lone high surrogate":     {in: `{"s":"\ud800"}`, problem: "invalid-json"},
		"lone low surrogate":      {in: `{"a":["x","\udc00"]}`, problem: "invalid-json"},
		"surrogate pair":          {in: `{"s":"\ud83d\ude00"}`, out: `{"s":"😀"}`},
		"invalid UTF-8":           {in: "{\"s\":\"\xff\"}", problem: "invalid-json"},
		"invalid UTF-8 in a name": {in: "{\"\xff\":1}", problem: "invalid-json"},
		"duplicate name":          {in: `{"a":{"b":1,"b":2}}`, problem: "invalid-json", pointer: "/a/b"},
		"duplicate by escape":     {in: `{"b":1,"\u0062":2}`, problem: "invalid-json", pointer: "/b"},
		"empty name":              {in: `{"":1,"a":{"":{"":2}}}`, out: `{"":1,"a":{"":{"":2}}}`},
		"empty containers":        {in: `{"a":[],"o":{},"s":"","l":[[],{}]}`, out: `{"a":[],"o":{},"s":"","l":[[],{}]}`},
		"null":                    {in: `{"a":null,"l":[null]}`, out: `{"a":null,"l":[null]}`},
		"empty document":          {in: `{}`, out: `{}`},
		"odd names":               {in: `{"a.b":1,"$x":2,"_id":3,"deleted":4,"%":5,"a b":6,"*":7}`, out: `{"a.b":1,"$x":2,"_id":3,"deleted":4,"%":5,"a b":6,"*":7}`},
		"32 levels":               {in: nested(32), out: nested(32)},
		"33 levels":               {in: nested(33), problem: "document-too-deep", pointer: strings.Repeat("/a", 32)},
		"32 levels of arrays":     {in: `{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`, out: `{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`},
		"100,000 levels":          {in: `{"a":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`, problem: "document-too-deep"},
		"array":                   {in: `[1]`, problem: "not-an-object"},
		"scalar":                  {in: `1`, problem: "not-an-object"},
		"nothing":                 {in: ` `, problem: "invalid-json"},
		"two values":              {in: `{} {}`, problem: "invalid-json"},
		"trailing comma":          {in: `{"a":1,}`, problem: "invalid-json"},
		"NaN":                     {in: `{"a":NaN}`, problem: "invalid-json"},
		"leading zero":            {in: `{"a":01}`, problem: "invalid-json"},
		"byte order mark":         {in: "\ufeff{}", problem: "invalid-json"},
	} {
		t.Run(name, func(t *testing.T) {
			id := c + "/" + url.PathEscape(name)
			a := send(t, "PUT", "/docs/"+id, v.in)
			if v.problem != "" {
				expect(t, a, 400, v.problem)
				if v.pointer != "" && a.JSON("pointer") != v.pointer {
					t.Errorf("pointer %v, want %s", a.JSON("pointer"), v.pointer)
				}
				expect(t, send(t, "GET", "/docs/"+id, ""), 404, "not-found")
				return
			}
			if a.Status != 201 {
				t.Fatalf("%s", a)
			}
			got := send(t, "GET", "/docs/"+id, "")
			if got.Status != 200 || !sameJSON(got.Body, []byte(v.out)) {
				t.Errorf("got %.300s, want %.300s", got.Body, v.out)
			}
			found := query(t, fmt.Sprintf(`{"from":%q,"filter":{"$id":%q},"wait":{"tokens":[%q],"timeout":"20s"}}`, c, c+"/"+name, a.Header.Get("Holdfast-Token")))
			docs, _ := found.JSON("documents").([]any)
			if len(docs) != 1 {
				t.Fatalf("not found by id in the index: %s", found)
			}
			data, _ := json.Marshal(docs[0].(map[string]any)["data"])
			if !sameJSON(data, []byte(v.out)) {
				t.Errorf("the query gives %.300s, want %.300s", data, v.out)
			}
		})
	}
}

func controls() string {
	var b strings.Builder
	for r := range 0x20 {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// sameJSON compares values with numbers as text.
func sameJSON(a, b []byte) bool {
	norm := func(x []byte) string {
		dec := json.NewDecoder(bytes.NewReader(x))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			return "error: " + err.Error()
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return norm(a) == norm(b)
}

func TestSizeLimitIsToTheByte(t *testing.T) {
	c := unique(t)
	// The largest document that fits: found by the refusal's own figures.
	probe := send(t, "PUT", "/docs/"+c+"/big", `{"s":"`+strings.Repeat("x", 420_000)+`"}`)
	expect(t, probe, 413, "document-too-large")
	if fmt.Sprint(probe.JSON("limit")) != "409600" {
		t.Fatalf("limit %v", probe.JSON("limit"))
	}
	var actual int
	fmt.Sscan(fmt.Sprint(probe.JSON("actual")), &actual)
	fits := 420_000 - (actual - 409_600)
	over := send(t, "PUT", "/docs/"+c+"/big", `{"s":"`+strings.Repeat("x", fits+1)+`"}`)
	expect(t, over, 413, "document-too-large")
	if fmt.Sprint(over.JSON("actual")) != "409601" {
		t.Errorf("actual %v, want 409601", over.JSON("actual"))
	}
	a := put(t, c+"/big", `{"s":"`+strings.Repeat("x", fits)+`"}`)
	got := send(t, "GET", "/docs/"+c+"/big", "")
	if got.Status != 200 || len(got.Body) != fits+len(`{"s":""}`) {
		t.Errorf("%d bytes came back", len(got.Body))
	}
	found := query(t, fmt.Sprintf(`{"from":%q,"wait":{"tokens":[%q],"timeout":"20s"}}`, c, a.Header.Get("Holdfast-Token")))
	if !slices.Equal(found.ids(), []string{c + "/big"}) {
		t.Errorf("not found: %v", found.ids())
	}
}

// Every id addresses the same document by path and by ?id=.
func TestIDs(t *testing.T) {
	c := unique(t)
	long := func(n int) string { return c + "/" + strings.Repeat("k", n-len(c)-1) }
	for _, id := range []string{
		c + "/1", c + "/a b", c + "/a+b", c + "/50%", c + "/a?b", c + "/a#b", c + "/a&b=c", c + `/"q"`, c + `/a\b`, c + "/%41",
		c + "/é/ü/日本", c + "/...", c + "/1/account/3", c + "/A", c + "/a", c + "/😀", c + "/a;b,c", c + "/{x}", c + "/ ",
		long(512), c + "/" + strings.Repeat("é", (511-len(c))/2),
	} {
		body := fmt.Sprintf(`{"is":%q}`, id)
		segments := strings.Split(id, "/")
		for i := range segments {
			segments[i] = url.PathEscape(segments[i])
		}
		path := "/docs/" + strings.Join(segments, "/")
		a := send(t, "PUT", path, body)
		if a.Status != 201 || a.JSON("id") != id {
			t.Errorf("PUT %s: %s", id, a)
			continue
		}
		for _, target := range []string{path, "/docs?id=" + url.QueryEscape(id)} {
			if got := send(t, "GET", target, ""); got.Status != 200 || got.JSON("is") != id {
				t.Errorf("GET %s: %s", target, got)
			}
		}
		if a := send(t, "PUT", "/docs?id="+url.QueryEscape(id), body); a.Status != 200 {
			t.Errorf("PUT ?id=%s: %s", id, a)
		}
	}
	// A slash that came encoded is a slash: the id is decoded once.
	put(t, c+"/x%2Fy%2Fz", `{"v":1}`)
	if got := send(t, "GET", "/docs/"+c+"/x/y/z", ""); got.Status != 200 {
		t.Errorf("%%2F: %s", got)
	}
	for _, bad := range []string{
		c, c + "/", c + "//1", c + "/./1", c + "/1/..", c + "/%00", c + "/%7F", c + "/%C2%85", c + "/a%0Ab", c + "/%FF", "$sys/1",
		url.PathEscape(long(513)), strings.Repeat("a/", 16) + "a",
	} {
		for _, target := range []string{"/docs/" + bad, "/docs?id=" + strings.ReplaceAll(bad, "+", "%2B")} {
			expect(t, send(t, "PUT", target, `{}`), 400, "invalid-id")
			expect(t, send(t, "GET", target, ""), 400, "invalid-id")
		}
	}
}

func TestConditions(t *testing.T) {
	c := unique(t)
	id := "/docs/" + c + "/1"
	expect(t, send(t, "PUT", id, `{}`, "If-Match", `"1"`), 412, "version-conflict")
	expect(t, send(t, "PUT", id, `{}`, "If-Match", `*`), 412, "version-conflict")
	first := send(t, "PUT", id, `{"n":1}`, "If-None-Match", "*")
	if first.Status != 201 || first.Header.Get("ETag") == "" || first.Header.Get("Holdfast-Token") == "" {
		t.Fatalf("%s %v", first, first.Header)
	}
	etag := first.Header.Get("ETag")
	if etag != fmt.Sprintf(`"%v"`, first.JSON("version")) {
		t.Errorf("ETag %s, version %v", etag, first.JSON("version"))
	}
	again := send(t, "PUT", id, `{"n":2}`, "If-None-Match", "*")
	expect(t, again, 412, "version-conflict")
	if again.JSON("expected") != nil || fmt.Sprint(again.JSON("actual")) != strings.Trim(etag, `"`) {
		t.Errorf("expected null and actual the version: %s", again)
	}
	expect(t, send(t, "PUT", id, `{"n":2}`, "If-Match", "W/"+etag), 412, "version-conflict")
	expect(t, send(t, "PUT", id, `{"n":2}`, "If-Match", "nonsense"), 400, "invalid-request")
	if a := send(t, "GET", id, "", "If-None-Match", etag); a.Status != 304 || len(a.Body) != 0 {
		t.Errorf("304: %s", a)
	}
	second := send(t, "PUT", id, `{"n":2}`, "If-Match", `"1", `+etag)
	if second.Status != 200 {
		t.Errorf("a list of tags: %s", second)
	}
	stale := send(t, "PUT", id, `{"n":3}`, "If-Match", etag)
	expect(t, stale, 412, "version-conflict")
	expect(t, send(t, "DELETE", id, "", "If-Match", etag), 412, "version-conflict")
	head := send(t, "HEAD", id, "")
	if head.Status != 200 || len(head.Body) != 0 || head.Header.Get("ETag") != second.Header.Get("ETag") || head.Header.Get("Last-Modified") == "" {
		t.Errorf("HEAD: %s %v", head, head.Header)
	}
	gone := send(t, "DELETE", id, "", "If-Match", second.Header.Get("ETag"))
	if gone.Status != 204 || gone.Header.Get("Holdfast-Token") == "" {
		t.Errorf("DELETE: %s", gone)
	}
	if a := send(t, "DELETE", id, ""); a.Status != 204 || a.Header.Get("Holdfast-Token") != "" {
		t.Errorf("deleting what is absent writes nothing and gives no token: %s %v", a, a.Header)
	}
	expect(t, send(t, "GET", id, ""), 404, "not-found")
	if a := send(t, "HEAD", id, ""); a.Status != 404 || len(a.Body) != 0 {
		t.Errorf("HEAD of what is gone: %s", a)
	}
	back := send(t, "PUT", id, `{"n":4}`, "If-None-Match", "*")
	if back.Status != 201 || fmt.Sprint(back.JSON("version")) <= fmt.Sprint(second.JSON("version")) {
		t.Errorf("the version grows across delete and re-creation: %s after %s", back, second)
	}
}

func TestServerAssignedIDs(t *testing.T) {
	c := unique(t)
	seen := map[string]bool{}
	for range 25 {
		a := send(t, "POST", "/docs/"+c+"/", `{}`)
		id, _ := a.JSON("id").(string)
		if a.Status != 201 || seen[id] || !strings.HasPrefix(id, c+"/") || a.Header.Get("Location") != "/docs/"+id {
			t.Fatalf("%s %v", a, a.Header)
		}
		seen[id] = true
	}
	if !seen[c+"/1"] {
		t.Errorf("a sequence begins at 1: %v", seen)
	}
	child := send(t, "POST", "/docs?id="+c+"/1/account/", `{}`)
	if child.Status != 201 || child.JSON("id") != c+"/1/account/1" {
		t.Errorf("%s", child)
	}
	put(t, c+"/9000", `{}`)
	for range 3 {
		a := send(t, "POST", "/docs/"+c+"/", `{}`)
		if id, _ := a.JSON("id").(string); a.Status != 201 || id == c+"/9000" || seen[id] {
			t.Errorf("%s", a)
		}
	}
	expect(t, send(t, "POST", "/docs/"+c+"/1/", `{}`), 400, "invalid-id")
	if a := send(t, "POST", "/docs/"+c+"/1", `{}`); a.Status != 405 || a.Header.Get("Allow") == "" {
		t.Errorf("POST on an id: %s", a)
	}
}

func TestPrefixLoad(t *testing.T) {
	c := unique(t)
	var want []string
	for _, rest := range []string{"", "/account", "/account/1", "/account/10", "/account/2", "/Account/1", "/orders/1", "/orders/1/lines/1"} {
		put(t, c+"/1"+rest, `{"x":1}`)
		want = append(want, c+"/1"+rest)
	}
	put(t, c+"/10", `{}`)
	slices.Sort(want)
	list := func(params string) []string {
		t.Helper()
		var all []string
		after := ""
		for range 50 {
			a := send(t, "GET", "/docs?"+params+after, "")
			if a.Status != 200 {
				t.Fatalf("%s: %s", params, a)
			}
			all = append(all, a.ids()...)
			next, ok := a.JSON("next").(string)
			if !ok {
				return all
			}
			after = "&after=" + url.QueryEscape(next)
		}
		t.Fatal("no end")
		return nil
	}
	for params, ids := range map[string][]string{
		"startsWith=" + c + "/1":                                  want,
		"limit=1&startsWith=" + c + "/1":                          want,
		"limit=3&startsWith=" + c + "/1":                          want,
		"startsWith=" + c + "/1/":                                 want[1:],
		"startsWith=" + c + "/1/account/1":                        {c + "/1/account/1", c + "/1/account/10"},
		"startsWith=" + c + "/1/account/":                         {c + "/1/account/1", c + "/1/account/10", c + "/1/account/2"},
		"startsWith=" + c + "/1/&matches=account/*":               {c + "/1/account/1", c + "/1/account/10", c + "/1/account/2"},
		"startsWith=" + c + "/1/&matches=account/?|orders/1":      {c + "/1/account/1", c + "/1/account/2", c + "/1/orders/1"},
		"startsWith=" + c + "/1/&matches=account/*&exclude=*0|*2": {c + "/1/account/1"},
		"startsWith=" + c + "/1/&matches=*1&limit=1":              {c + "/1/Account/1", c + "/1/account/1", c + "/1/orders/1", c + "/1/orders/1/lines/1"},
		"startsWith=" + c + "/none/":                              nil,
	} {
		if got := list(params); !slices.Equal(got, ids) {
			t.Errorf("%s: %v, want %v", params, got, ids)
		}
	}
	for _, p := range []string{"", "/", c, c + "/"} {
		expect(t, send(t, "GET", "/docs?startsWith="+p, ""), 400, "unrooted-prefix")
	}
	for _, p := range []string{"limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=2", "foo=1"} {
		a := send(t, "GET", "/docs?startsWith="+c+"/1&"+p, "")
		expect(t, a, 400, "invalid-request")
		if a.JSON("parameter") == nil {
			t.Errorf("%s: the parameter is named: %s", p, a)
		}
	}
	expect(t, send(t, "GET", "/docs?startsWith="+c+"/1&after=garbage", ""), 400, "invalid-cursor")
	first := send(t, "GET", "/docs?limit=1&startsWith="+c+"/1", "")
	next := url.QueryEscape(first.JSON("next").(string))
	if a := send(t, "GET", "/docs?startsWith="+c+"/10&after="+next, ""); a.Status != 400 {
		t.Errorf("a cursor belongs to its prefix: %s", a)
	}
	expect(t, send(t, "GET", "/docs", ""), 400, "invalid-request")
}

func TestMultiLoad(t *testing.T) {
	c := unique(t)
	put(t, c+"/1", fmt.Sprintf(`{"customer":%q,"lines":[{"product":%q},{"product":%q},{"product":7}]}`, c+"/2", c+"/3", c+"/none"))
	put(t, c+"/2", `{"n":2}`)
	put(t, c+"/3", `{"n":3}`)
	a := send(t, "POST", "/load", fmt.Sprintf(`{"ids":[%q,%q,%q]}`, c+"/1", c+"/1", c+"/gone"))
	docs, _ := a.JSON("documents").(map[string]any)
	if a.Status != 200 || len(docs) != 2 || docs[c+"/1"] == nil {
		t.Fatalf("%s", a)
	}
	if v, ok := docs[c+"/gone"]; !ok || v != nil {
		t.Errorf("an absent id is null: %s", a)
	}
	if a.JSON("included") != nil || a.JSON("remaining") != nil {
		t.Errorf("included and remaining are there only when asked for and needed: %s", a)
	}
	a = send(t, "POST", "/load", fmt.Sprintf(`{"ids":[%q],"include":["customer","lines[].product"]}`, c+"/1"))
	included, _ := a.JSON("included").(map[string]any)
	if a.Status != 200 || len(included) != 3 || included[c+"/2"] == nil || included[c+"/3"] == nil {
		t.Errorf("include: %s", a)
	}
	if v, ok := included[c+"/none"]; !ok || v != nil {
		t.Errorf("a missing reference is null: %s", a)
	}
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("%s/%d", c, i)))
	}
	expect(t, send(t, "POST", "/load", `{"ids":[`+strings.Join(many, ",")+`]}`), 400, "too-many")
	expect(t, send(t, "POST", "/load", `{"ids":["users"]}`), 400, "invalid-id")
	expect(t, send(t, "POST", "/load", `{"ids":[],"x":1}`), 400, "invalid-request")
	expect(t, send(t, "POST", "/load", `{}`), 400, "invalid-request")
	expect(t, send(t, "POST", "/load", `{"ids":["a/b"]}`, "Content-Type", "text/plain"), 415, "unsupported-media-type")
}

// More than fits one answer is named, never answered as absent.
func TestMultiLoadBeyondAnAnswer(t *testing.T) {
	c := unique(t)
	body := `{"s":"` + strings.Repeat("x", 390_000) + `"}`
	waiting := map[string]bool{}
	for i := range 20 {
		id := fmt.Sprintf("%s/%d", c, i)
		put(t, id, body)
		waiting[id] = true
	}
	for rounds := 0; len(waiting) > 0; rounds++ {
		if rounds == 10 {
			t.Fatalf("%d are still missing", len(waiting))
		}
		var ids []string
		for id := range waiting {
			ids = append(ids, fmt.Sprintf("%q", id))
		}
		a := send(t, "POST", "/load", `{"ids":[`+strings.Join(ids, ",")+`]}`)
		if a.Status != 200 || len(a.Body) > 5_500_000 {
			t.Fatalf("%d, %d bytes", a.Status, len(a.Body))
		}
		docs, _ := a.JSON("documents").(map[string]any)
		for id, d := range docs {
			if d == nil {
				t.Fatalf("%s is answered as absent", id)
			}
			delete(waiting, id)
		}
		remaining, _ := a.JSON("remaining").([]any)
		if len(remaining) != len(waiting) {
			t.Fatalf("%d remaining named, %d missing", len(remaining), len(waiting))
		}
	}
}

func TestBulk(t *testing.T) {
	c := unique(t)
	put(t, c+"/old", `{}`)
	lines := strings.Join([]string{
		fmt.Sprintf(`{"id":%q,"data":{"n":1}}`, c+"/1"),
		``,
		`{"id":"users","data":{}}`,
		`{"nonsense`,
		fmt.Sprintf(`{"id":%q,"delete":true}`, c+"/old"),
		fmt.Sprintf(`{"id":%q,"delete":true}`, c+"/never"),
		fmt.Sprintf(`{"id":%q,"data":{"n":2}}`, c+"/1"),
		fmt.Sprintf(`{"id":%q,"data":{"n":1e999}}`, c+"/2"),
		fmt.Sprintf(`{"id":%q,"data":{},"extra":1}`, c+"/3"),
	}, "\n")
	a := send(t, "POST", "/bulk", lines, "Content-Type", "application/x-ndjson")
	if a.Status != 200 {
		t.Fatalf("%s", a)
	}
	var got []string
	var token string
	for line := range bytes.Lines(a.Body) {
		var r struct {
			Line    int
			ID      *string
			Version *int64
			Error   *struct{ Type, Pointer string }
			Token   *string
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch {
		case r.Token != nil:
			token = *r.Token
		case r.Error != nil:
			got = append(got, fmt.Sprintf("%d %s %v", r.Line, strings.TrimPrefix(r.Error.Type, "/problems/"), r.ID != nil))
		default:
			got = append(got, fmt.Sprintf("%d ok %v", r.Line, r.Version != nil))
		}
	}
	want := []string{"1 ok true", "3 invalid-id true", "4 invalid-json false", "5 ok true", "6 ok false", "7 ok true", "8 number-out-of-range true", "9 invalid-request true"}
	if !slices.Equal(got, want) || token == "" {
		t.Errorf("got %v token %q\nwant %v", got, token, want)
	}
	if d := send(t, "GET", "/docs/"+c+"/1", ""); fmt.Sprint(d.JSON("n")) != "2" {
		t.Errorf("lines on one id are applied in order: %s", d)
	}
	found := query(t, fmt.Sprintf(`{"from":%q,"wait":{"tokens":[%q],"timeout":"20s"}}`, c, token))
	if !slices.Equal(found.ids(), []string{c + "/1"}) {
		t.Errorf("after the token: %v", found.ids())
	}
	expect(t, send(t, "POST", "/bulk", lines), 415, "unsupported-media-type")
}

func TestChanges(t *testing.T) {
	c := unique(t)
	for i := range 7 {
		put(t, fmt.Sprintf("%s/%d", c, i), `{}`)
	}
	put(t, c+"/0", `{"again":1}`)
	send(t, "DELETE", "/docs/"+c+"/1", "")
	var seen []string
	after := ""
	last := ""
	for range 20 {
		a := send(t, "GET", "/changes?limit=3&collection="+c+after, "")
		if a.Status != 200 || a.JSON("safeThrough") == nil {
			t.Fatalf("%s", a)
		}
		changes, _ := a.JSON("changes").([]any)
		for _, x := range changes {
			m := x.(map[string]any)
			v := fmt.Sprint(m["version"])
			if v < last {
				t.Errorf("out of order: %s after %s", v, last)
			}
			last = v
			seen = append(seen, fmt.Sprintf("%s %v", strings.TrimPrefix(m["id"].(string), c+"/"), m["deleted"]))
		}
		next, _ := a.JSON("next").(string)
		if next == "" {
			t.Fatalf("next is always there: %s", a)
		}
		after = "&after=" + url.QueryEscape(next)
		if len(changes) == 0 {
			break
		}
	}
	want := []string{"2 false", "3 false", "4 false", "5 false", "6 false", "0 false", "1 true"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
	put(t, c+"/9", `{}`)
	a := send(t, "GET", "/changes?collection="+c+after, "")
	if changes, _ := a.JSON("changes").([]any); len(changes) != 1 {
		t.Errorf("polling on from next: %s", a)
	}
	expect(t, send(t, "GET", "/changes?after=zzz", ""), 400, "invalid-cursor")
	expect(t, send(t, "GET", "/changes?limit=0", ""), 400, "invalid-request")
}

func TestRoutes(t *testing.T) {
	expect(t, send(t, "GET", "/nowhere", ""), 404, "no-such-route")
	expect(t, send(t, "POST", "/batch", "{}"), 404, "no-such-route")
	expect(t, send(t, "GET", "/console", ""), 404, "no-such-route")
	for target, method := range map[string]string{"/docs/a/b": "PATCH", "/load": "GET", "/query": "GET", "/bulk": "PUT", "/changes": "POST"} {
		a := send(t, method, target, "{}")
		expect(t, a, 405, "method-not-allowed")
		if a.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", method, target)
		}
	}
	expect(t, send(t, "PUT", "/docs/a/b", "{}", "Content-Type", "text/xml"), 415, "unsupported-media-type")
	expect(t, send(t, "GET", "/docs/a/b?unknown=1", ""), 400, "invalid-request")
	expect(t, send(t, "PUT", "/docs/a/b", "{}", "Idempotency-Key", "k"), 400, "idempotency-unsupported")
	a := send(t, "GET", "/openapi.json", "")
	if v, _ := a.JSON("openapi").(string); a.Status != 200 || !strings.HasPrefix(v, "3.1") {
		t.Errorf("%s", a)
	}
	put(t, "fieldtest/1", `{"a":{"b":1,"c":2},"l":[{"x":1,"y":2},{"y":3}],"z":9}`)
	if got := send(t, "GET", "/docs/fieldtest/1?fields=a.b,l.x", ""); !sameJSON(got.Body, []byte(`{"a":{"b":1},"l":[{"x":1},{}]}`)) {
		t.Errorf("fields: %s", got)
	}
}
