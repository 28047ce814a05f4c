package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// Every document of Northwind and the movies is in the index, in full: the
// faults of the data keep none of them out.
func TestEverySampleDocumentIsFound(t *testing.T) {
	docs := samples(t)
	perCollection := map[string]int{}
	for _, d := range docs {
		var names []string
		for i, step := range strings.Split(d.ID, "/") {
			if i%2 == 0 {
				names = append(names, step)
			}
		}
		perCollection[strings.Join(names, "/")]++
	}
	if len(docs) != 1051+3201 || len(perCollection) < 8 {
		t.Fatalf("%d documents in %d collections", len(docs), len(perCollection))
	}
	for name, want := range perCollection {
		a := query(t, fmt.Sprintf(`{"from":%q,"limit":0,"count":true}`, name))
		if got := fmt.Sprint(a.JSON("count", "value")); got != fmt.Sprint(want) || a.JSON("count", "exact") != true {
			t.Errorf("%s: %s documents, want %d", name, got, want)
		}
		if q := fmt.Sprint(a.JSON("staleness", "quarantined")); q != "0" {
			t.Errorf("%s: %s in quarantine", name, q)
		}
	}
}
