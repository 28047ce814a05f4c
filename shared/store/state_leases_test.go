package store_test

import (
	"testing"
	"time"
)

// Who knows that a holder is dead ends its lease; a holder that lives after all
// has a token below that of the next.
func TestALeaseCanBeEndedForADeadHolder(t *testing.T) {
	s := newTables(t).open(nil).State()
	ctx := t.Context()
	if err := s.EndLease(ctx, "job"); err != nil {
		t.Fatalf("a lease that there never was: %v", err)
	}
	dead, ok, err := s.AcquireLease(ctx, "job", time.Hour)
	if err != nil || !ok || dead.Token != 1 {
		t.Fatalf("%+v, %t, %v", dead, ok, err)
	}
	if _, ok, err := s.AcquireLease(ctx, "job", time.Hour); err != nil || ok {
		t.Fatalf("taken twice: %t, %v", ok, err)
	}
	if err := s.EndLease(ctx, "job"); err != nil {
		t.Fatal(err)
	}
	next, ok, err := s.AcquireLease(ctx, "job", time.Hour)
	if err != nil || !ok || next.Token != 2 {
		t.Fatalf("after its end: %+v, %t, %v", next, ok, err)
	}
	if _, ok, err := s.RenewLease(ctx, dead, time.Hour); err != nil || ok {
		t.Errorf("the dead one renews: %t, %v", ok, err)
	}
}
