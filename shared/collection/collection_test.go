package collection_test

import (
	"regexp"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"

	"pgregory.net/rapid"
)

func TestFamilies(t *testing.T) {
	for _, c := range []struct {
		definition collection.Definition
		want       collection.Family
	}{
		{collection.Definition{Name: "users"}, collection.SharedFamily},
		{collection.Definition{Name: "users", Index: collection.Shared}, collection.SharedFamily},
		{collection.Definition{Name: "users", Index: collection.Own}, "users"},
		{collection.Definition{Name: "users", Nested: []string{"a"}}, "users"},
		{collection.Definition{Name: "users", Text: []string{"a"}}, "users"},
	} {
		if got := c.definition.Family(); got != c.want {
			t.Errorf("%+v: %q", c.definition, got)
		}
	}
}

// What OpenSearch allows as an index name, with our own lower-case limit.
var indexName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

func TestIndexNamesAreAllowedAndDistinct(t *testing.T) {
	seen := map[string]collection.Family{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-zÀ-ž0-9$ ._*"/-]{1,120}`).Draw(t, "name")
		if _, err := doc.ParseCollection(name); err != nil {
			t.Skip("not a collection name")
		}
		g := collection.First(collection.Definition{Name: doc.Collection(name), Index: collection.Own}, 1)
		index := g.IndexName("holdfast")
		if !indexName.MatchString(index) || len(index) > 255 {
			t.Fatalf("%q is not an index name", index)
		}
		if other, ok := seen[index]; ok && other != g.Family {
			t.Fatalf("%q and %q share %s", other, g.Family, index)
		}
		seen[index] = g.Family
		if !strings.HasPrefix(index, g.Family.Alias("holdfast")+"-") {
			t.Fatalf("alias %s, index %s", g.Family.Alias("holdfast"), index)
		}
	})
}

func TestCaseMattersInIndexNames(t *testing.T) {
	a, b := collection.Family("Users"), collection.Family("users")
	if a.Alias("x") == b.Alias("x") {
		t.Error("Users and users are two collections")
	}
}
