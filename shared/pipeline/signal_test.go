package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
)

func TestPackAndUnpackAreInverse(t *testing.T) {
	segment := rapid.StringMatching(`[a-z$"\\<>&\x{7f3}\x{2028}\x{fffd}-\x{ffff}\x{1f600}]{1,40}`).Filter(func(s string) bool { return s != "." && s != ".." })
	signal := rapid.Custom(func(t *rapid.T) doc.Signal {
		id, err := doc.ParseStoredID(segment.Draw(t, "collection") + "/" + segment.Draw(t, "key"))
		if err != nil {
			t.Fatal(err)
		}
		return doc.Signal{ID: id, Version: doc.Version(rapid.Int64Range(1, 1<<62).Draw(t, "version"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		signals := rapid.SliceOfN(signal, 0, 250).Draw(t, "signals")
		tries := rapid.IntRange(0, 1000).Draw(t, "tries")
		packed, err := pipeline.Pack(signals, tries)
		if err != nil {
			t.Fatal(err)
		}
		var back []doc.Signal
		for _, p := range packed {
			got, n, err := pipeline.Unpack(p.Body)
			if err != nil || n != tries || fmt.Sprint(got) != fmt.Sprint(p.Signals) {
				t.Fatalf("%s: %v %d %v", p.Body, got, n, err)
			}
			if len(p.Body) > pipeline.MaxMessageBytes || len(got) > pipeline.MaxSignals || strings.ContainsAny(p.Body, "\uFFFE\uFFFF") {
				t.Fatalf("a message of %d signals and %d bytes: %s", len(got), len(p.Body), p.Body)
			}
			back = append(back, got...)
		}
		if fmt.Sprint(back) != fmt.Sprint(signals) {
			t.Fatalf("%v became %v", signals, back)
		}
		if want := (len(signals) + pipeline.MaxSignals - 1) / pipeline.MaxSignals; len(packed) != want {
			t.Fatalf("%d messages for %d signals", len(packed), len(signals))
		}
	})
}

// A hundred of the longest ids, every byte of them escaped, fit one message.
func TestTheLongestIDsFit(t *testing.T) {
	signals := make([]doc.Signal, 100)
	for i := range signals {
		signals[i] = doc.Signal{ID: doc.ID(fmt.Sprintf("a/%d", i) + strings.Repeat(`"`, 508)), Version: 1 << 52}
	}
	packed, err := pipeline.Pack(signals, 1000)
	if err != nil || len(packed) != 1 || len(packed[0].Body) > pipeline.MaxMessageBytes {
		t.Fatalf("%d messages, %v", len(packed), err)
	}
}

func TestUnreadableMessages(t *testing.T) {
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `hello`, `{"v":1}`, `{"v":1,"signals":[]}`, `{"v":2,"signals":[{"id":"a/1","v":1}]}`,
		`{"v":1,"signals":[{"id":"a","v":1}]}`, `{"v":1,"signals":[{"id":"a/1"}]}`, `{"v":1,"signals":[{"id":"a/1","v":-1}]}`,
		`{"v":1,"signals":[{"id":"a/1","v":1.5}]}`, `{"v":1,"signals":[{"id":"a/1","v":1}],"tries":-1}`,
		`{"v":1,"signals":[{"id":"a/1","v":1}]} {}`, `{"v":1,"signals":[{"id":"a/1","v":1},{"id":"","v":1}]}`,
	} {
		if signals, _, err := pipeline.Unpack(body); err == nil {
			t.Errorf("%s is read as %v", body, signals)
		}
	}
	// Members that a later program adds are no reason.
	if _, _, err := pipeline.Unpack(`{"v":1,"signals":[{"id":"$canary/1","v":1,"new":1}],"new":true}`); err != nil {
		t.Error(err)
	}
}
