package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// operate answers the routes for operators from a table of texts: by method and
// path with its query. It notes what was asked.
func operate(f *fake, answers map[string]string) *[]string {
	var asked []string
	f.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		name := r.Method + " " + r.URL.RequestURI()
		asked = append(asked, strings.TrimSpace(name+" "+string(body)))
		text, ok := answers[name]
		switch {
		case !ok:
			return false
		case strings.HasPrefix(text, "4"):
			tellProblem(w, 400+int(text[2]-'0'), text[4:])
		default:
			fmt.Fprint(w, text)
		}
		return true
	}
	return &asked
}

const jobsText = `[{"name":"reindex","modes":[],"last":null,"requests":[{"collection":"orders","at":"2026-03-10T12:00:00.000000Z"}]},` +
	`{"name":"repair","modes":["prove","compare"],"last":{"mode":"prove","started":"2026-03-10T12:00:00.000000Z","finished":"2026-03-10T12:00:01.000000Z","outcome":"failed","error":"no answer\u001b"},"requests":[]}]`

func statusText(healthy bool, problems, more string) string {
	return fmt.Sprintf(`{"healthy":%t,"problems":[%s],"collections":[{"name":"orders","documents":830,"indexed":829,"provenThrough":"2026-03-10T12:00:00.000000Z","quarantined":1,"generation":2,"reindexing":true}]%s,`+
		`"pipeline":{"lagSeconds":0.412,"feedLagSeconds":null,"pending":3,"deadLetters":null,"givenUp":0},"jobs":%s,"version":"v1.2.3"}`, healthy, problems, more, jobsText)
}

func TestStatus(t *testing.T) {
	f := newFake(t)
	asked := operate(f, map[string]string{
		"GET /status":           statusText(false, `{"type":"quarantine","detail":"1 document is not indexed in full.","action":"Look at the reasons."}`, `,"next":"two"`),
		"GET /status?after=two": `{"healthy":false,"problems":[],"collections":[{"name":"users","documents":null,"indexed":null,"provenThrough":null,"quarantined":0,"generation":null,"reindexing":false}],"pipeline":{},"jobs":[],"version":"v1.2.3"}`,
	})
	r := f.holdfast("status").expect(t, exitNotAsPromised)
	want := `Not all is as it should be.

! 1 document is not indexed in full.
  Look at the reasons.

collection  documents  indexed  proven                quarantined  generation
orders      830        829      2026-03-10 12:00 UTC  1            2, being indexed anew
users       ?          ?        never                 0            ?

lag               0.412 s
lag of the feed   ?
messages pending  3
dead letters      ?
changes given up  0
version           v1.2.3

job      last run              mode   outcome             asked for
reindex  never                                            orders
repair   2026-03-10 12:00 UTC  prove  failed: no answer\uFFFD
`
	if r.out != strings.ReplaceAll(want, `\uFFFD`, "\uFFFD") || !strings.Contains(r.messages, "not all is as it should be") {
		t.Errorf("%s%s", r.out, r.messages)
	}
	if len(*asked) != 2 {
		t.Errorf("asked %v", *asked)
	}
	r = f.holdfast("status", "--output", "json").expect(t, exitNotAsPromised)
	var all struct {
		Healthy     bool
		Collections []struct{ Name string }
		Next        string
	}
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || all.Healthy || len(all.Collections) != 2 || all.Next != "" {
		t.Errorf("%s, %v", r.out, err)
	}
	operate(f, map[string]string{"GET /status": statusText(true, "", "")})
	if r := f.holdfast("status").expect(t, exitOK); !strings.HasPrefix(r.out, "All is well.\n\ncollection") || r.messages != "" {
		t.Errorf("%s%s", r.out, r.messages)
	}
	operate(f, map[string]string{"GET /status": "404 no-such-route"})
	f.holdfast("status").expect(t, exitFailed)
	for _, wrong := range [][]string{{"--output", "yaml"}, {"--watch=0s"}, {"--watch=-1s"}, {"--watch", "5s"}} {
		f.holdfast(append([]string{"status"}, wrong...)...).expect(t, exitUsage)
	}
}

// A watched status is shown again, whatever it says, until somebody has enough.
func TestAWatchedStatus(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	times := 0
	f.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		switch times++; times {
		case 2:
			tellProblem(w, 400, "invalid-request")
		case 4:
			cancel()
			fallthrough
		default:
			fmt.Fprint(w, statusText(times%2 == 0, "", ""))
		}
		return true
	}
	var out, messages strings.Builder
	code := run(ctx, []string{"status", "--watch=1ms", "--endpoint", f.url}, &out, &messages)
	if code != exitOK || strings.Count(out.String(), "Not all is as it should be.") != 2 || !strings.Contains(messages.String(), "About invalid-request") || strings.Contains(out.String(), clearScreen) {
		t.Errorf("exit code %d\n%s%s", code, out.String(), messages.String())
	}
}

func TestQuarantineOnTheCommandLine(t *testing.T) {
	f := newFake(t)
	entry := func(id string, partial bool) string {
		return fmt.Sprintf(`{"id":%q,"version":1796029203123456,"reason":"failed to parse","attempts":2,"since":"2026-03-10T12:00:00.000000Z","partial":%t}`, id, partial)
	}
	asked := operate(f, map[string]string{
		"GET /quarantine":                            `{"entries":[` + entry("a/1", true) + `,` + entry("b/22", false) + `],"next":"two"}`,
		"GET /quarantine?after=two":                  `{"entries":[` + entry("c/3", false) + `]}`,
		"GET /quarantine?collection=c":               `{"entries":[]}`,
		"POST /quarantine/retry":                     `{"signalled":2}`,
		"GET /quarantine?after=two&collection=never": `{}`,
	})
	want := `id    version           since                 attempts           reason
a/1   1796029203123456  2026-03-10 12:00 UTC  2         partial  failed to parse
b/22  1796029203123456  2026-03-10 12:00 UTC  2                  failed to parse
c/3   1796029203123456  2026-03-10 12:00 UTC  2                  failed to parse
`
	if r := f.holdfast("quarantine", "list").expect(t, exitOK); r.out != want {
		t.Errorf("%s", r.out)
	}
	if r := f.holdfast("quarantine", "list", "--output", "json").expect(t, exitOK); strings.Count(r.out, "\n") != 3 || !strings.HasPrefix(r.out, `{"id":"a/1","version":1796029203123456,`) {
		t.Errorf("%s", r.out)
	}
	if r := f.holdfast("quarantine", "list", "--collection", "c").expect(t, exitOK); r.out != "" {
		t.Errorf("%s", r.out)
	}
	*asked = nil
	if r := f.holdfast("quarantine", "retry", "a/1", "b/22").expect(t, exitOK); r.out != `{"signalled":2}`+"\n" || (*asked)[0] != `POST /quarantine/retry {"ids":["a/1","b/22"]}` {
		t.Errorf("%s %v", r.out, *asked)
	}
	*asked = nil
	if r := f.holdfast("quarantine", "retry", "--all").expect(t, exitOK); r.out != `{"signalled":4}`+"\n" || len(*asked) != 4 || (*asked)[3] != `POST /quarantine/retry {"ids":["c/3"]}` {
		t.Errorf("%s %v", r.out, *asked)
	}
	ids := make([]string, 201)
	for i := range ids {
		ids[i] = fmt.Sprintf("a/%d", i)
	}
	if r := f.holdfast(append([]string{"quarantine", "retry"}, ids...)...).expect(t, exitOK); r.out != `{"signalled":6}`+"\n" {
		t.Errorf("%s", r.out)
	}
	pages := 0
	f.before = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		pages++
		if want := []string{`{"collection":"c"}`, `{"after":"two","collection":"c"}`}[pages-1]; string(body) != want {
			t.Errorf("asked %s, want %s", body, want)
		}
		fmt.Fprint(w, []string{`{"signalled":1000,"next":"two"}`, `{"signalled":7}`}[pages-1])
		return true
	}
	if r := f.holdfast("quarantine", "retry", "--collection", "c").expect(t, exitOK); r.out != `{"signalled":1007}`+"\n" {
		t.Errorf("%s", r.out)
	}
	f.before = nil
	for _, wrong := range []string{"retry", "retry a/1 --all", "retry --all --collection c", "list x", "list --output yaml"} {
		f.holdfast(append([]string{"quarantine"}, strings.Fields(wrong)...)...).expect(t, exitUsage)
	}
}

func TestJobsOnTheCommandLine(t *testing.T) {
	f := newFake(t)
	asked := operate(f, map[string]string{
		"GET /jobs":          `{"jobs":` + jobsText + `}`,
		"GET /jobs/repair":   `{"name":"repair","modes":["prove"],"last":{"mode":"prove","started":"2026-03-10T12:00:00.000000Z","finished":"2026-03-10T12:00:01.000000Z","outcome":"ok","detail":{"missing":3}},"requests":[]}`,
		"GET /jobs/audit":    "404 not-found",
		"POST /jobs/repair":  `{"name":"repair","mode":"compare","at":"2026-03-10T12:00:00.000000Z"}`,
		"POST /jobs/reindex": `{"name":"reindex","collection":"orders","at":"2026-03-10T12:00:00.000000Z"}`,
		"POST /jobs/audit":   "409 job-running",
	})
	if r := f.holdfast("jobs").expect(t, exitOK); strings.Count(r.out, "\n") != 3 || !strings.Contains(r.out, "reindex  never") {
		t.Errorf("%s", r.out)
	}
	if r := f.holdfast("jobs", "--output", "json").expect(t, exitOK); strings.Count(r.out, "\n") != 2 {
		t.Errorf("%s", r.out)
	}
	if r := f.holdfast("jobs", "repair").expect(t, exitOK); !strings.HasSuffix(r.out, "\n\nmissing: 3\n") || !strings.Contains(r.out, "prove  ok") {
		t.Errorf("%q", r.out)
	}
	if r := f.holdfast("jobs", "repair", "--output", "json").expect(t, exitOK); !json.Valid([]byte(r.out)) || !strings.Contains(r.out, `"detail":{"missing":3}`) {
		t.Errorf("%s", r.out)
	}
	f.holdfast("jobs", "audit").expect(t, exitNotFound)
	*asked = nil
	if r := f.holdfast("jobs", "run", "repair", "--mode", "compare").expect(t, exitOK); r.out != `{"name":"repair","mode":"compare","at":"2026-03-10T12:00:00.000000Z"}`+"\n" {
		t.Errorf("%s", r.out)
	}
	f.holdfast("jobs", "run", "repair").expect(t, exitOK)
	f.holdfast("jobs", "run", "reindex", "--collection", "orders").expect(t, exitOK)
	f.holdfast("reindex", "orders").expect(t, exitOK)
	f.holdfast("reindex", "--shared").expect(t, exitOK)
	want := `POST /jobs/repair {"mode":"compare"}|POST /jobs/repair {}|POST /jobs/reindex {"collection":"orders"}|POST /jobs/reindex {"collection":"orders"}|POST /jobs/reindex {}`
	if got := strings.Join(*asked, "|"); got != want {
		t.Errorf("asked %s", got)
	}
	if r := f.holdfast("jobs", "run", "audit").expect(t, exitFailed); !strings.Contains(r.messages, "About job-running") {
		t.Errorf("%s", r.messages)
	}
	for _, wrong := range []string{"jobs a b", "jobs a/b", "jobs run", "jobs run a/b", "jobs --output yaml", "reindex", "reindex orders/", "reindex orders --shared"} {
		f.holdfast(strings.Fields(wrong)...).expect(t, exitUsage)
	}
}

func TestDeadLettersOnTheCommandLine(t *testing.T) {
	f := newFake(t)
	operate(f, map[string]string{
		"GET /dead-letters?limit=25": `{"messages":[{"queue":"signals","id":"m1","sent":"2026-03-10T12:00:00.000000Z","receives":11,"signals":[{"id":"a/1","version":1},{"id":"a/2","version":2},{"id":"a/3","version":3},{"id":"a/4","version":4}]},` +
			`{"queue":"relay","id":"m2","sent":null,"receives":1,"unreadable":"12 changes"}],"counts":{"signals":7,"relay":1}}`,
		"GET /dead-letters?limit=1": `{"messages":[],"counts":{"signals":0,"relay":0}}`,
	})
	want := `queue    sent                  receives  what is in it
signals  2026-03-10 12:00 UTC  11        a/1, a/2, a/3 and 1 more
relay    ?                     1         not readable: 12 changes
`
	if r := f.holdfast("dead-letters", "list").expect(t, exitOK); r.out != want || !strings.Contains(r.messages, "2 of about 8 messages") {
		t.Errorf("%s%s", r.out, r.messages)
	}
	if r := f.holdfast("dead-letters", "list", "--output", "json").expect(t, exitOK); strings.Count(r.out, "\n") != 2 || !strings.Contains(r.out, `{"id":"a/4","version":4}`) {
		t.Errorf("%s", r.out)
	}
	if r := f.holdfast("dead-letters", "list", "--limit", "1").expect(t, exitOK); r.out != "" || !strings.Contains(r.messages, "0 of about 0 messages") {
		t.Errorf("%s%s", r.out, r.messages)
	}
	for discard, answers := range map[bool][]string{
		false: {`{"moved":1000,"discarded":0,"remaining":500}`, `{"moved":480,"discarded":0,"remaining":20}`, `{"moved":0,"discarded":0,"remaining":20}`},
		true:  {`{"moved":0,"discarded":20,"remaining":0}`},
	} {
		calls := 0
		f.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if r.URL.Path != "/dead-letters/redrive" || string(body) != fmt.Sprintf(`{"discard":%t}`, discard) {
				t.Errorf("%s %s", r.URL, body)
			}
			fmt.Fprint(w, answers[min(calls, len(answers)-1)])
			calls++
			return true
		}
		args, want := []string{"dead-letters", "redrive"}, `{"moved":1480,"discarded":0,"remaining":20}`
		if discard {
			args, want = append(args, "--discard"), `{"moved":0,"discarded":20,"remaining":0}`
		}
		if r := f.holdfast(args...).expect(t, exitOK); r.out != want+"\n" || calls != len(answers) {
			t.Errorf("%s after %d calls", r.out, calls)
		}
	}
	f.before = nil
	f.holdfast("dead-letters", "list", "x").expect(t, exitUsage)
	f.holdfast("dead-letters", "list", "--output", "yaml").expect(t, exitUsage)
	f.holdfast("dead-letters", "redrive", "x").expect(t, exitUsage)
}

func TestHowLongAgo(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *string {
		text := now.Add(-d).Format(time.RFC3339Nano)
		return &text
	}
	odd := "yesterday\x1b"
	for want, moment := range map[string]*string{
		"never": nil, "41 s ago": at(41 * time.Second), "3 min ago": at(3 * time.Minute), "2026-03-10 09:00 UTC": at(3 * time.Hour), "yesterday\ufffd": &odd,
	} {
		if got := ago(moment, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
