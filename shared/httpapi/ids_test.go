package httpapi

import (
	"testing"

	"holdfast/shared/guid"
)

func TestIDs(t *testing.T) {
	h, _ := newDocuments()
	seen := map[guid.GUID]bool{}
	for target, want := range map[string]struct {
		layout guid.Layout
		count  int
	}{
		"/ids":                             {guid.Text, 1},
		"/ids?count=1000":                  {guid.Text, 1000},
		"/ids?layout=text&count=2":         {guid.Text, 2},
		"/ids?layout=binary&count=300":     {guid.Binary, 300},
		"/ids?layout=sqlserver&count=1000": {guid.SQLServer, 1000},
	} {
		var all []guid.GUID
		for range 3 { // what a later answer has is later
			a := send(t, h, "GET", target, "")
			ids, _ := a.json["ids"].([]any)
			if a.Status != 200 || len(a.json) != 1 || len(ids) != want.count || a.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%s: %s", target, a)
			}
			for _, text := range ids {
				id, err := guid.Parse(text.(string))
				if err != nil || id.String() != text || seen[id] {
					t.Fatalf("%s: %s, %v", target, text, err)
				}
				seen[id] = true
				all = append(all, id)
			}
		}
		for i := 1; i < len(all); i++ {
			if want.layout.Compare(all[i-1], all[i]) >= 0 {
				t.Fatalf("%s: %s before %s", target, all[i-1], all[i])
			}
		}
	}
	if a := send(t, h, "HEAD", "/ids?count=7", ""); a.Status != 200 || len(a.Body) != 0 {
		t.Errorf("%s", a)
	}
	for params, parameter := range map[string]string{
		"layout=": "layout", "layout=Text": "layout", "layout=oracle": "layout", "count=0": "count", "count=1001": "count", "count=-1": "count",
		"count=01": "count", "count=x": "count", "count=": "count", "limit=1": "limit", "count=1&count=2": "count",
	} {
		a := send(t, h, "GET", "/ids?"+params, "").expect(t, 400, "invalid-request")
		if a.json["parameter"] != parameter {
			t.Errorf("%s: %s", params, a)
		}
		send(t, h, "HEAD", "/ids?"+params, "")
	}
}
