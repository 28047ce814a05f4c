package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

func TestDefineUnused(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	s := tb.open(nil)
	st := s.State()
	own := collection.Definition{Name: "orders", Index: collection.Own, Nested: []string{"lines"}}
	d, err := st.DefineUnused(ctx, own, 0)
	if err != nil || d.Revision != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := st.DefineUnused(ctx, own, 0); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("over another: %v", err)
	}
	if d, err = st.DefineUnused(ctx, own, 1); err != nil || d.Revision != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	// A lost answer is settled, whether the engine knows repeated requests or not.
	f := &faults{plan: func(op string, n int) fault {
		if op == "TransactWriteItems" && n == 0 {
			return lostAfter
		}
		return fine
	}}
	if d, err = store.NewState(newClient(tb.url, f), tb.state, nil).DefineUnused(ctx, own, 2); err != nil || d.Revision != 3 {
		t.Errorf("after a lost answer: %+v, %v", d, err)
	}
	if _, err := s.Put(ctx, "orders/1", data("x"), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.DefineUnused(ctx, own, 3); doc.KindOf(err) != doc.ReindexRequired {
		t.Errorf("with documents: %v", err)
	}
	now, err := tb.open(nil).State().CurrentDefinition(ctx, "orders")
	if err != nil || now.Revision != 3 || !slices.Equal(now.Nested, own.Nested) || now.Index != collection.Own {
		t.Errorf("%+v, %v", now, err)
	}
	if none, err := st.CurrentDefinition(ctx, "users"); err != nil || none.Name != "users" || none.Declared() {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := st.PutDefinition(ctx, collection.Definition{Name: "customers"}, 0); err != nil {
		t.Fatal(err)
	}
	all, err := st.Definitions(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "customers" || all[1].Revision != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestDefinitionAgainstFirstWrite races a first definition with a first
// document. Either the definition is refused, or whoever reads it after the
// write sees it, as the indexer does.
func TestDefinitionAgainstFirstWrite(t *testing.T) {
	tb := newTables(t)
	var defined, refused atomic.Int32
	var races sync.WaitGroup
	for i := range 12 {
		name := doc.Collection([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}[i])
		races.Go(func() {
			var both sync.WaitGroup
			var put error
			both.Go(func() {
				_, put = tb.open(nil).State().DefineUnused(t.Context(), collection.Definition{Name: name, Index: collection.Own}, 0)
			})
			both.Go(func() {
				if _, err := tb.open(nil).Put(t.Context(), doc.ID(name)+"/1", data("x"), doc.Condition{}); err != nil {
					t.Error(err)
				}
				d, err := tb.open(nil).State().Definition(t.Context(), name)
				if err != nil {
					t.Error(err)
				}
				if d.Index == collection.Own {
					defined.Add(1)
				}
			})
			both.Wait()
			switch doc.KindOf(put) {
			case "":
			case doc.ReindexRequired:
				refused.Add(1)
			default:
				t.Errorf("%v", put)
			}
		})
	}
	races.Wait()
	if defined.Load()+refused.Load() != 12 {
		t.Errorf("%d of 12 first documents saw the definition, %d definitions were refused", defined.Load(), refused.Load())
	}
}
