package search_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// An index is told from all others that had its name, also from itself before a
// snapshot was restored over it: that leaves its uuid and sets that of its
// history.
func TestWhichIndexItIs(t *testing.T) {
	status, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	c, err := search.NewClient(search.Options{URL: server.URL, Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	g := sharedGeneration()
	settings := func(name, uuid string) string { return fmt.Sprintf(`{%q:{"settings":{"index":{%s}}}}`, name, uuid) }
	seen := map[string]string{}
	for _, one := range []struct{ what, settings string }{
		{"as it was made", `"uuid":"one"`},
		{"made again", `"uuid":"two"`},
		{"restored", `"uuid":"one","history":{"uuid":"a"}`},
		{"restored again", `"uuid":"one","history":{"uuid":"b"}`},
	} {
		status, body = 200, settings(c.IndexName(g), one.settings)
		uuid, err := c.UUID(t.Context(), g)
		found, inspectErr := c.Inspect(t.Context(), g)
		if err != nil || inspectErr != nil || uuid == "" || found.UUID != uuid {
			t.Errorf("%s: %q %v, inspected %+v %v", one.what, uuid, err, found, inspectErr)
		}
		if before, ok := seen[uuid]; ok {
			t.Errorf("%s it is what it was %s: %q", one.what, before, uuid)
		}
		seen[uuid] = one.what
	}
	for _, none := range []struct {
		what   string
		status int
		body   string
	}{
		{"an alias of its name", 200, settings("another", `"uuid":"one"`)},
		{"no index", 404, `{"error":{"root_cause":[{"type":"index_not_found_exception"}]},"status":404}`},
		{"no settings", 200, `{}`},
	} {
		status, body = none.status, none.body
		if uuid, err := c.UUID(t.Context(), g); err != nil || uuid != "" {
			t.Errorf("%s: %q %v", none.what, uuid, err)
		}
	}
	for _, code := range []int{403, 429, 503} {
		status, body = code, `{}`
		if uuid, err := c.UUID(t.Context(), g); doc.KindOf(err) != doc.IndexUnavailable || uuid != "" || search.Passing(err) != (code != 403) {
			t.Errorf("%d: %q %v", code, uuid, err)
		}
	}
}

func TestWhatMayBeGoneInAMoment(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"success":      {nil, false},
		"no answer":    {doc.Errorf(doc.IndexUnavailable, "no").Because(errors.New("connection reset")), true},
		"a misfit":     {fmt.Errorf("index x: %w", search.ErrMisfit), false},
		"another kind": {doc.Errorf(doc.InvalidQuery, "no"), false},
	} {
		if search.Passing(c.err) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
	// An index that was made a moment ago is there, and its shard is not.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"docs":[{"_index":"i","_id":"a/1","error":{"type":"no_shard_available_action_exception","reason":"no"}}]}`)
	}))
	t.Cleanup(server.Close)
	client, err := search.NewClient(search.Options{URL: server.URL, Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Held(t.Context(), sharedGeneration(), []doc.ID{"a/1"}); err == nil || !search.Passing(err) {
		t.Errorf("no shard: %v", err)
	}
	for _, c := range []struct {
		o    search.Outcome
		want bool
	}{
		{search.Outcome{Kind: search.Applied, Status: 200}, false}, {search.Outcome{Kind: search.Stale, Status: 409}, false},
		{search.Outcome{Kind: search.Refused, Status: 400}, false}, {search.Outcome{Kind: search.Environment, Status: 403}, false},
		{search.Outcome{Kind: search.Environment, Status: 404, IndexMissing: true}, false},
		{search.Outcome{Kind: search.Environment}, true}, {search.Outcome{Kind: search.Environment, Status: 429}, true},
		{search.Outcome{Kind: search.Environment, Status: 503}, true},
	} {
		if c.o.Passing() != c.want {
			t.Errorf("%+v: %v", c.o, !c.want)
		}
	}
}
