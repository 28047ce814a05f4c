package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/store"
)

// healthy is a system in which all is well: users in the shared index, orders in
// one of their own.
func healthy(t *testing.T) (*operated, *repair.Report) {
	t.Helper()
	o := newOperated()
	o.state.used["users"], o.state.used["orders"] = true, true
	o.state.defined["orders"] = collection.Definition{Name: "orders", Revision: 2, Nested: []string{"lines"}}
	o.state.generations = []collection.Generation{
		{Family: collection.SharedFamily, Number: 3, State: collection.Active},
		{Family: "orders", Number: 1, State: collection.Active, Nested: []string{"lines"}},
	}
	o.state.proofs = []store.Proof{
		{Family: collection.SharedFamily, Generation: 3, Through: o.now.Add(-40 * time.Second), At: o.now.Add(-30 * time.Second)},
		{Family: "orders", Generation: 1, Through: o.now.Add(-41 * time.Second), At: o.now.Add(-30 * time.Second)},
		{Family: "orders", Generation: 7}, // of what is gone
	}
	o.state.lag = &store.LagMeasure{At: o.now.Add(-70 * time.Second), Lag: 412300 * time.Microsecond}
	documents, lag := 830, 51*time.Millisecond
	counted := o.now.Add(-time.Hour)
	r := &repair.Report{
		Margin: 10 * time.Second, FeedLag: &lag,
		Collections: []repair.CollectionFigures{{Name: "orders", Family: "orders", Generation: 1, Indexed: 829, Documents: &documents, CountedAt: &counted}, {Name: "users", Indexed: 5}},
	}
	o.ranOnce(t, "ok", *r)
	return o, r
}

func TestAHealthyStatus(t *testing.T) {
	o, _ := healthy(t)
	a := send(t, o, "GET", "/status", "")
	want := `{"healthy":true,"problems":[],"collections":[` +
		`{"name":"orders","documents":830,"indexed":829,"provenThrough":"2026-03-10T11:59:19.000000Z","quarantined":0,"generation":1,"reindexing":false},` +
		`{"name":"users","documents":null,"indexed":5,"provenThrough":"2026-03-10T11:59:20.000000Z","quarantined":0,"generation":3,"reindexing":false}],` +
		`"pipeline":{"lagSeconds":0.413,"feedLagSeconds":0.051,"pending":0,"deadLetters":0,"givenUp":0},"jobs":[`
	if a.Status != 200 || !strings.HasPrefix(string(a.Body), want) || !strings.HasSuffix(string(a.Body), `],"version":"v1.2.3"}`) || len(a.json["jobs"].([]any)) != 2 {
		t.Errorf("got  %s\nwant %s", a.Body, want)
	}
	if head := send(t, o, "HEAD", "/status", ""); head.Status != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
		t.Errorf("%s %v", head, head.Header)
	}
}

// What is not as it should be shows with its kind, and nothing else does.
func TestWhatAStatusSays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*operated, *repair.Report)
		want   string // kinds of problems
		says   string // in the answer
	}{
		"an old proof":        {func(o *operated, _ *repair.Report) { o.state.proofs[1].Through = o.now.Add(-6 * time.Minute) }, "proof-old", "The index of orders is proven"},
		"a proof of nothing":  {func(o *operated, _ *repair.Report) { o.state.proofs[1].Through = time.Time{} }, "not-proven", `"provenThrough":null,"quarantined":0,"generation":1`},
		"no generation":       {func(o *operated, _ *repair.Report) { o.state.generations = o.state.generations[:1] }, "not-proven", `"provenThrough":null,"quarantined":0,"generation":null`},
		"something missing":   {func(o *operated, _ *repair.Report) { miss(o, 40*time.Second) }, "", `"lagSeconds":40,`},
		"missing for long":    {func(o *operated, _ *repair.Report) { miss(o, time.Hour) }, "lag", `"lagSeconds":3600,`},
		"no measure":          {func(o *operated, _ *repair.Report) { o.state.lag = nil }, "", `"lagSeconds":null,`},
		"an old measure":      {func(o *operated, _ *repair.Report) { o.state.lag.At = o.now.Add(-lagLife) }, "", `"lagSeconds":null,`},
		"lag":                 {func(o *operated, _ *repair.Report) { o.state.lag.Lag, o.signals.depth = 10*time.Minute, 5 }, "lag", `"pending":5`},
		"quarantine":          {func(o *operated, _ *repair.Report) { o.state.quarantine = []doc.Quarantined{entry("users/1", 1, true)} }, "quarantine", `"quarantined":1`},
		"a slow feed":         {func(_ *operated, r *repair.Report) { *r.FeedLag = 6 * time.Second }, "feed-slow", `"feedLagSeconds":6,`},
		"a feed not seen":     {func(_ *operated, r *repair.Report) { r.FeedLag = nil }, "feed-slow", `"feedLagSeconds":null`},
		"queues are silent":   {func(o *operated, _ *repair.Report) { o.signals.err, o.letters.err = errSilent, errSilent }, "queues-unknown", `"pending":null,"deadLetters":null,"givenUp":null`},
		"dead letters":        {func(o *operated, _ *repair.Report) { letter(o, "signals") }, "dead-letters", `"deadLetters":1,"givenUp":0`},
		"changes given up":    {func(o *operated, _ *repair.Report) { letter(o, "relay") }, "changes-given-up", `"deadLetters":0,"givenUp":1`},
		"repair never ran":    {func(o *operated, _ *repair.Report) { clear(o.state.records) }, "job-never-ran", `"indexed":null`},
		"no documents at all": {func(o *operated, _ *repair.Report) { clear(o.state.used); o.state.generations = nil }, "", `"collections":[],`},
		"a differing index": {func(_ *operated, r *repair.Report) {
			r.Unhealed = 1
			r.LastPass = &repair.PassFigures{Tally: repair.Tally{Missing: 2, Older: 1}, Differences: []repair.Difference{
				{Family: "orders", Number: 1, ID: "orders/1"}, {Family: "orders", Number: 1, ID: "orders/2", Healed: true}, {Family: "orders", Number: 9, ID: "orders/3"}}}
		}, "differences", "found 3 differences between table and index, of which 1 is not healed yet"},
		"a build": {func(o *operated, _ *repair.Report) { build(o, 10*time.Minute) }, "", `"generation":1,"reindexing":true`},
		"a build that stands still": {func(o *operated, _ *repair.Report) { build(o, 20*time.Minute) }, "build-stuck",
			"The build of the index of orders, generation 2, has not gone on for 20 min."},
		"a build that goes on": {func(o *operated, r *repair.Report) {
			build(o, 3*time.Hour)
			r.LastPass = &repair.PassFigures{Finished: o.now.Add(-10 * time.Minute)}
		}, "", ""},
		"a move": {func(o *operated, _ *repair.Report) { move(o, 10*time.Minute) }, "", `"name":"users","documents":null,"indexed":5,"provenThrough":"2026-03-10T11:59:20.000000Z","quarantined":0,"generation":3,"reindexing":true`},
		"a move that stands still": {func(o *operated, _ *repair.Report) { move(o, 20*time.Minute) }, "build-stuck",
			"The build of the index of users"},
	} {
		o, r := healthy(t)
		o.ranOnce(t, "ok", *r)
		c.change(o, r)
		if len(o.state.records) > 0 {
			o.ranOnce(t, "ok", *r)
		}
		checkStatus(t, name, send(t, o, "GET", "/status", ""), c.want, c.says)
	}
	// A run that failed says nothing about the feed; one that goes on with a comparison moves a build.
	o, r := healthy(t)
	r.FeedLag = nil
	o.ranOnce(t, "failed", *r)
	checkStatus(t, "a failing run", send(t, o, "GET", "/status", ""), "job-failing", "The last run of repair failed")
	o, r = healthy(t)
	build(o, 3*time.Hour)
	r.Pass = &repair.PassFigures{Started: o.now.Add(-2 * time.Hour)}
	o.ranOnce(t, "more", *r)
	checkStatus(t, "a long comparison", send(t, o, "GET", "/status", ""), "", "")
	for _, body := range []string{`"what"`, `{"detail":"what"}`} {
		o.state.records[repair.Name] = store.JobRecord{Body: json.RawMessage(body)}
		send(t, o, "GET", "/status", "").expect(t, 500, "internal")
	}
}

func checkStatus(t *testing.T, name string, a answer, want, says string) {
	t.Helper()
	var kinds []string
	problems, _ := a.json["problems"].([]any)
	for _, p := range problems {
		kinds = append(kinds, p.(map[string]any)["type"].(string))
	}
	if a.Status != 200 || strings.Join(kinds, " ") != want || a.json["healthy"] != (want == "") || !strings.Contains(string(a.Body), says) {
		t.Errorf("%s: %v, want %s and %s: %s", name, kinds, want, says, a.Body)
	}
}

func miss(o *operated, age time.Duration) {
	o.state.proofs[0].Missing, o.state.proofs[0].OldestMissing = 1, o.now.Add(-age)
}

func build(o *operated, age time.Duration) {
	o.state.generations = append(o.state.generations, collection.Generation{
		Family: "orders", Number: 2, State: collection.Building, Nested: []string{"lines"}, Since: o.now.Add(-age),
	})
}

func move(o *operated, age time.Duration) {
	d := collection.Definition{Name: "users", Text: []string{"about"}}.Changed(collection.Definition{Name: "users"}, o.now.Add(-age))
	d.Revision = 1
	o.state.defined["users"] = d
}

func letter(o *operated, queue string) {
	o.letters.letters = append(o.letters.letters, deadLetter(queue))
}

func TestAStatusInPages(t *testing.T) {
	o, _ := healthy(t)
	for i := range 1003 {
		o.state.used[doc.Collection(fmt.Sprintf("c%04d", i))] = true
	}
	o.state.quarantine = []doc.Quarantined{entry("users/1", 1, true)}
	var names []string
	pages := 0
	for target := "/status"; ; pages++ {
		a := send(t, o, "GET", target, "")
		if a.json["healthy"] != false {
			t.Errorf("a page knows of problems on others: %s", a)
		}
		for _, c := range a.json["collections"].([]any) {
			names = append(names, c.(map[string]any)["name"].(string))
		}
		next, more := a.json["next"].(string)
		if !more {
			break
		}
		target = "/status?after=" + next
	}
	if len(names) != 1005 || names[0] != "c0000" || names[1004] != "users" || pages != 1 {
		t.Errorf("%d names on %d pages", len(names), pages+1)
	}
	if a := send(t, o, "GET", "/status?limit=1", ""); len(a.json["collections"].([]any)) != 1 || a.json["next"] == nil {
		t.Errorf("%s", a)
	}
	send(t, o, "GET", "/status?limit=0", "").expect(t, 400, "invalid-request")
	send(t, o, "GET", "/status?after=!", "").expect(t, 400, "invalid-cursor")
	send(t, o, "HEAD", "/status?after=!", "")
}

// Queues that do not answer take nothing but what they tell from a status.
func TestAStatusDoesNotWaitForQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperated()
		o.signals.hangs = true
		a := send(t, o, "GET", "/status", "")
		if told, _ := a.json["pipeline"].(map[string]any); a.Status != 200 || told["pending"] != nil || a.json["jobs"] == nil {
			t.Errorf("%s", a)
		}
	})
}
