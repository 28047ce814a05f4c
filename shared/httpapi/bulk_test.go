package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

type bulkAnswer struct {
	Line    int
	ID      *string
	Version *int64
	Error   *struct {
		Type, Title, Detail, Pointer, RequestID string
		Status                                  int
	}
	Token *string
}

// bulkLines decodes the lines of an answer, each checked against the contract,
// and returns the token of the last one.
func bulkLines(t *testing.T, a answer) (lines []bulkAnswer, token string) {
	t.Helper()
	if a.Status != 200 || a.Header.Get("Content-Type") != typeNDJSON {
		t.Fatalf("%s", a)
	}
	all := bytes.Split(bytes.TrimSuffix(a.Body, []byte("\n")), []byte("\n"))
	checked := map[string]bool{} // one line of each form
	for i, text := range all {
		var line bulkAnswer
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
		schema, form := "BulkResult", "written"
		switch {
		case i == len(all)-1:
			schema, form = "BulkToken", "token"
		case line.Error != nil:
			form = line.Error.Type
		case line.Version == nil:
			form = "absent"
		}
		if checked[form] {
			continue
		}
		checked[form] = true
		if err := contract.Components.Schemas[schema].Value.VisitJSON(anyJSON(t, text), openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if last := lines[len(lines)-1]; last.Token == nil {
		t.Fatalf("no token at the end of %s", a)
	} else {
		token = *last.Token
	}
	return lines[:len(lines)-1], token
}

func (l bulkAnswer) String() string {
	id := "null"
	if l.ID != nil {
		id = *l.ID
	}
	switch {
	case l.Error != nil:
		return fmt.Sprintf("%d %.20s %s %s", l.Line, id, strings.TrimPrefix(l.Error.Type, "/problems/"), l.Error.Pointer)
	case l.Version == nil:
		return fmt.Sprintf("%d %s absent", l.Line, id)
	}
	return fmt.Sprintf("%d %s ok", l.Line, id)
}

func TestBulk(t *testing.T) {
	h, s := newDocuments()
	s.docs["a/old"] = fakeDocument("a/old", map[string]any{})
	deep := strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32)
	for _, ending := range []string{"\n", "\r\n"} {
		body := strings.Join([]string{
			`{"id":"a/1","data":{"n":1}}`, // 1
			``, " \t",                     // 2, 3
			`{"id":"a/old","delete":true}`,           // 4
			`{"id":"a/never","delete":true}`,         // 5
			`{"id":"a/1","data":{"n":2.0}}`,          // 6
			`{"nonsense`,                             // 7
			`{"id":"users","data":{}}`,               // 8
			`{"id":7,"data":{}}`,                     // 9
			`{"data":{}}`,                            // 10
			`[]`,                                     // 11
			`{"id":"a/2"}`,                           // 12
			`{"id":"a/2","data":{},"x":1}`,           // 13
			`{"id":"a/2","data":{},"delete":true}`,   // 14
			`{"id":"a/2","delete":false}`,            // 15
			`{"id":"a/2","data":[]}`,                 // 16
			`{"id":"a/2","data":{"n":1e999}}`,        // 17
			`{"id":"a/2","data":{"n":1,"n":2}}`,      // 18
			`{"id":"a/deep","data":` + deep + `}`,    // 19
			`{"id":"a/2","data":{"a":` + deep + `}}`, // 20
			`{"id":"a/2","data":{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`, // 21
			`{"id":"` + strings.Repeat("x", 600) + `","data":{}}`,                                     // 22
			`{"id":"a/é\"","data":{}}`,        // 23
			"{\"id\":\"a/\xff\",\"data\":{}}", // 24
		}, ending)
		a := send(t, h, "POST", "/bulk", body, "Content-Type", "application/x-ndjson; charset=utf-8")
		lines, token := bulkLines(t, a)
		var got []string
		for _, l := range lines {
			got = append(got, strings.TrimSpace(l.String()))
		}
		want := []string{
			"1 a/1 ok", "4 a/old ok", "5 a/never absent", "6 a/1 ok",
			"7 null invalid-json", "8 users invalid-id /id", "9 null invalid-request /id", "10 null invalid-request /id", "11 null invalid-request",
			"12 a/2 invalid-request /data", "13 a/2 invalid-request /x", "14 a/2 invalid-request /delete", "15 a/2 invalid-request /delete",
			"16 a/2 not-an-object /data", "17 a/2 number-out-of-range /data/n", "18 a/2 invalid-json /data/n",
			"19 a/deep ok", "20 a/2 document-too-deep /data" + strings.Repeat("/a", 32), "21 a/2 document-too-deep",
			"22 null invalid-id /id", `23 a/é" ok`, "24 null invalid-json /id",
		}
		for i := range want {
			if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("line %d: got %s\nwant %s", i, got[min(i, len(got)-1)], want[i])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d answers, want %d", len(got), len(want))
		}
		signals, err := freshness.ParseToken(token)
		if err != nil || len(signals) != 4 {
			t.Errorf("the token is about %v, %v", signals, err)
		}
		if n := s.docs["a/1"].Data["n"]; n != number(2) {
			t.Errorf("lines on one id are applied in order: %v", n)
		}
		for _, sig := range signals {
			if sig.ID == "a/1" && sig.Version != s.docs["a/1"].Version {
				t.Errorf("the token has the newest version of an id: %v", sig)
			}
		}
		s.docs["a/old"] = fakeDocument("a/old", map[string]any{})
	}
	if a := send(t, h, "POST", "/bulk", "\n\n", "Content-Type", typeNDJSON); string(a.Body) != `{"token":""}`+"\n" {
		t.Errorf("nothing to do: %s", a)
	}
}

func TestLimitsOfBulk(t *testing.T) {
	h, s := newDocuments()
	a := send(t, h, "POST", "/bulk", strings.Repeat("x\n\n", mostLines+1), "Content-Type", typeNDJSON).expect(t, 413, "batch-too-large")
	if a.json["limit"] != float64(mostLines) || a.json["actual"] != float64(mostLines+1) || len(s.docs) != 0 {
		t.Errorf("%s", a)
	}
	send(t, h, "POST", "/bulk", strings.Repeat(" ", MaxBody+1), "Content-Type", typeNDJSON).expect(t, 413, "request-too-large")
	panics := Documents(DocumentsOptions{Store: s, Token: func([]doc.Written) string { panic("x") }})
	send(t, panics, "POST", "/bulk", `{"id":"a/1","data":{}}`, "Content-Type", typeNDJSON).expect(t, 500, "internal")
}

func TestFailuresInBulk(t *testing.T) {
	h, s := newDocuments()
	s.hook = func(id doc.ID) error {
		switch id {
		case "a/1":
			return doc.Errorf(doc.Throttled, "too fast")
		case "a/2":
			return errors.New("secret")
		case "a/3":
			panic("secret")
		case "a/4":
			return fmt.Errorf("writing: %w", context.DeadlineExceeded)
		case "a/5":
			return doc.Errorf(doc.DocumentTooLarge, "too large").With("limit", 409600).With("actual", 500000)
		}
		return nil
	}
	var body strings.Builder
	for i := range 7 {
		fmt.Fprintf(&body, `{"id":"a/%d","data":{}}`+"\n", i)
	}
	a := send(t, h, "POST", "/bulk", body.String(), "Content-Type", typeNDJSON)
	lines, _ := bulkLines(t, a)
	want := []string{"1 a/0 ok", "2 a/1 throttled ", "3 a/2 internal ", "4 a/3 internal ", "5 a/4 outcome-unknown ", "6 a/5 document-too-large ", "7 a/6 ok"}
	for i, l := range lines {
		if l.String() != want[i] {
			t.Errorf("got %s, want %s", l, want[i])
		}
	}
	if bytes.Contains(a.Body, []byte("secret")) || lines[2].Error.RequestID != "req-1" {
		t.Errorf("%s", a)
	}
}

// Several lines are written at once, never two of one id, and each id's in order.
func TestBulkIsConcurrentAndKeepsTheOrderOfAnID(t *testing.T) {
	h, s := newDocuments()
	var mu sync.Mutex
	busy := map[doc.ID]bool{}
	most, now := 0, 0
	together := make(chan struct{})
	var once sync.Once
	s.hook = func(id doc.ID) error {
		mu.Lock()
		if busy[id] {
			t.Errorf("two lines on %s at once", id)
		}
		busy[id] = true
		now++
		most = max(most, now)
		if now == bulkWriters {
			once.Do(func() { close(together) })
		}
		mu.Unlock()
		select {
		case <-together: // the first ones wait until all writers are busy
		case <-time.After(20 * time.Second):
			t.Error("the writers do not work at once")
		}
		mu.Lock()
		defer mu.Unlock()
		busy[id] = false
		now--
		return nil
	}
	var body strings.Builder
	const ids, rounds = 20, 30
	for r := range rounds {
		for i := range ids {
			fmt.Fprintf(&body, `{"id":"a/%d","data":{"n":%d}}`+"\n", i, r)
		}
	}
	lines, _ := bulkLines(t, send(t, h, "POST", "/bulk", body.String(), "Content-Type", typeNDJSON))
	last := map[string]int64{}
	for i, l := range lines {
		if l.Line != i+1 || l.Version == nil || *l.Version <= last[*l.ID] {
			t.Fatalf("line %d: %s at %v after %d", i+1, l, l.Version, last[*l.ID])
		}
		last[*l.ID] = *l.Version
	}
	if len(lines) != ids*rounds || most != bulkWriters {
		t.Errorf("%d lines, at most %d at once", len(lines), most)
	}
	for i := range ids {
		if n := s.docs[doc.ID(fmt.Sprintf("a/%d", i))].Data["n"]; n != number(rounds-1) {
			t.Errorf("a/%d is at %v", i, n)
		}
	}
}

// Once time is up the remaining lines are answered as not tried.
func TestBulkStopsInTime(t *testing.T) {
	s := newFakeStore()
	var moved atomic.Int64
	begun := time.Now()
	h := Documents(DocumentsOptions{Store: s, Token: freshness.Tokens, Now: func() time.Time { return begun.Add(time.Duration(moved.Load())) }})
	s.hook = func(id doc.ID) error {
		if id == "a/50" {
			moved.Store(int64(58 * time.Second))
		}
		return nil
	}
	ctx, cancel := context.WithDeadline(t.Context(), begun.Add(time.Minute))
	defer cancel()
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, `{"id":"a/%d","data":{}}`+"\n", i)
	}
	r := &Request{Method: http.MethodPost, Path: "/bulk", Header: http.Header{"Content-Type": {typeNDJSON}}, Body: []byte(body.String()), ID: "r"}
	lines, token := bulkLines(t, answer{Response: h.Serve(ctx, r)})
	if len(lines) != 1000 {
		t.Fatalf("%d lines are answered", len(lines))
	}
	written := 0
	for i, l := range lines {
		if l.Error == nil {
			written++
			if i > written-1 {
				t.Errorf("line %d was tried after an untried one", l.Line)
			}
			continue
		}
		if l.ID == nil || *l.ID != fmt.Sprintf("a/%d", i) || l.Error.Type != "/problems/unavailable" || !strings.Contains(l.Error.Detail, "not tried") {
			t.Errorf("%s: %s", l, l.Error.Detail)
		}
	}
	if written < 51 || written > 51+bulkWindow || written != len(s.docs) {
		t.Errorf("%d lines were written, %d documents", written, len(s.docs))
	}
	if signals, err := freshness.ParseToken(token); err != nil || len(signals) != written {
		t.Errorf("the token is about %d documents, %v", len(signals), err)
	}
}

// The longest ids there are: the answer with its token still fits.
func TestBulkAnswersFit(t *testing.T) {
	h, s := newDocuments()
	var body strings.Builder
	for i := 0; body.Len() < MaxBody-600; i++ {
		fmt.Fprintf(&body, `{"id":"%s/%08d","data":{}}`+"\n", strings.Repeat(`\"`, 503), i)
	}
	a := send(t, h, "POST", "/bulk", body.String()[:MaxBody-600], "Content-Type", typeNDJSON)
	lines, token := bulkLines(t, a)
	if len(a.Body) > answerBytes || payloadSize(a.Body) > payloadBytes {
		t.Errorf("%d bytes, %d in the payload", len(a.Body), payloadSize(a.Body))
	}
	signals, err := freshness.ParseToken(token)
	if err != nil || len(signals) != len(s.docs) || len(s.docs) == 0 {
		t.Errorf("%d documents, the token is about %d, %v", len(s.docs), len(signals), err)
	}
	untried := 0
	for _, l := range lines {
		if l.Error != nil && strings.Contains(l.Error.Detail, "answer is full") {
			untried++
		}
	}
	if len(s.docs) < len(lines)/4 {
		t.Errorf("only %d of %d were written", len(s.docs), len(lines))
	}
	if untried == 0 {
		t.Errorf("this was to be more than fits: %d lines, %d bytes", len(lines), len(a.Body))
	}
}

// A line that is not tried is named all the same, wherever its id can be read.
func TestBulkNamesWhatItDoesNotTry(t *testing.T) {
	h, s := newDocuments()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(bulkReserve))
	defer cancel()
	body := strings.Join([]string{
		`{"id":"a/1","data":{}}`,
		`{"data":{"id":"no","deep":[{"id":"no"}]},"id":"a/2"}`,
		` { "delete" : true , "id" : "a/\u00e9\"" } `,
		`{"id":"a/4","data":{"cut`, // nothing behind the id is read
		`{"ID":"a/5","data":{}}`,
		`{"id":"a/6`,
		`{"id":7}`,
		`["id","a/8"]`,
		"{\"id\":\"a/\xff\"}",
		`{"id":"a/\ud800"}`,
		`{"id":"a/` + strings.Repeat("x", doc.MaxIDBytes) + `"}`,
		`{"data":{"n":01},"id":"a/12"}`,
		`nonsense`,
	}, "\n")
	want := []string{"a/1", "a/2", `a/é"`, "a/4", "", "", "", "", "", "", "", "", ""}
	r := &Request{Method: http.MethodPost, Path: "/bulk", Header: http.Header{"Content-Type": {typeNDJSON}}, Body: []byte(body), ID: "r"}
	lines, token := bulkLines(t, answer{Response: h.Serve(ctx, r)})
	if len(lines) != len(want) || token != "" || len(s.docs) != 0 {
		t.Fatalf("%v %q", lines, token)
	}
	for i, l := range lines {
		id := ""
		if l.ID != nil {
			id = *l.ID
		}
		if id != want[i] || l.Error == nil || l.Error.Type != "/problems/unavailable" {
			t.Errorf("line %d is %q, want %q", i+1, id, want[i])
		}
	}
}

// As many lines as there may be with ids as long as fit a request, none of them
// tried: those are named that there is room for.
func TestNamesOfUntriedLinesFit(t *testing.T) {
	h, _ := newDocuments()
	for length, all := range map[int]bool{60: true, 500: false} {
		var body strings.Builder
		for i := range mostLines {
			fmt.Fprintf(&body, `{"id":"a/%0*d","data":{}}`+"\n", length, i)
		}
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(bulkReserve))
		defer cancel()
		r := &Request{Method: http.MethodPost, Path: "/bulk", Header: http.Header{"Content-Type": {typeNDJSON}}, Body: []byte(body.String()), ID: "r"}
		a := answer{Response: h.Serve(ctx, r)}
		lines, _ := bulkLines(t, a)
		if len(a.Body) > answerBytes || payloadSize(a.Body) > payloadBytes {
			t.Errorf("%d bytes, %d in the payload", len(a.Body), payloadSize(a.Body))
		}
		named := 0
		for _, l := range lines {
			if l.ID != nil {
				named++
			}
		}
		if len(lines) != mostLines || named < mostLines/2 || (named == mostLines) != all {
			t.Errorf("%d lines, %d of them named", len(lines), named)
		}
	}
}

// What is reserved for the answer that a line was not tried is enough.
func TestTheReserveOfAnUntriedLine(t *testing.T) {
	p := problemOf(doc.Errorf(doc.Unavailable, "not tried: %s; send this line again", "the answer is full"), "r")
	text := p.append([]byte(`{"line":6291456,"id":null,"error":`))
	if took := sizeOf(append(text, "}\n"...)); took.answer > untriedSize.answer || took.payload > untriedSize.payload {
		t.Errorf("it takes %+v", took)
	}
}
