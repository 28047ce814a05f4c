package store

import (
	"strings"
	"testing"

	"holdfast/shared/doc"
)

// TestPositionsThatAreNoKeys makes cursors as anybody can, with positions that
// the engine would refuse.
func TestPositionsThatAreNoKeys(t *testing.T) {
	prefix, err := doc.ParsePrefix("users/1/")
	if err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("x", doc.MaxIDBytes)
	for text, valid := range map[string]bool{longest: true, longest + "x": false, "users/\xff": false} {
		cursors := map[string]func() error{
			"the feed": func() error {
				p := feedPosition{version: 7, id: doc.ID(text)}
				_, err := parseFeedCursor(feedCursor{floor: feedPosition{version: 7}, read: p}.String())
				return err
			},
			"the quarantine": func() error {
				q := QuarantineQuery{}
				q.After = quarantinePosition{collection: "users", id: doc.ID(text)}.cursor(q)
				_, err := parseQuarantinePosition(q)
				return err
			},
			"the quarantine, its collection": func() error {
				q := QuarantineQuery{}
				q.After = quarantinePosition{collection: doc.Collection(text)}.cursor(q)
				_, err := parseQuarantinePosition(q)
				return err
			},
		}
		if !valid {
			cursors["a prefix"] = func() error {
				q := PrefixQuery{Prefix: prefix, After: writeCursor(prefixCursor, prefix.String(), []byte(prefix.Rest+text))}
				_, err := (&Store{clock: doc.NewClock(nil)}).Prefix(t.Context(), q)
				return err
			}
		}
		for of, read := range cursors {
			if err := read(); (err == nil) != valid || err != nil && doc.KindOf(err) != doc.InvalidCursor {
				t.Errorf("a cursor of %s with %d bytes %.20q: %v", of, len(text), text, err)
			}
		}
	}
}
