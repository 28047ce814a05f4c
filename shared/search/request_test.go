package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// TestSearchesEndWithTheirCaller talks to a server that never answers: it is
// told how long the caller waits, and sees the connection end when the caller
// is gone.
func TestSearchesEndWithTheirCaller(t *testing.T) {
	told := make(chan string, 1)
	ended := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var header struct {
			Cancel string `json:"cancel_after_time_interval"`
		}
		line, _, _ := bytes.Cut(body, []byte("\n"))
		_ = json.Unmarshal(line, &header)
		told <- header.Cancel
		select {
		case <-r.Context().Done():
			ended <- true
		case <-time.After(30 * time.Second):
			ended <- false
		}
	}))
	defer server.Close()
	c, err := search.NewClient(search.Options{URL: server.URL, Prefix: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []time.Duration{time.Minute, 3 * time.Second} {
		ctx, leave := context.WithTimeout(t.Context(), limit)
		failed := make(chan error, 1)
		go func() {
			_, err := c.Search(ctx, search.Request{From: sourcesOf("things"), Limit: 1})
			failed <- err
		}()
		interval, err := time.ParseDuration(<-told)
		if most := min(limit, search.MaxSearchTime); err != nil || interval <= 0 || interval > most {
			t.Errorf("with %v to go the search may take %v, %v", limit, interval, err)
		}
		leave()
		if err := <-failed; doc.KindOf(err) != doc.IndexUnavailable {
			t.Errorf("a search that was left: %v", err)
		}
		if !<-ended {
			t.Error("the connection of a search that was left stays open")
		}
	}
}
