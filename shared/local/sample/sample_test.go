package sample_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/local/sample"
)

func TestEveryLineIsADocumentWithAnID(t *testing.T) {
	movies, err := sample.Movies()
	if err != nil {
		t.Fatal(err)
	}
	flights, err := sample.Flights()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want int
	}{
		"northwind": {sample.Northwind(), 1051}, "movies": {movies, 3201}, "flights": {flights, 20000},
	} {
		ids := map[doc.ID]bool{}
		for line := range bytes.Lines(c.data) {
			var d struct {
				ID   string          `json:"id"`
				Data json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal(line, &d); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			id, err := doc.ParseID(d.ID)
			if err != nil || len(d.Data) == 0 || d.Data[0] != '{' {
				t.Fatalf("%s: %.80s: %v", name, line, err)
			}
			ids[id] = true
		}
		if len(ids) != c.want {
			t.Errorf("%s: %d ids, want %d", name, len(ids), c.want)
		}
	}
}
