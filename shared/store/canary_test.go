package store_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// TestCanariesAreTheSystems has them be in the right partition, seen wherever
// they are, and not where clients look.
func TestCanariesAreTheSystems(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	with := func(n int) *store.Store { return tb.open(nil, func(o *store.Options) { o.Buckets = n }) }
	few := with(3)
	written := map[string]doc.Written{}
	put := func(s *store.Store, n int, partition string) {
		t.Helper()
		w, err := s.PutCanary(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := tb.get(t, w.ID)["bucket"].(*types.AttributeValueMemberN).Value; got != partition {
			t.Errorf("%d is in partition %s, want %s", n, got, partition)
		}
		written[partition] = w
	}
	put(few, 0, "0")
	put(few, 1, "1")
	put(few, 5, "2")
	put(few, -1, "2")
	many := with(16)
	put(many, 15, "15")
	put(many, 31, "15")
	put(few, 4, "1") // by a process that goes on with the old number
	for partition, w := range written {
		for name, s := range map[string]*store.Store{"few": few, "many": many} {
			if ok, err := s.FeedHas(ctx, w); err != nil || !ok {
				t.Errorf("%s: in partition %s: %t, %v", name, partition, ok, err)
			}
		}
	}
	if all, err := few.State().Collections(ctx); err != nil || len(all) != 0 {
		t.Errorf("collections %v, %v", all, err)
	}
	if _, err := tb.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &tb.state, Item: item{"pk": text("collection"), "sk": text("$canary")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := few.Put(ctx, "seen/1", data("x"), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	if all, err := few.State().Collections(ctx); err != nil || len(all) != 1 || all[0] != "seen" {
		t.Errorf("collections %v, %v", all, err)
	}
	if page, err := few.Changes(ctx, store.ChangesQuery{}); err != nil || len(page.Changes) != 1 || page.Changes[0].ID != "seen/1" {
		t.Errorf("changes %v, %v", page.Changes, err)
	}
}
