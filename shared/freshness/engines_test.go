package freshness_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/obs"
	"holdfast/shared/search"
)

// On the real index: after the wait a search sees the document, although
// nothing else refreshes the index.
func TestAfterTheWaitASearchSeesIt(t *testing.T) {
	url := enginetest.OpenSearch(t)
	prefix := "wait" + strings.ToLower(rand.Text()[:12])
	index, err := search.NewClient(search.Options{URL: url, Prefix: prefix, Log: obs.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	g := collection.First(collection.Definition{Name: "users"}, search.Projector)
	if err := index.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { request(t, http.MethodDelete, url+"/"+prefix+"-*", "") })
	request(t, http.MethodPut, url+"/"+g.IndexName(prefix)+"/_settings", `{"index":{"refresh_interval":"-1"}}`)

	w := newWorld()
	w.generations = []collection.Generation{g}
	w.table["users/1"], w.table["users/2"] = true, true
	waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: index, Registry: w, Quarantine: w, Table: w})
	d := doc.Document{ID: "users/1", Version: 1796029203123456, Data: map[string]any{"name": "Ada"}}
	write := func() {
		outcomes, err := index.Write(context.WithoutCancel(t.Context()), []search.Operation{{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(d, g).Source}})
		if err != nil || outcomes[0].Kind != search.Applied {
			t.Errorf("%v %v", outcomes, err)
		}
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		time.Sleep(200 * time.Millisecond)
		write()
	}()
	got, err := waiter.Wait(t.Context(), []doc.Signal{{ID: d.ID, Version: d.Version}}, freshness.Patience{Timeout: 20 * time.Second})
	<-written
	if err != nil || got.TimedOut() {
		t.Fatalf("%+v %v", got, err)
	}
	result, err := index.Search(t.Context(), search.Request{
		From: []search.Source{{Collection: "users", Generation: &g}}, Limit: 10, MaxBytes: 1 << 20, Now: time.Now(),
	})
	if err != nil || len(result.Documents) != 1 || result.Documents[0].ID != d.ID {
		t.Errorf("%+v %v", result, err)
	}
	// What the index does not have is named.
	got, err = waiter.Wait(t.Context(), []doc.Signal{{ID: d.ID, Version: d.Version}, {ID: "users/2", Version: 5}}, freshness.Patience{Timeout: 300 * time.Millisecond})
	if err != nil || !slices.Equal(got.Missing, []doc.ID{"users/2"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func request(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, url, resp.Status)
	}
}
