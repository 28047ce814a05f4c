package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

func idList(n int, format string) string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("%q", fmt.Sprintf(format, i)))
	}
	return "[" + strings.Join(ids, ",") + "]"
}

func mustDecode(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := value.DecodeDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoadMany(t *testing.T) {
	h, s := newDocuments()
	s.docs["orders/1"] = fakeDocument("orders/1", mustDecode(t, `{"customer":"customers/1","lines":[{"p":"products/1"},{"p":"products/2"},{"p":7},{"p":"nonsense"}],"also":["orders/2","products/1"]}`))
	s.docs["customers/1"] = fakeDocument("customers/1", mustDecode(t, `{"c":1}`))
	s.docs["products/1"] = fakeDocument("products/1", mustDecode(t, `{"p":1}`))

	a := send(t, h, "POST", "/load", `{"ids":["orders/1","orders/2","orders/1"]}`)
	docs, _ := a.json["documents"].(map[string]any)
	if a.Status != 200 || len(docs) != 2 || docs["orders/1"].(map[string]any)["version"] != float64(firstVersion) || a.json["included"] != nil || a.json["remaining"] != nil {
		t.Errorf("%s", a)
	}
	if v, there := docs["orders/2"]; !there || v != nil {
		t.Errorf("an absent document is null: %s", a)
	}

	a = send(t, h, "POST", "/load", `{"ids":["orders/1","orders/2"],"include":["customer","lines[].p","also","none"]}`)
	included, _ := a.json["included"].(map[string]any)
	if a.Status != 200 || len(included) != 3 || included["customers/1"] == nil || included["products/1"] == nil {
		t.Errorf("%s", a)
	}
	if v, there := included["products/2"]; !there || v != nil {
		t.Errorf("an absent reference is null: %s", a)
	}
	if a := send(t, h, "POST", "/load", `{"ids":["orders/1"],"include":[]}`); a.json["included"] == nil {
		t.Errorf("included is there when it was asked for: %s", a)
	}
	if a := send(t, h, "POST", "/load", `{"ids":[]}`); string(a.Body) != `{"documents":{}}` {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/load", `{"ids":`+strings.TrimSuffix(idList(100, "a/%d"), "]")+`,"a/0","a/1"]}`); a.Status != 200 {
		t.Errorf("100 distinct ids, some twice: %s", a)
	}
}

func TestRefusalsOfLoads(t *testing.T) {
	h, s := newDocuments()
	s.docs["a/0"] = fakeDocument("a/0", mustDecode(t, `{"refs":`+idList(101, "b/%d")+`}`))
	for _, c := range []struct{ body, kind, pointer string }{
		{`{"ids":`, "invalid-json", "*"}, {``, "invalid-json", "*"}, {`{"ids":[],"ids":[]}`, "invalid-json", "*"},
		{`{"ids":[1e999]}`, "number-out-of-range", "/ids/0"},
		{`[]`, "invalid-request", ""}, {`{}`, "invalid-request", "/ids"}, {`{"ids":"a/1"}`, "invalid-request", "/ids"},
		{`{"ids":[],"x":1}`, "invalid-request", "/x"}, {`{"ids":[1]}`, "invalid-request", "/ids/0"},
		{`{"ids":["a/1","a"]}`, "invalid-id", "/ids/1"},
		{`{"ids":[],"include":"a"}`, "invalid-request", "/include"}, {`{"ids":[],"include":[1]}`, "invalid-request", "/include/0"},
		{`{"ids":[],"include":["a..b"]}`, "invalid-request", "/include/0"}, {`{"ids":[],"include":null}`, "invalid-request", "/include"},
		{`{"ids":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "invalid-request", "*"},
		{`{"ids":` + idList(101, "a/%d") + `}`, "too-many", "/ids"},
		{`{"ids":["a/0"],"include":["refs"]}`, "too-many", "/include"},
		{`{"ids":[],"include":` + idList(101, "p%d") + `}`, "too-many", "/include"},
	} {
		a := send(t, h, "POST", "/load", c.body).expect(t, 400, c.kind)
		if c.pointer != "*" && a.json["pointer"] != c.pointer {
			t.Errorf("%.60s: pointer %v, want %s", c.body, a.json["pointer"], c.pointer)
		}
		if c.kind == "too-many" && (a.json["limit"] != 100.0 || a.json["actual"] != 101.0) {
			t.Errorf("%s", a)
		}
	}
	send(t, h, "POST", "/load", strings.Repeat(" ", MaxBody+1)).expect(t, 413, "request-too-large")
}

// What does not fit is named; it is never answered as absent, and asking for it
// again comes to an end.
func TestLoadsFitTheAnswer(t *testing.T) {
	for name, filling := range map[string]string{"bytes": strings.Repeat("x", 390_000), "quotes": strings.Repeat(`"`, 390_000)} {
		t.Run(name, func(t *testing.T) {
			h, s := newDocuments()
			waiting := map[string]bool{}
			var refs []any
			for i := range 30 {
				id := doc.ID(fmt.Sprintf("a/%d", i))
				if i < 10 {
					refs = append(refs, string(id))
				} else {
					waiting[string(id)] = true
				}
				s.docs[id] = fakeDocument(id, map[string]any{"s": filling})
			}
			s.docs["a/10"].Data["refs"] = refs
			ask := `["a/10","a/11","a/12","a/13","a/14","a/15","a/16","a/17","a/18","a/19","a/20","a/21","a/22","a/23","a/24","a/25","a/26","a/27","a/28","a/29"]`
			for rounds := 0; len(waiting) > 0; rounds++ {
				a := send(t, h, "POST", "/load", `{"ids":`+ask+`,"include":["refs"]}`)
				if a.Status != 200 || len(a.Body) > answerBytes || payloadSize(a.Body) > payloadBytes {
					t.Fatalf("%d: %d bytes, %d in the payload", a.Status, len(a.Body), payloadSize(a.Body))
				}
				for _, member := range []string{"documents", "included"} {
					found, _ := a.json[member].(map[string]any)
					for id, d := range found {
						if d == nil {
							t.Fatalf("%s is answered as absent", id)
						}
						delete(waiting, id)
					}
				}
				remaining, _ := a.json["remaining"].([]any)
				if rounds == 0 {
					for _, id := range remaining {
						waiting[id.(string)] = true // references too
					}
				}
				if len(remaining) != len(waiting) || rounds > 30 {
					t.Fatalf("%d remaining, %d missing", len(remaining), len(waiting))
				}
				next, err := json.Marshal(remaining)
				if err != nil {
					t.Fatal(err)
				}
				ask = string(next)
			}
		})
	}
}
