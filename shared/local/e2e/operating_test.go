package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// TestOperating has the stack prove by itself that its index is complete, and
// makes a comparison when it is asked to.
func TestOperating(t *testing.T) {
	c := unique(t)
	put(t, c+"/1", `{"a":1}`)
	saved := time.Now().UTC()
	var s map[string]any
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		s = statusOf(t, c)
		if through, _ := s["provenThrough"].(string); through > saved.Format(time.RFC3339Nano) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not proven after minutes: %s", send(t, "GET", "/status", "").Body)
		}
	}
	a := send(t, "GET", "/status", "")
	for _, path := range [][]string{{"healthy"}, {"problems"}, {"pipeline", "pending"}, {"pipeline", "deadLetters"}, {"jobs"}, {"version"}} {
		if a.JSON(path...) == nil {
			t.Errorf("no %s: %s", strings.Join(path, "."), a)
		}
	}
	if a := send(t, "POST", "/jobs/repair", `{"mode":"compare"}`); a.Status != 202 {
		t.Fatal(a)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		a = send(t, "GET", "/jobs/repair", "")
		waiting, _ := a.JSON("requests").([]any)
		pass, _ := a.JSON("last", "detail", "lastPass", "started").(string)
		if len(waiting) == 0 && pass > saved.Format(time.RFC3339Nano) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no comparison after minutes: %s", a)
		}
	}
	if s = statusOf(t, c); s["documents"] == nil || s["indexed"] == nil || s["reindexing"] != false {
		t.Errorf("%v", s)
	}
	if a := send(t, "GET", "/quarantine?collection="+c, ""); a.Status != 200 || string(a.Body) != `{"entries":[]}` {
		t.Errorf("%s", a)
	}
	if a := send(t, "GET", "/dead-letters", ""); a.Status != 200 {
		t.Errorf("%s", a)
	}
	expect(t, send(t, "GET", "/jobs/audit", ""), 404, "not-found")
	expect(t, send(t, "POST", "/status", "{}"), 405, "method-not-allowed")
}
