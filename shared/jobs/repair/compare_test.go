package repair_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// A comparison finds every way in which table and index can differ, says which
// documents and why, withdraws the proof, heals them and proves again.
func TestFindsAndHealsEveryDifference(t *testing.T) {
	r := newRig(t)
	r.fill("users", 40)
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	g := r.generation(collection.SharedFamily, 1)
	index := "/" + r.index.IndexName(g)
	r.converges(func() bool { // what is broken below was proven
		p, _ := r.proven(collection.SharedFamily, 1)
		return p.Through.After(time.Now().Add(-margin-30*time.Second)) && r.found("users")["users/7"].Time().Before(p.Through)
	})
	written := r.found("users")
	item := func(id string) string { return index + "/_doc/" + url.PathEscape("users/"+id) }

	// missing: the index lost it.
	r.request(http.MethodDelete, fmt.Sprintf("%s?version=%d&version_type=external_gte", item("1"), written["users/1"]), "")
	// different: the same version with another content.
	version := written["users/2"]
	source := search.Project(doc.Document{ID: "users/2", Version: version, Data: map[string]any{"n": json.Number("999")}}, g).Source
	r.request(http.MethodPut, fmt.Sprintf("%s?version=%d&version_type=external_gte", item("2"), version), string(source))
	// ahead: the table lost a version.
	source = search.Project(doc.Document{ID: "users/3", Version: written["users/3"] + 50, Data: map[string]any{"n": json.Number("3")}}, g).Source
	r.request(http.MethodPut, fmt.Sprintf("%s?version=%d&version_type=external_gte", item("3"), written["users/3"]+50), string(source))
	// extra: the table has no trace of it.
	source = search.Project(doc.Document{ID: "users/nobody", Version: version, Data: map[string]any{}}, g).Source
	r.request(http.MethodPut, fmt.Sprintf("%s?version=%d&version_type=external_gte", item("nobody"), version), string(source))
	// foreign: another tool wrote an item, and its stream record was lost.
	if _, err := r.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(r.tables.Documents), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "users/foreign"}, "sk": &types.AttributeValueMemberS{Value: "/"},
		"data": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"n": &types.AttributeValueMemberN{Value: "1"}}},
	}}); err != nil {
		t.Fatal(err)
	}
	// marked: a marker whose tombstone is gone, old enough to be purged.
	old := doc.VersionAt(time.Now().Add(-31 * 24 * time.Hour))
	source = search.Project(doc.Document{ID: "users/marker", Version: old, Deleted: true}, g).Source
	r.request(http.MethodPut, fmt.Sprintf("%s?version=%d&version_type=external_gte", item("marker"), old), string(source))
	// and one that is not.
	young := doc.VersionAt(time.Now().Add(-29 * 24 * time.Hour))
	source = search.Project(doc.Document{ID: "users/young", Version: young, Deleted: true}, g).Source
	r.request(http.MethodPut, fmt.Sprintf("%s?version=%d&version_type=external_gte", item("young"), young), string(source))

	report := r.run(repair.Compare, func(o *repair.Options) { o.Sleep = nil })
	if _, ok := r.proven(collection.SharedFamily, 1); ok {
		t.Error("the proof stands over what was found")
	}
	last := report.LastPass
	if last == nil || last.Missing != 1 || last.Different != 1 || last.Ahead != 1 || last.Extra != 1 || last.Foreign != 1 || last.Older != 0 || report.Purged != 1 || last.Drift != 4 {
		t.Fatalf("%+v %+v", report, last)
	}
	reasons := map[doc.ID]string{}
	for _, d := range last.Differences {
		reasons[d.ID] = d.Reason
	}
	if len(reasons) != 4 || reasons["users/1"] != "missing" || reasons["users/2"] != "different" || reasons["users/3"] != "ahead" || reasons["users/nobody"] != "extra" {
		t.Errorf("%v", reasons)
	}
	held, err := r.index.Held(t.Context(), g, []doc.ID{"users/marker", "users/young"})
	if err != nil || len(held) != 1 || held["users/young"].Version != young {
		t.Errorf("markers: %v %v", held, err)
	}
	// No stream tells of what was adopted here, so it is told by hand.
	for _, id := range []doc.ID{"users/2", "users/3", "users/foreign"} {
		d, err := r.store.Load(t.Context(), id)
		if err != nil || d.Version <= written[id] {
			t.Fatalf("%s: %v at %d", id, err, d.Version)
		}
		r.signal(doc.Written{ID: id, Version: d.Version})
	}
	r.drain()
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	found := r.found("users")
	if len(found) != 41 || found["users/foreign"] == 0 || found["users/nobody"] != 0 {
		t.Errorf("%d are found: %v", len(found), found)
	}
	for id := range found {
		d, err := r.store.Load(t.Context(), id)
		if err != nil || d.Version != found[id] {
			t.Errorf("%s is indexed at %d: %v %d", id, found[id], err, d.Version)
		}
	}
	if report := r.run(repair.Compare); report.LastPass.Drift+report.LastPass.Missing+report.LastPass.Different+report.LastPass.Extra > 0 {
		t.Errorf("%+v", report.LastPass)
	}
}

// A comparison that is cut goes on where it was, and counts each document once.
func TestAComparisonGoesOnWhereItWasCut(t *testing.T) {
	r := newRig(t)
	r.fill("users", 60)
	time.Sleep(margin)
	var runs, checked int
	for runs = 1; runs < 100; runs++ {
		now := time.Now()
		calls := 0
		report := r.run(repair.Prove, func(o *repair.Options) {
			o.Budget = time.Second
			o.Now = func() time.Time { // every look at the clock costs time
				calls++
				return now.Add(time.Duration(calls) * 60 * time.Millisecond)
			}
		})
		if report.LastPass != nil {
			checked = report.LastPass.Checked
			break
		}
	}
	if runs < 3 || checked < 60 || checked > 60+16 {
		t.Errorf("%d documents were looked at in %d runs", checked, runs)
	}
}

// failingOnce is an index that fails at the first look for documents.
type failingOnce struct {
	repair.Index
	failed bool
}

func (x *failingOnce) Held(ctx context.Context, g collection.Generation, ids []doc.ID) (map[doc.ID]search.Held, error) {
	if !x.failed {
		x.failed = true
		return nil, search.ErrMisfit // which is not tried again
	}
	return x.Index.Held(ctx, g, ids)
}

// Nor is a part of the table counted that is read again because the index failed.
func TestWhatIsReadAgainIsCountedOnce(t *testing.T) {
	r := newRig(t)
	r.fill("users", 40)
	x := &failingOnce{}
	failing := func(o *repair.Options) { x.Index, o.Index = o.Index, x }
	if _, held, err := r.repair(failing).Run(t.Context(), repair.Compare); !held || err == nil || !x.failed {
		t.Fatalf("held %v, failed %v: %v", held, x.failed, err)
	}
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	for _, c := range r.run(repair.Prove).Collections {
		if c.Name == "users" && (c.Documents == nil || *c.Documents != 40) {
			t.Errorf("%+v", c)
		}
	}
}

// What the quarantine names is tried again with growing pauses, and leaves it
// when there is nothing left to be indexed.
func TestRetriesTheQuarantine(t *testing.T) {
	r := newRig(t)
	r.fill("users", 3)
	state := r.store.State()
	since := time.Now()
	version := r.found("users")["users/1"]
	for _, q := range []doc.Quarantined{
		{ID: "users/1", Collection: "users", Version: version, Reason: "refused", Attempts: 1, Since: since},
		{ID: "users/nobody", Collection: "users", Version: version, Reason: "refused", Attempts: 1, Since: since},
	} {
		if err := state.RecordQuarantine(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	r.queue.losing = true
	if report := r.run(repair.Prove); report.Quarantined != 1 || report.Retried != 0 {
		t.Errorf("%+v", report)
	}
	var retried []int
	for _, minutes := range []time.Duration{1, 3, 4, 7, 8, 15, 16, 31} {
		report := r.run(repair.Prove, later(minutes*time.Minute), func(o *repair.Options) { o.CompareEvery = 1000 * time.Hour })
		retried = append(retried, report.Retried)
	}
	if !slices.Equal(retried, []int{0, 1, 0, 1, 0, 1, 0, 1}) {
		t.Errorf("%v", retried)
	}
	r.queue.losing = false
	if report := r.run(repair.Retry, later(31*time.Minute)); report.Retried != 1 {
		t.Errorf("%+v", report)
	}
	r.drain()
	if n, err := state.CountQuarantined(t.Context(), []doc.Collection{"users"}); n != 0 || err != nil {
		t.Errorf("%d are left in quarantine: %v", n, err)
	}
}

// A table that was restored without the state has collections that nobody has
// registered. A comparison does that, once.
func TestAComparisonRegistersCollections(t *testing.T) {
	r := newRig(t)
	r.fill("users", 3)
	r.fill("orders", 2)
	gone, err := r.store.Delete(t.Context(), "orders/1", doc.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	r.signal(gone)
	for _, c := range []string{"users", "orders"} {
		if _, err := r.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(r.tables.State), Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "collection"}, "sk": &types.AttributeValueMemberS{Value: c},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	known := func() []doc.Collection {
		t.Helper()
		all, err := r.store.State().Collections(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := known(); len(all) > 0 {
		t.Fatalf("%v", all)
	}
	for range 2 {
		// Another process, which has registered nothing yet.
		r.run(repair.Compare, func(o *repair.Options) { o.State = store.NewState(r.client, r.tables.State, nil) })
		if all := known(); !slices.Equal(all, []doc.Collection{"orders", "users"}) {
			t.Errorf("%v", all)
		}
	}
}
