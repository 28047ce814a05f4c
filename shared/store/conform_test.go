package store_test

import (
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/store/storetest"
)

func TestWhole(t *testing.T) {
	storetest.RunWhole(t, func(t *testing.T, now func() time.Time) storetest.Subject {
		return storetest.Subject{Store: newTables(t).open(nil, withClock(now))}
	})
}

func TestRecords(t *testing.T) {
	storetest.RunRecords(t, func(t *testing.T) storetest.OpenRecords {
		tb := newTables(t)
		return func(now func() time.Time) storetest.Records {
			// Without the Date of answers, which would put a clock of the test's right.
			undated := newClient(tb.url, dated{date: func() string { return "" }})
			return store.NewState(undated, tb.state, doc.NewClock(now))
		}
	})
}
