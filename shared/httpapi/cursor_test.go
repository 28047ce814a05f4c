package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// every listing there is, each with parameters that make a page with a next, and
// with others that decide what is listed and so make it another one.
var listings = []struct{ target, other string }{
	{"/docs?startsWith=orders/1", "/docs?startsWith=orders/1/"},
	{"/docs?startsWith=orders/1&matches=*", "/docs?startsWith=orders/1&matches=/*"},
	{"/docs?startsWith=orders/1&exclude=x", "/docs?startsWith=orders/1"},
	{"/docs?startsWith=orders/1", "/docs?startsWith=orders/1&exclude="},
	{"/docs?startsWith=orders/1&matches=*", "/docs?startsWith=orders/1&exclude=*"},
	{"/changes?collection=orders", "/changes?collection=users"},
	{"/changes?collection=orders", "/changes?"},
	{"/changes?", "/changes?collection=orders"},
	{"/quarantine?collection=orders", "/quarantine?collection=users"},
	{"/quarantine?", "/quarantine?collection=orders"},
	{"/quarantine?collection=orders", "/quarantine?"},
	{"/collections?", "/status?"},
	{"/status?", "/collections?"},
}

// listed has something to list everywhere.
func listed() Handler {
	documents, s := newDocuments()
	operated := newOperated()
	for _, id := range []doc.ID{"orders/1", "orders/1/lines/1", "orders/1/lines/2", "orders/2", "users/1", "users/2"} {
		s.docs[id] = fakeDocument(id, map[string]any{})
		operated.state.quarantine = append(operated.state.quarantine, entry(id, 7, false))
		operated.state.used[id.Collection()] = true
	}
	operated.state.defined["planned"] = collection.Definition{Name: "planned", Revision: 1}
	return both{documents: documents, operated: operated}
}

// both serves the routes of two handlers.
type both struct{ documents, operated Handler }

func (b both) Serve(ctx context.Context, r *Request) *Response {
	if r.Path == "/docs" || r.Path == "/changes" {
		return b.documents.Serve(ctx, r)
	}
	return b.operated.Serve(ctx, r)
}

// A cursor goes on in the listing that gave it and in no other: there it would
// skip, without a word, what the other one has not told.
func TestACursorBelongsToItsListing(t *testing.T) {
	h := listed()
	for _, l := range listings {
		a := send(t, h, "GET", l.target+"&limit=1", "")
		next, ok := a.json["next"].(string)
		if a.Status != 200 || !ok {
			t.Fatalf("%s has no next: %s", l.target, a)
		}
		after := "&after=" + url.QueryEscape(next)
		if a := send(t, h, "GET", l.target+after, ""); a.Status != 200 {
			t.Errorf("%s does not go on with another limit: %s", l.target, a)
		}
		if a := send(t, h, "GET", l.other+after, "").expect(t, 400, "cursor-mismatch"); a.json["parameter"] != "after" {
			t.Errorf("%s with a cursor of %s: %s", l.other, l.target, a)
		}
		send(t, h, "HEAD", l.other+after, "")
		for _, tampered := range tamperings(next) {
			a := send(t, h, "GET", l.target+"&after="+url.QueryEscape(tampered), "").expect(t, 400, "invalid-cursor")
			if a.json["parameter"] != "after" {
				t.Errorf("%s after %q: %s", l.target, tampered, a)
			}
		}
	}
}

// tamperings are cursors that differ from one in a character, and others.
func tamperings(cursor string) []string {
	all := []string{"", "?", "AAAA", "null", cursor + "A", cursor + "\n", cursor[1:], cursor[:len(cursor)-1], cursor + cursor, strings.ToLower(cursor), strings.Repeat("A", 4000)}
	for i := range cursor {
		other := byte('A')
		if cursor[i] == other {
			other = 'B'
		}
		all = append(all, cursor[:i]+string(other)+cursor[i+1:])
	}
	return all
}

// POST /quarantine/retry goes on with the cursors of its collection, which are
// those of GET /quarantine.
func TestARetryGoesOnInItsCollection(t *testing.T) {
	h := listed()
	next := send(t, h, "GET", "/quarantine?collection=orders&limit=1", "").json["next"]
	body := func(c string, after any) string { return fmt.Sprintf(`{"collection":%q,"after":%q}`, c, after) }
	if a := send(t, h, "POST", "/quarantine/retry", body("orders", next)); a.Status != 202 || a.json["signalled"] != 1.0 {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/quarantine/retry", body("users", next)).expect(t, 400, "cursor-mismatch"); a.json["pointer"] != "/after" {
		t.Errorf("%s", a)
	}
	for _, tampered := range tamperings(next.(string)) {
		if a := send(t, h, "POST", "/quarantine/retry", body("orders", tampered)).expect(t, 400, "invalid-cursor"); a.json["pointer"] != "/after" {
			t.Errorf("after %q: %s", tampered, a)
		}
	}
}

// The store has the last word on a position: its refusal names the cursor too.
func TestAPositionTheStoreRefuses(t *testing.T) {
	h := listed()
	for target, l := range map[string]listing{
		"/docs?startsWith=orders/1":     listingOf("documents", "orders/1", "", ""),
		"/changes?collection=orders":    listingOf("changes", "orders"),
		"/quarantine?collection=orders": listingOf(quarantineRoute, "orders"),
		"/collections?":                 listingOf("collections"),
	} {
		if a := send(t, h, "GET", target+"&after="+l.cursor("!"), "").expect(t, 400, "invalid-cursor"); a.json["parameter"] != "after" {
			t.Errorf("%s: %s", target, a)
		}
	}
	cursor := listingOf(quarantineRoute, "orders").cursor("!")
	if a := send(t, h, "POST", "/quarantine/retry", fmt.Sprintf(`{"collection":"orders","after":%q}`, cursor)).expect(t, 400, "invalid-cursor"); a.json["pointer"] != "/after" {
		t.Errorf("%s", a)
	}
}

// What a client may put into a URL as it is.
func TestCursorsNeedNoEscaping(t *testing.T) {
	for _, name := range []doc.Collection{"a", "users/account", "größe & maß", "日本語/+%"} {
		cursor := names{listing: listingOf("collections")}.behind(name)
		if url.QueryEscape(cursor) != cursor {
			t.Errorf("the cursor behind %s is %s", name, cursor)
		}
		if got, err := (query{"after": cursor}).names("collections"); err != nil || got.after != name {
			t.Errorf("behind %s: %q, %v", name, got.after, err)
		}
	}
}

// A listing is named by its parameters one by one, not by their text in a row.
func TestListingsAreTold(t *testing.T) {
	seen := map[listing]string{}
	for _, parameters := range [][]string{{}, {""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"b", "a"}} {
		text := fmt.Sprintf("%q", parameters)
		l := listingOf("route", parameters...)
		if other, twice := seen[l]; twice {
			t.Errorf("%s and %s are one listing", text, other)
		}
		seen[l] = text
	}
	if listingOf("a", "b") == listingOf("ab") || listingOf("a") == listingOf("b") {
		t.Error("routes are not told apart")
	}
}
