package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/doc"
)

func (a answer) ids() []string {
	list, _ := a.json["documents"].([]any)
	ids := []string{}
	for _, d := range list {
		ids = append(ids, d.(map[string]any)["id"].(string))
	}
	return ids
}

func TestPrefixLoad(t *testing.T) {
	h, s := newDocuments()
	for _, id := range []doc.ID{"users/1", "users/1/account", "users/1/account/1", "users/1/account/2", "users/1/orders/1", "users/2"} {
		s.docs[id] = fakeDocument(id, map[string]any{})
	}
	for params, want := range map[string]string{
		"startsWith=users/1":                                         "users/1 users/1/account users/1/account/1 users/1/account/2 users/1/orders/1",
		"startsWith=users/1/":                                        "users/1/account users/1/account/1 users/1/account/2 users/1/orders/1",
		"startsWith=users/1/account/":                                "users/1/account/1 users/1/account/2",
		"startsWith=users%2F1%2Facc":                                 "users/1/account users/1/account/1 users/1/account/2",
		"startsWith=users/1/&matches=account/*":                      "users/1/account/1 users/1/account/2",
		"startsWith=users/1/&matches=account/?|orders/*&exclude=*/2": "users/1/account/1 users/1/orders/1",
		"startsWith=users/1&exclude=":                                "users/1/account users/1/account/1 users/1/account/2 users/1/orders/1",
		"startsWith=users/1&matches=":                                "users/1",
		"startsWith=users/9":                                         "",
	} {
		for _, limit := range []string{"", "&limit=1", "&limit=1000"} {
			var got []string
			after := ""
			for {
				a := send(t, h, "GET", "/docs?"+params+limit+after, "")
				if a.Status != 200 {
					t.Fatalf("%s: %s", params, a)
				}
				got = append(got, a.ids()...)
				next, more := a.json["next"].(string)
				if !more {
					break
				}
				after = "&after=" + url.QueryEscape(next)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s%s: %v, want %s", params, limit, got, want)
			}
		}
	}
	head := send(t, h, "HEAD", "/docs?startsWith=users/1", "")
	if head.Status != 200 || head.Header.Get("Content-Length") == "" {
		t.Errorf("%s %v", head, head.Header)
	}
}

func TestRefusalsOfPrefixes(t *testing.T) {
	h, _ := newDocuments()
	for _, c := range []struct{ params, kind, parameter string }{
		{"startsWith=", "unrooted-prefix", "startsWith"}, {"startsWith=/", "unrooted-prefix", "startsWith"},
		{"startsWith=users", "unrooted-prefix", "startsWith"}, {"startsWith=users/", "unrooted-prefix", "startsWith"},
		{"startsWith=users//1", "invalid-id", "startsWith"}, {"startsWith=$s/1", "invalid-id", "startsWith"},
		{"startsWith=a/1&limit=0", "invalid-request", "limit"}, {"startsWith=a/1&limit=1001", "invalid-request", "limit"},
		{"startsWith=a/1&limit=abc", "invalid-request", "limit"}, {"startsWith=a/1&limit=", "invalid-request", "limit"},
		{"startsWith=a/1&limit=-1", "invalid-request", "limit"}, {"startsWith=a/1&limit=%2B1", "invalid-request", "limit"},
		{"startsWith=a/1&limit=07", "invalid-request", "limit"}, {"startsWith=a/1&limit=1.0", "invalid-request", "limit"},
		{"startsWith=a/1&limit=99999999999999999999", "invalid-request", "limit"},
		{"startsWith=a/1&fields=a", "invalid-request", "fields"},
		{"startsWith=a/1&startsWith=a/2", "invalid-request", "startsWith"},
		{"startsWith=a/1&matches=" + strings.Repeat("x", 513), "invalid-request", "matches"},
		{"startsWith=a/1&exclude=" + strings.Repeat("x", 513), "invalid-request", "exclude"},
		{"startsWith=a/1&after=nonsense", "invalid-cursor", "after"}, {"startsWith=a/1&after=", "invalid-cursor", "after"},
	} {
		a := send(t, h, "GET", "/docs?"+c.params, "").expect(t, 400, c.kind)
		if a.json["parameter"] != c.parameter {
			t.Errorf("%s: parameter %v", c.params, a.json["parameter"])
		}
	}
}

func TestPagesFitTheAnswer(t *testing.T) {
	h, s := newDocuments()
	for i := range 10 {
		id := doc.ID(fmt.Sprintf("users/1/%d", i))
		s.docs[id] = fakeDocument(id, map[string]any{"s": strings.Repeat(`"`, 300_000)})
	}
	var got []string
	after := ""
	for {
		a := send(t, h, "GET", "/docs?startsWith=users/1/"+after, "")
		if len(a.Body) > answerBytes || payloadSize(a.Body) > payloadBytes {
			t.Fatalf("%d bytes, %d in the payload", len(a.Body), payloadSize(a.Body))
		}
		got = append(got, a.ids()...)
		next, more := a.json["next"].(string)
		if !more {
			break
		}
		after = "&after=" + url.QueryEscape(next)
	}
	if len(got) != 10 || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
}

func TestChanges(t *testing.T) {
	h, s := newDocuments()
	send(t, h, "PUT", "/docs/users/1", `{}`)
	send(t, h, "PUT", "/docs/orders/1", `{}`)
	a := send(t, h, "GET", "/changes", "")
	want := fmt.Sprintf(`{"changes":[{"id":"users/1","version":%d,"deleted":false},{"id":"orders/1","version":%d,"deleted":false},{"id":"users/gone","version":%d,"deleted":true}],"next":%q,"safeThrough":%q,"end":false}`,
		firstVersion, firstVersion+1, firstVersion+2, listingOf("changes", "").cursor("end:100"), s.version.Time().Add(-10e9).Format(timeLayout))
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("got  %s\nwant %s", a, want)
	}
	cursor := listingOf("changes", "orders").cursor
	a = send(t, h, "GET", "/changes?collection=orders&limit=7&after="+cursor("end:100"), "")
	if changes, _ := a.json["changes"].([]any); len(changes) != 2 || a.json["next"] != cursor("end:7") || a.json["end"] != false {
		t.Errorf("%s", a)
	}
	// Where the feed does not go on behind a cursor, a reader may wait.
	if a = send(t, h, "GET", "/changes?collection=orders&limit=7&after="+cursor("end:7"), ""); a.json["end"] != true {
		t.Errorf("%s", a)
	}
	send(t, h, "HEAD", "/changes", "")
	for _, c := range []struct{ params, kind, parameter string }{
		{"limit=0", "invalid-request", "limit"}, {"limit=1001", "invalid-request", "limit"}, {"x=1", "invalid-request", "x"},
		{"after=zzz", "invalid-cursor", "after"}, {"after=", "invalid-cursor", "after"},
		{"collection=", "invalid-id", "collection"}, {"collection=a/", "invalid-id", "collection"},
	} {
		a := send(t, h, "GET", "/changes?"+c.params, "").expect(t, 400, c.kind)
		if a.json["parameter"] != c.parameter {
			t.Errorf("%s: %s", c.params, a)
		}
		send(t, h, "HEAD", "/changes?"+c.params, "")
	}
	send(t, h, "HEAD", "/changes", "", "Idempotency-Key", "k")
}
