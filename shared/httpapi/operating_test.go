package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/pipeline"
	"holdfast/shared/store"
)

func entry(id doc.ID, v doc.Version, partial bool) doc.Quarantined {
	return doc.Quarantined{
		ID: id, Collection: id.Collection(), Version: v, Reason: `failed to parse "a"`, Attempts: 2,
		Since: time.Date(2026, 3, 10, 5, 16, 23, 100_000, time.UTC), Partial: partial,
	}
}

func TestTheQuarantine(t *testing.T) {
	o := newOperated()
	if a := send(t, o, "GET", "/quarantine", ""); string(a.Body) != `{"entries":[]}` {
		t.Errorf("%s", a)
	}
	o.state.quarantine = []doc.Quarantined{entry("orders/1", 7, true), entry("orders/2", 8, false), entry("users/1/account/2", 9, false)}
	a := send(t, o, "GET", "/quarantine", "")
	want := `{"id":"orders/1","version":7,"reason":"failed to parse \"a\"","attempts":2,"since":"2026-03-10T05:16:23.000100Z","partial":true}`
	if a.Status != 200 || len(a.json["entries"].([]any)) != 3 || !strings.HasPrefix(string(a.Body), `{"entries":[`+want+",") || a.json["next"] != nil {
		t.Errorf("%s", a)
	}
	if head := send(t, o, "HEAD", "/quarantine", ""); head.Status != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
		t.Errorf("%s %v", head, head.Header)
	}
	a = send(t, o, "GET", "/quarantine?collection=users/account", "")
	if list := a.json["entries"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != "users/1/account/2" {
		t.Errorf("%s", a)
	}
	var ids []string
	for target := "/quarantine?limit=2"; ; {
		a := send(t, o, "GET", target, "")
		for _, e := range a.json["entries"].([]any) {
			ids = append(ids, e.(map[string]any)["id"].(string))
		}
		next, more := a.json["next"].(string)
		if !more {
			break
		}
		target = "/quarantine?limit=2&after=" + next
	}
	if strings.Join(ids, " ") != "orders/1 orders/2 users/1/account/2" {
		t.Errorf("page by page: %v", ids)
	}
	for query, kind := range map[string]string{
		"collection=a//b": "invalid-id", "after=x": "invalid-cursor", "after=": "invalid-cursor", "limit=0": "invalid-request",
		"limit=1001": "invalid-request", "x=1": "invalid-request",
	} {
		if a := send(t, o, "GET", "/quarantine?"+query, "").expect(t, 400, kind); a.json["parameter"] != strings.SplitN(query, "=", 2)[0] {
			t.Errorf("%s", a)
		}
		send(t, o, "HEAD", "/quarantine?"+query, "")
	}
	send(t, o, "POST", "/quarantine", `{}`).expect(t, 405, "method-not-allowed")
}

func TestRetryingTheQuarantine(t *testing.T) {
	o := newOperated()
	for i := range 1203 {
		o.state.quarantine = append(o.state.quarantine, entry(doc.ID(fmt.Sprintf("orders/%d", i)), doc.Version(i+1), false))
	}
	const at = "/quarantine/retry"
	a := send(t, o, "POST", at, `{"ids":["orders/7","users/none","orders/3","orders/7"]}`)
	if a.Status != 202 || string(a.Body) != `{"signalled":2}` || fmt.Sprint(o.signals.sent) != "[{orders/7 8} {orders/3 4}]" {
		t.Errorf("%s, sent %v", a, o.signals.sent)
	}
	o.signals.sent = nil
	a = send(t, o, "POST", at, `{"collection":"orders"}`)
	next, _ := a.json["next"].(string)
	if a.Status != 202 || a.json["signalled"] != 1000.0 || next == "" || len(o.signals.sent) != 1000 {
		t.Errorf("%s", a)
	}
	a = send(t, o, "POST", at, fmt.Sprintf(`{"collection":"orders","after":%q}`, next))
	if string(a.Body) != `{"signalled":203}` || len(o.signals.sent) != 1203 || o.signals.sent[1202].ID != "orders/1202" {
		t.Errorf("%s, sent %d", a, len(o.signals.sent))
	}
	if a := send(t, o, "POST", at, `{"collection":"none"}`); string(a.Body) != `{"signalled":0}` {
		t.Errorf("%s", a)
	}
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("orders/%d", i)))
	}
	for body, want := range map[string]string{
		`{}`:                               "invalid-request ",
		`[]`:                               "invalid-request ",
		`{"ids":["a/1"],"collection":"a"}`: "invalid-request ",
		`{"ids":["a/1"],"after":"x"}`:      "invalid-request /after",
		`{"ids":"a/1"}`:                    "invalid-request /ids",
		`{"ids":[7]}`:                      "invalid-request /ids/0",
		`{"ids":["a/1","a"]}`:              "invalid-id /ids/1",
		`{"ids":["a/1"],"x":1}`:            "invalid-request /x",
		`{"collection":7}`:                 "invalid-request /collection",
		`{"collection":"a//b"}`:            "invalid-id /collection",
		`{"collection":"a","after":7}`:     "invalid-cursor /after",
		`{"collection":"a","after":"x"}`:   "invalid-cursor /after",
		`{"ids":[1e999]}`:                  "number-out-of-range /ids/0",
		`{"ids":[`:                         "invalid-json <nil>",
		`{"ids":[` + strings.Join(many, ",") + `]}`: "too-many /ids",
	} {
		kind, pointer, _ := strings.Cut(want, " ")
		if a := send(t, o, "POST", at, body).expect(t, 400, kind); pointer != "<nil>" && a.json["pointer"] != pointer {
			t.Errorf("%.60s: %s", body, a)
		}
	}
	send(t, o, "POST", at+"?x=1", `{"collection":"a"}`).expect(t, 400, "invalid-request")
	send(t, o, "POST", at, `{"collection":"a"}`, "Content-Type", "text/plain").expect(t, 415, "unsupported-media-type")
	o.signals.err = errSilent
	send(t, o, "POST", at, `{"collection":"orders"}`).expect(t, 503, "unavailable")
}

// ranOnce puts a record of repair there.
func (o *operated) ranOnce(t *testing.T, outcome string, r repair.Report) {
	t.Helper()
	detail, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"name":"repair","mode":"prove","started":%q,"finished":%q,"outcome":%q,"detail":%s}`,
		o.now.Add(-30*time.Second).Format(time.RFC3339), o.now.Add(-20*time.Second).Format(time.RFC3339), outcome, detail)
	o.state.records[repair.Name] = store.JobRecord{Name: repair.Name, Fence: 7, Body: json.RawMessage(body)}
}

func TestJobs(t *testing.T) {
	o := newOperated()
	a := send(t, o, "GET", "/jobs", "")
	want := `{"jobs":[{"name":"reindex","modes":[],"last":null,"requests":[]},{"name":"repair","modes":["prove","compare","purge","retry"],"last":null,"requests":[]}]}`
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("%s", a)
	}
	o.ranOnce(t, "ok", repair.Report{Resignalled: 3})
	o.state.records["repair/state"] = store.JobRecord{Name: "repair/state", Body: json.RawMessage(`{}`)}
	a = send(t, o, "GET", "/jobs/repair", "")
	last, _ := a.json["last"].(map[string]any)
	if a.Status != 200 || last["mode"] != "prove" || last["started"] != "2026-03-10T11:59:30.000000Z" || last["finished"] != "2026-03-10T11:59:40.000000Z" ||
		last["outcome"] != "ok" || last["detail"].(map[string]any)["resignalled"] != 3.0 {
		t.Errorf("%s", a)
	}
	if a := send(t, o, "GET", "/jobs", ""); strings.Contains(string(a.Body), "detail") || !strings.Contains(string(a.Body), `"outcome":"ok"`) || len(a.json["jobs"].([]any)) != 2 {
		t.Errorf("%s", a)
	}
	for target, length := range map[string]int{"/jobs": len(send(t, o, "GET", "/jobs", "").Body), "/jobs/repair": len(a.Body)} {
		if head := send(t, o, "HEAD", target, ""); head.Status != 200 || head.Header.Get("Content-Length") != fmt.Sprint(length) {
			t.Errorf("%s: %s %v", target, head, head.Header)
		}
	}
	// What there is not, or not yet.
	for _, name := range []string{"aggregate", "prefill", "audit", "backup", "repair/state", "Repair", ""} {
		send(t, o, "GET", "/jobs/"+name, "").expect(t, 404, "not-found")
		send(t, o, "HEAD", "/jobs/"+name, "")
		send(t, o, "POST", "/jobs/"+name, `{}`).expect(t, 404, "not-found")
	}
}

func TestAskingForAJob(t *testing.T) {
	o := newOperated()
	o.state.used["orders"] = true
	o.ranOnce(t, "ok", repair.Report{})
	for body, want := range map[string]string{
		`{}`:                 `{"name":"repair","mode":"prove","at":"2026-03-10T12:00:00.000000Z"}`,
		`{"mode":"compare"}`: `{"name":"repair","mode":"compare","at":"2026-03-10T12:00:00.000000Z"}`,
		`{"mode":"purge"}`:   `{"name":"repair","mode":"purge","at":"2026-03-10T12:00:00.000000Z"}`,
		`{"mode":"retry"}`:   `{"name":"repair","mode":"retry","at":"2026-03-10T12:00:00.000000Z"}`,
	} {
		if a := send(t, o, "POST", "/jobs/repair", body); a.Status != 202 || string(a.Body) != want {
			t.Errorf("%s: %s", body, a)
		}
		if a := send(t, o, "POST", "/jobs/repair", body).expect(t, 409, "job-running"); a.json["since"] != "2026-03-10T12:00:00.000000Z" {
			t.Errorf("again: %s", a)
		}
	}
	for body, want := range map[string]string{
		`{}`:                      `{"name":"reindex","at":"2026-03-10T12:00:00.000000Z"}`,
		`{"collection":"orders"}`: `{"name":"reindex","collection":"orders","at":"2026-03-10T12:00:00.000000Z"}`,
	} {
		if a := send(t, o, "POST", "/jobs/reindex", body); a.Status != 202 || string(a.Body) != want {
			t.Errorf("%s: %s", body, a)
		}
		send(t, o, "POST", "/jobs/reindex", body).expect(t, 409, "job-running")
	}
	send(t, o, "POST", "/jobs/reindex", `{"collection":"none"}`).expect(t, 404, "not-found")
	if a := send(t, o, "GET", "/jobs/reindex", ""); len(a.json["requests"].([]any)) != 2 || a.json["last"] != nil {
		t.Errorf("%s", a)
	}
	if a := send(t, o, "GET", "/jobs", ""); strings.Count(string(a.Body), `"at":`) != 6 {
		t.Errorf("%s", a)
	}
	// A comparison that is under way need not be asked for.
	o.state.requests = nil
	o.ranOnce(t, "more", repair.Report{Pass: &repair.PassFigures{Started: o.now.Add(-time.Minute)}})
	for _, mode := range []string{"compare", "purge"} {
		if a := send(t, o, "POST", "/jobs/repair", `{"mode":"`+mode+`"}`).expect(t, 409, "job-running"); a.json["since"] != "2026-03-10T11:59:00.000000Z" {
			t.Errorf("%s", a)
		}
	}
	for _, mode := range []string{"prove", "retry"} {
		if a := send(t, o, "POST", "/jobs/repair", `{"mode":"`+mode+`"}`); a.Status != 202 {
			t.Errorf("%s", a)
		}
	}
	for target, bodies := range map[string]map[string]string{
		"/jobs/repair": {
			`[]`: "invalid-request", `{"mode":"all"}`: "invalid-request", `{"mode":7}`: "invalid-request", `{"collection":"orders"}`: "invalid-request",
			`{"mode":1e999}`: "number-out-of-range", `{`: "invalid-json", ``: "invalid-json",
		},
		"/jobs/reindex": {`{"mode":"prove"}`: "invalid-request", `{"collection":7}`: "invalid-request", `{"collection":"a//b"}`: "invalid-id"},
	} {
		for body, kind := range bodies {
			send(t, o, "POST", target, body).expect(t, 400, kind)
		}
	}
	send(t, o, "POST", "/jobs/repair?x=1", `{}`).expect(t, 400, "invalid-request")
	send(t, o, "POST", "/jobs/repair", `{}`, "Content-Type", "text/plain").expect(t, 415, "unsupported-media-type")
	send(t, o, "PUT", "/jobs/repair", `{}`).expect(t, 405, "method-not-allowed")
	o.state.records[repair.Name] = store.JobRecord{Body: json.RawMessage(`"what"`)}
	send(t, o, "POST", "/jobs/repair", `{"mode":"compare"}`).expect(t, 500, "internal")
}

func TestDeadLetters(t *testing.T) {
	o := newOperated()
	if a := send(t, o, "GET", "/dead-letters", ""); string(a.Body) != `{"messages":[],"counts":{"signals":0,"relay":0}}` {
		t.Errorf("%s", a)
	}
	o.letters.letters = []pipeline.DeadLetter{
		{Queue: pipeline.SignalLetters, ID: "m1", Sent: o.now, Receives: 11, Signals: []doc.Signal{{ID: "users/1", Version: 7}, {ID: `users/"2"`, Version: 8}}},
		{Queue: pipeline.SignalLetters, ID: "m2", Unreadable: "no JSON"},
		{Queue: pipeline.RelayLetters, ID: "m3", Sent: o.now, Receives: 1, Unreadable: "12 changes"},
	}
	a := send(t, o, "GET", "/dead-letters", "")
	want := `{"messages":[{"queue":"signals","id":"m1","sent":"2026-03-10T12:00:00.000000Z","receives":11,"signals":[{"id":"users/1","version":7},{"id":"users/\"2\"","version":8}]},` +
		`{"queue":"signals","id":"m2","sent":null,"receives":0,"unreadable":"no JSON"},` +
		`{"queue":"relay","id":"m3","sent":"2026-03-10T12:00:00.000000Z","receives":1,"unreadable":"12 changes"}],"counts":{"signals":2,"relay":1}}`
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("%s", a)
	}
	if head := send(t, o, "HEAD", "/dead-letters", ""); head.Status != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
		t.Errorf("%s %v", head, head.Header)
	}
	if a := send(t, o, "GET", "/dead-letters?limit=1", ""); len(a.json["messages"].([]any)) != 1 {
		t.Errorf("%s", a)
	}
	for _, query := range []string{"limit=0", "limit=101", "x=1"} {
		send(t, o, "GET", "/dead-letters?"+query, "").expect(t, 400, "invalid-request")
		send(t, o, "HEAD", "/dead-letters?"+query, "")
	}
	for body, want := range map[string]string{
		"":                            `{"moved":1,"discarded":0,"remaining":2} 1000 false`,
		`{}`:                          `{"moved":1,"discarded":0,"remaining":2} 1000 false`,
		`{"limit":7}`:                 `{"moved":1,"discarded":0,"remaining":2} 7 false`,
		`{"discard":true}`:            `{"moved":1,"discarded":2,"remaining":0} 1000 true`,
		`{"limit":1,"discard":false}`: `{"moved":1,"discarded":0,"remaining":2} 1 false`,
	} {
		a := send(t, o, "POST", "/dead-letters/redrive", body)
		if got := fmt.Sprintf("%s %d %t", a.Body, o.letters.limit, o.letters.discards); a.Status != 200 || got != want {
			t.Errorf("%s: %s", body, got)
		}
	}
	for body, kind := range map[string]string{
		`[]`: "invalid-request", `{"x":1}`: "invalid-request", `{"limit":0}`: "invalid-request", `{"limit":1001}`: "invalid-request", `{"limit":1.5}`: "invalid-request",
		`{"limit":"1"}`: "invalid-request", `{"discard":1}`: "invalid-request", `{"limit":1e999}`: "number-out-of-range", `{`: "invalid-json",
	} {
		send(t, o, "POST", "/dead-letters/redrive", body).expect(t, 400, kind)
	}
	send(t, o, "POST", "/dead-letters/redrive?x=1", "").expect(t, 400, "invalid-request")
	send(t, o, "POST", "/dead-letters/redrive", `{}`, "Content-Type", "text/plain").expect(t, 415, "unsupported-media-type")
	send(t, o, "GET", "/dead-letters/redrive", "").expect(t, 405, "method-not-allowed")
	o.letters.err = errSilent
	for _, method := range []string{"GET", "HEAD"} {
		if a := send(t, o, method, "/dead-letters", ""); a.Status != 503 {
			t.Errorf("%s", a)
		}
	}
	send(t, o, "POST", "/dead-letters/redrive", "").expect(t, 503, "unavailable")
}

// A list of dead letters ends where an answer does.
func TestDeadLettersOfMegabytes(t *testing.T) {
	o := newOperated()
	for i := range 100 {
		l := pipeline.DeadLetter{Queue: pipeline.SignalLetters, ID: fmt.Sprintf("m%d", i), Sent: o.now}
		for j := range 100 {
			l.Signals = append(l.Signals, doc.Signal{ID: doc.ID(fmt.Sprintf("users/%s%d", strings.Repeat("x", 500), j)), Version: 1})
		}
		o.letters.letters = append(o.letters.letters, l)
	}
	a := send(t, o, "GET", "/dead-letters?limit=100", "")
	if n := len(a.json["messages"].([]any)); a.Status != 200 || n < 50 || n == 100 || len(a.Body) > answerBytes {
		t.Errorf("%d messages, %d bytes", n, len(a.Body))
	}
}

// TestWhatOperatorsGetWhenTheTableFails goes through all routes that read the
// state.
func TestWhatOperatorsGetWhenTheTableFails(t *testing.T) {
	o := newOperated()
	for kind, status := range map[doc.Kind]int{doc.Throttled: 429, doc.Unavailable: 503, "": 500} {
		o.state.err = doc.Errorf(kind, "no")
		if kind == "" {
			o.state.err = errors.New("no")
		}
		for _, target := range []string{"/status", "/quarantine", "/jobs", "/jobs/repair"} {
			for _, method := range []string{"GET", "HEAD"} {
				if a := send(t, o, method, target, ""); a.Status != status {
					t.Errorf("%s %s: %s", method, target, a)
				}
			}
		}
		for _, target := range []string{"/quarantine/retry", "/jobs/repair", "/jobs/reindex"} {
			body := `{}`
			switch target {
			case "/quarantine/retry":
				body = `{"ids":["a/1"]}`
			case "/jobs/reindex":
				body = `{"collection":"a"}`
			}
			if a := send(t, o, "POST", target, body); a.Status != status {
				t.Errorf("%s: %s", target, a)
			}
		}
	}
	// What has nothing to do with the table.
	o.letters.err = doc.Errorf(doc.Throttled, "no")
	send(t, o, "POST", "/dead-letters/redrive", "").expect(t, 503, "unavailable")
	for _, method := range []string{"GET", "HEAD"} {
		for _, target := range []string{"/status", "/quarantine", "/jobs", "/jobs/repair", "/dead-letters"} {
			send(t, o, method, target+"?x=1", "")
			send(t, o, method, target, "", "Idempotency-Key", "k")
		}
	}
	for _, target := range []string{"/quarantine/retry", "/jobs/repair", "/dead-letters/redrive"} {
		send(t, o, "POST", target, `{}`, "Idempotency-Key", "k").expect(t, 400, "idempotency-unsupported")
		send(t, o, "POST", target, strings.Repeat(" ", MaxBody+1)).expect(t, 413, "request-too-large")
	}
	for _, path := range []string{"/", "/status/", "/statusx", "/jobsx", "/quarantine/", "/dead-letters/1"} {
		send(t, o, "GET", path, "").expect(t, 404, "no-such-route")
	}
}
