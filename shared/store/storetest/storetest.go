// Package storetest is the conformance suite of document stores: what every
// store has to do, told once. It runs against the real engine, and any other
// store that claims to behave the same has to pass it unchanged.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// Store is what is tested.
type Store interface {
	Load(ctx context.Context, id doc.ID) (doc.Document, error)
	LoadMany(ctx context.Context, ids []doc.ID, maxBytes int) (store.LoadResult, error)
	Revisions(ctx context.Context, ids []doc.ID, maxBytes int, visit func(found []doc.Document, absent []doc.ID) error) error
	Put(ctx context.Context, id doc.ID, data map[string]any, cond doc.Condition) (doc.Written, error)
	Delete(ctx context.Context, id doc.ID, cond doc.Condition) (doc.Written, error)
	Create(ctx context.Context, parent string, data map[string]any) (doc.Written, error)
	Prefix(ctx context.Context, q store.PrefixQuery) (store.PrefixPage, error)
	Changes(ctx context.Context, q store.ChangesQuery) (store.ChangesPage, error)
}

// Subject is an empty store and what it guarantees beyond the rules.
type Subject struct {
	Store Store
	// FeedDelay is how long a change may take to appear in the feed. Zero: it
	// is there at once.
	FeedDelay time.Duration
	// ItemLimit says that documents are refused from one byte above 400 KB on,
	// keys and system attributes counted as DynamoDB counts them.
	ItemLimit bool
	// Volume is how many documents the tests of paging write.
	Volume int
}

// Open makes an empty store whose writers read the given time. It is called once
// for each part of the suite.
type Open func(t *testing.T, now func() time.Time) Subject

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"OddValues", oddValues},
		{"RoundTrip", roundTrip},
		{"Size", size},
		{"Ids", ids},
		{"Conditions", conditions},
		{"OneWinner", oneWinner},
		{"Increments", increments},
		{"Versions", versions},
		{"Deletes", deletes},
		{"AgainstModel", againstModel},
		{"LoadMany", loadMany},
		{"Revisions", revisions},
		{"PrefixMeaning", prefixMeaning},
		{"PrefixPaging", prefixPaging},
		{"Sequences", sequences},
		{"ChangesOrder", changesOrder},
		{"ChangesWhileWriting", changesWhileWriting},
	} {
		t.Run(part.name, func(t *testing.T) {
			b := &bench{ctx: t.Context()}
			b.Subject = open(t, b.now)
			part.run(t, b)
		})
	}
}

// bench is a store under test with its clock.
type bench struct {
	Subject
	ctx    context.Context
	offset atomic.Int64 // nanoseconds the writers' clock is off
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.offset.Load())) }

// turn sets the writers' clock off by d.
func (b *bench) turn(d time.Duration) { b.offset.Store(int64(d)) }

// failer is what both testing.T and rapid.T can do.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func (b *bench) put(t failer, id doc.ID, data map[string]any) doc.Written {
	t.Helper()
	w, err := b.Store.Put(b.ctx, id, data, doc.Condition{})
	if err != nil {
		t.Fatalf("put %s: %v", id, err)
	}
	return w
}

func (b *bench) delete(t failer, id doc.ID) doc.Written {
	t.Helper()
	w, err := b.Store.Delete(b.ctx, id, doc.Condition{})
	if err != nil {
		t.Fatalf("delete %s: %v", id, err)
	}
	return w
}

func (b *bench) load(t failer, id doc.ID) doc.Document {
	t.Helper()
	d, err := b.Store.Load(b.ctx, id)
	if err != nil {
		t.Fatalf("load %s: %v", id, err)
	}
	return d
}

// same fails the test unless the stored document holds the data.
func (b *bench) same(t failer, id doc.ID, data map[string]any) {
	t.Helper()
	got := b.load(t, id)
	if !value.Equal(got.Data, data) {
		t.Errorf("%s: got %s, put %s", id, value.Append(nil, got.Data), value.Append(nil, data))
	}
}

func wantKind(t failer, err error, kind doc.Kind) *doc.Error {
	t.Helper()
	if got := doc.KindOf(err); got != kind {
		t.Fatalf("kind %q, want %q (%v)", got, kind, err)
	}
	var e *doc.Error
	errors.As(err, &e)
	return e
}

// object reads a document from JSON text.
func object(t failer, text string) map[string]any {
	t.Helper()
	data, err := value.DecodeDocument([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return data
}

// counter is a document with one number.
func counter(n int) map[string]any {
	return map[string]any{"n": json.Number(fmt.Sprint(n))}
}

// eventually repeats a check until it holds or the feed's delay is over.
func (b *bench) eventually(t failer, check func() error) {
	t.Helper()
	deadline := time.Now().Add(b.FeedDelay)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
