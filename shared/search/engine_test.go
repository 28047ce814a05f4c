package search_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// testPrefix is a prefix that nobody else uses. It begins like the default one,
// so that one entry in the cluster's setting covers all tests.
func testPrefix() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b)
	return "holdfast-search-test-" + hex.EncodeToString(b)
}

// newIndex makes a client with a prefix of its own, whose indexes are deleted
// after the test.
func newIndex(t testing.TB) *search.Client {
	t.Helper()
	url := enginetest.OpenSearch(t)
	prefix := testPrefix()
	guard, err := search.NewClient(search.Options{URL: url, Prefix: "holdfast"})
	if err != nil {
		t.Fatal(err)
	}
	if err := search.ForbidAutoCreation(t.Context(), guard); err != nil {
		t.Fatal(err)
	}
	c, err := search.NewClient(search.Options{URL: url, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, url+"/"+prefix+"-*", nil)
		if err != nil {
			t.Error(err)
			return
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
	})
	return c
}

func sharedGeneration() collection.Generation {
	return collection.First(collection.Definition{}, search.Projector)
}

func sourcesOf(names ...doc.Collection) []search.Source {
	var from []search.Source
	g := sharedGeneration()
	for _, n := range names {
		from = append(from, search.Source{Collection: n, Generation: &g})
	}
	return from
}

// at is a moment that all test documents were made at.
var at = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// document makes one from JSON text.
func document(t testing.TB, id, data string) doc.Document {
	t.Helper()
	tree, err := value.DecodeDocument([]byte(data))
	if err != nil {
		t.Fatalf("%s: %v", strings.TrimSpace(data), err)
	}
	return doc.Document{ID: doc.ID(id), Version: doc.VersionAt(at), CreatedAt: at, UpdatedAt: at, Data: tree}
}

// index writes the documents, each in full, and makes them searchable.
func index(t testing.TB, c *search.Client, g collection.Generation, docs ...doc.Document) {
	t.Helper()
	ops := make([]search.Operation, len(docs))
	for i, d := range docs {
		ops[i] = search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(d, g).Source}
	}
	outcomes, err := c.Write(t.Context(), ops)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		if o.Kind != search.Applied {
			t.Fatalf("document %s: %v %d %s\n%s", ops[i].ID, o.Kind, o.Status, o.Reason, ops[i].Source)
		}
	}
	if err := c.Refresh(t.Context(), []collection.Generation{g}); err != nil {
		t.Fatal(err)
	}
}
