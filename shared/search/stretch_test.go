package search_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// TestStretchesAtTheEndsOfTime groups the first and last instants that RFC 3339
// can tell. Each key is one that it can tell too, the same stretch as documents
// alone have, and begins with its instants or before; or the query is refused.
func TestStretchesAtTheEndsOfTime(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var docs []doc.Document
	for i, text := range []string{
		"0000-01-01T00:00:00Z", "0000-01-01T00:00:00+23:59", "0000-01-01T12:34:56.789+05:30", "0000-01-03T00:00:00Z", "0000-12-31T23:59:59-12:00",
		"0001-01-01T00:00:00Z", "0001-01-01T03:00:00+14:00", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999999-23:59", "9999-12-31T20:00:00-02:00",
		"9999-12-27T00:00:00+09:00", "9999-01-01T00:00:00Z", "2024-02-29T00:00:00Z",
	} {
		docs = append(docs, document(t, fmt.Sprintf("ends/%02d", i), fmt.Sprintf(`{"at":%q,"early":%t}`, text, i < 5)))
	}
	index(t, c, g, docs...)
	told, refused := 0, 0
	for _, every := range []string{"1y", "1q", "1M", "1w", "1d", "1h", "1m", "7d", "6h", "90s"} {
		unit, _ := search.ParseUnit(every)
		for _, name := range []string{"UTC", "+02:00", "-05:00", "+14:00", "-12:00", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati"} {
			zone, ok := search.ParseZone(name)
			if !ok {
				t.Fatal(name)
			}
			for _, late := range []bool{false, true} {
				r := search.Request{From: sourcesOf("ends"), Filter: filter.And{}, Now: at, Aggregate: []search.Aggregation{{
					Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf("at")}, Unit: unit, Zone: zone}}, Order: -1, Limit: 100,
				}}}
				if late {
					r.Filter = filter.Compare{Field: filter.Field{Path: value.PathOf("early")}, Op: filter.Eq, Value: false}
				}
				want, wantErr := search.AggregateInMemory(r, docs)
				got, err := c.Search(t.Context(), r)
				if err != nil || wantErr != nil {
					if late || doc.KindOf(err) != doc.InvalidQuery || doc.KindOf(wantErr) != doc.InvalidQuery {
						t.Errorf("%s in %s: %v, %v", every, name, err, wantErr)
					}
					refused++
					continue
				}
				told++
				if g, w := fmt.Sprint(got.Aggregates[0].Groups), fmt.Sprint(want[0].Groups); g != w || got.Aggregates[0].Others != 0 {
					t.Errorf("%s in %s:\n got %s\nwant %s", every, name, g, w)
				}
				for _, group := range got.Aggregates[0].Groups {
					text, _ := group.Key[0].(string)
					start, ok := value.ParseInstant(text)
					if _, err := time.Parse(time.RFC3339, text); !ok || err != nil {
						t.Errorf("%s in %s: the key %s", every, name, text)
					}
					if !begins(docs, start, every) {
						t.Errorf("%s in %s: nothing lies in what begins at %s", every, name, text)
					}
				}
			}
		}
	}
	if told < 90 || refused < 10 {
		t.Errorf("%d answers, %d refusals", told, refused)
	}
	r := search.Request{From: sourcesOf("ends"), Filter: filter.And{}, Now: at}
	week, _ := search.ParseUnit("1w")
	r.Aggregate = []search.Aggregation{{
		Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf("at")}, Unit: week, Zone: time.UTC}}, Order: -1, Desc: true, Limit: 1,
		Metrics: []search.Metric{{Kind: search.Count}},
	}}
	if got, err := c.Search(t.Context(), r); err != nil || got.Aggregates[0].Groups[0].Figures[0] != json.Number("3") || got.Aggregates[0].Others != len(docs)-3 {
		t.Errorf("a group that is not told is not refused: %+v, %v", got.Aggregates, err)
	}
}

// begins reports whether a document's instant lies in what begins at start, for
// which the length of the unit is enough.
func begins(docs []doc.Document, start time.Time, every string) bool {
	length := map[byte]time.Duration{'y': 366 * 24 * time.Hour, 'q': 93 * 24 * time.Hour, 'M': 31 * 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'd': 8 * 24 * time.Hour, 'h': 6 * time.Hour, 'm': time.Minute, 's': 90 * time.Second}[every[len(every)-1]]
	for _, d := range docs {
		text, _ := d.Data["at"].(string)
		at, ok := value.ParseInstant(text)
		if ok && !at.Before(start) && at.Sub(start) < length+time.Hour {
			return true
		}
	}
	return false
}
