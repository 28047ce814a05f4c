package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/obs"
	"holdfast/shared/pipeline"
	"holdfast/shared/store"
)

// noon is the moment at which the relay's transcripts happen.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestRelayTranscripts plays testdata/relay-*.txt. The commands:
//
//	queue refuses <n>…       the n-th message of the next batches is not sent
//	queue works
//	adopting fails <id>      adoptions of the id fail for now
//	adopting is refused <id> … for good
//	adopting works
//	time is short            the context ends before there is time for an adoption
//	batch                    stream records; answers with calls and outcome
//
// A record is its sequence number, its event, the id and then: v= and nonce= of
// the new image, was= and was-nonce= of the old one, deleted and was-deleted,
// was-expires=past or future, collection= where it is not the id's, ttl, and
// keys=odd for a record whose keys are no document's. With count= the record is
// repeated, its sequence number and the number of its id growing.
func TestRelayTranscripts(t *testing.T) {
	playTranscripts(t, "relay-*.txt", func(t *testing.T) func(step) string {
		w := &relayWorld{t: t}
		return w.play
	})
}

type relayWorld struct {
	t       *testing.T
	refuses []int
	failing map[doc.ID]error
	short   bool
	told    strings.Builder
}

func (w *relayWorld) play(s step) string {
	w.told.Reset()
	verb, rest, _ := strings.Cut(s.command, " ")
	switch {
	case s.command == "queue works":
		w.refuses = nil
	case strings.HasPrefix(s.command, "queue refuses "):
		for word := range strings.FieldsSeq(strings.TrimPrefix(rest, "refuses ")) {
			w.refuses = append(w.refuses, int(number(w.t, word)))
		}
	case s.command == "adopting works":
		w.failing = nil
	case strings.HasPrefix(s.command, "adopting fails "):
		w.failing = map[doc.ID]error{doc.ID(strings.TrimPrefix(rest, "fails ")): doc.Errorf(doc.Throttled, "too much")}
	case strings.HasPrefix(s.command, "adopting is refused "):
		w.failing = map[doc.ID]error{doc.ID(strings.TrimPrefix(rest, "is refused ")): doc.Errorf(doc.DocumentTooLarge, "no room")}
	case s.command == "time is short":
		w.short = true
	case verb == "batch":
		w.batch(s.lines)
	default:
		w.t.Fatalf("unknown command %q", s.command)
	}
	return w.told.String()
}

func (w *relayWorld) batch(lines []string) {
	var records []pipeline.Record
	for _, line := range lines {
		records = append(records, w.records(line)...)
	}
	var logged, measured bytes.Buffer
	relay := pipeline.NewRelay(pipeline.RelayOptions{
		Queue: w, Adopter: w, Now: func() time.Time { return noon },
		Log: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
		Metrics: obs.NewMetrics(&measured, "test", nil),
	})
	ctx := context.Background()
	if w.short {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	failed, err := relay.Handle(ctx, records)
	for line := range strings.Lines(logged.String()) {
		if strings.HasPrefix(line, "level=ERROR") {
			fmt.Fprintf(&w.told, "logs  %s", line)
		}
		for _, r := range records {
			if r.ID != "" && strings.Contains(line, string(r.ID)) {
				w.t.Errorf("an id is in the log: %s", line)
			}
		}
	}
	switch {
	case err != nil:
		fmt.Fprintf(&w.told, "error %v\n", err)
	case len(failed) == 0:
		fmt.Fprintf(&w.told, "done\n")
	default:
		fmt.Fprintf(&w.told, "again from %s\n", strings.Join(failed, " "))
	}
	if !strings.Contains(measured.String(), fmt.Sprintf(`"RelayRecords":%d`, len(records))) {
		w.t.Errorf("the metrics do not count %d records: %s", len(records), measured.String())
	}
}

func (w *relayWorld) records(line string) []pipeline.Record {
	first, o := words(line, 3)
	count := int64(1)
	if o["count"] != "" {
		count = number(w.t, o["count"])
	}
	var records []pipeline.Record
	for i := range count {
		id := first[2]
		sequence := first[0]
		if count > 1 {
			id = fmt.Sprintf("%s%d", first[2], i+1)
			sequence = fmt.Sprint(number(w.t, first[0]) + i)
		}
		if sequence == "-" {
			sequence = ""
		}
		r := pipeline.Record{Sequence: sequence, Event: pipeline.Event(first[1]), ID: doc.ID(id), ByTTL: o["ttl"] != ""}
		if o["keys"] == "odd" {
			r.ID, r.Unreadable = "", "its keys are not the strings pk and sk"
		}
		if r.Event != pipeline.Remove {
			r.New = w.image(r.ID, o, "")
		}
		if r.Event != pipeline.Insert {
			r.Old = w.image(r.ID, o, "was-")
		}
		records = append(records, r)
	}
	return records
}

func (w *relayWorld) image(id doc.ID, o map[string]string, prefix string) *pipeline.Image {
	i := &pipeline.Image{Collection: string(id.Collection()), Nonce: "n", Deleted: o[prefix+"deleted"] != ""}
	version := o["v"]
	if prefix != "" {
		version = o["was"]
	}
	if version != "" && version != "none" {
		i.Version = doc.Version(number(w.t, version))
	}
	if nonce, ok := o[prefix+"nonce"]; ok {
		i.Nonce = strings.TrimSuffix(nonce, "none")
	}
	if c, ok := o[prefix+"collection"]; ok {
		i.Collection = strings.TrimSuffix(c, "none")
	}
	switch o[prefix+"expires"] {
	case "past":
		i.ExpiresAt = noon.Add(-time.Hour)
	case "future":
		i.ExpiresAt = noon.Add(time.Hour)
	}
	return i
}

// Send is the queue.
func (w *relayWorld) Send(_ context.Context, out []pipeline.Outgoing) []error {
	errs := make([]error, len(out))
	for i, m := range out {
		if len(m.Body) > pipeline.MaxMessageBytes || m.Delay != 0 {
			w.t.Errorf("a message of %d bytes delayed by %s", len(m.Body), m.Delay)
		}
		signals, _, err := pipeline.Unpack(m.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		what := "sends"
		if slices.Contains(w.refuses, i+1) {
			what, errs[i] = "fails to send", errors.New("the queue is full")
		}
		fmt.Fprintf(&w.told, "%s %s\n", what, list(signals))
	}
	return errs
}

// list writes signals, the middle of many left out.
func list(signals []doc.Signal) string {
	var parts []string
	for _, s := range signals {
		parts = append(parts, fmt.Sprintf("%s@%d", s.ID, s.Version))
	}
	if n := len(parts); n > 8 {
		parts = []string{parts[0], parts[1], fmt.Sprintf("… %d more …", n-3), parts[n-1]}
	}
	return strings.Join(parts, " ")
}

// Adopt is the table.
func (w *relayWorld) Adopt(_ context.Context, f store.Foreign) error {
	err := w.failing[f.ID]
	what := "adopts"
	if err != nil {
		what = "fails to adopt"
	}
	kind := "change"
	if f.Removed {
		kind = "removal"
	}
	fmt.Fprintf(&w.told, "%s the %s of %s, which was at %d and is at %d\n", what, kind, f.ID, f.Old.Version, f.New.Version)
	return err
}

// Whatever fails, a record before the one from which delivery begins again is
// settled, and the outcomes add up.
func TestNoRecordIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []pipeline.Record
		for i := range rapid.IntRange(0, 300).Draw(t, "records") {
			id := doc.ID(fmt.Sprintf("users/%d", rapid.IntRange(1, 150).Draw(t, "id")))
			image := func(v doc.Version) *pipeline.Image {
				return &pipeline.Image{Version: v, Nonce: "n", Collection: "users", Deleted: rapid.Bool().Draw(t, "deleted")}
			}
			r := pipeline.Record{Sequence: fmt.Sprint(95 + i), ID: id, Event: pipeline.Modify, New: image(doc.Version(100 + i)), Old: image(doc.Version(rapid.IntRange(0, 400).Draw(t, "was")))}
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				r.Event, r.New = pipeline.Remove, nil
			case 1:
				r.ID, r.Unreadable = "", "odd"
			}
			records = append(records, r)
		}
		q := &fallibleQueue{t: t, sent: map[doc.ID]doc.Version{}, tried: map[doc.ID]bool{}}
		relay := pipeline.NewRelay(pipeline.RelayOptions{Queue: q, Adopter: q, Now: func() time.Time { return noon }})
		report, failed, err := relay.Relay(context.Background(), records)
		if err != nil || len(failed) > 1 || (len(failed) == 0) != (report.Failed == 0) {
			t.Fatalf("%+v %v %v", report, failed, err)
		}
		if sum := report.Merged + report.Signalled + report.Quiet + report.Adopted + report.Unadoptable + report.Unreadable + report.Failed; sum != report.Records || report.Records != len(records) {
			t.Fatalf("%d records, but %d outcomes: %+v", len(records), sum, report)
		}
		for i, r := range records {
			if len(failed) > 0 && r.Sequence == failed[0] {
				break
			}
			if len(failed) > 0 && i == len(records)-1 {
				t.Fatalf("%s is no record", failed[0])
			}
			switch {
			case r.ID == "", r.New == nil && r.Old.Deleted:
			case r.New == nil || r.New.Version <= r.Old.Version:
				if !q.tried[r.ID] {
					t.Fatalf("%+v is not adopted", r)
				}
			case q.sent[r.ID] < r.New.Version:
				t.Fatalf("%+v is not told, delivery begins again at %v", r, failed)
			}
		}
	})
}

// fallibleQueue is a queue and a table that fail now and then.
type fallibleQueue struct {
	t     *rapid.T
	sent  map[doc.ID]doc.Version
	tried map[doc.ID]bool
}

func (q *fallibleQueue) Send(_ context.Context, out []pipeline.Outgoing) []error {
	errs := make([]error, len(out))
	for i, m := range out {
		signals, _, err := pipeline.Unpack(m.Body)
		if err != nil {
			q.t.Fatal(err)
		}
		if rapid.IntRange(0, 3).Draw(q.t, "send") == 0 {
			errs[i] = errors.New("full")
			continue
		}
		for _, s := range signals {
			q.sent[s.ID] = max(q.sent[s.ID], s.Version)
		}
	}
	return errs
}

func (q *fallibleQueue) Adopt(_ context.Context, f store.Foreign) error {
	switch rapid.IntRange(0, 5).Draw(q.t, "adopt") {
	case 0:
		return doc.Errorf(doc.Unavailable, "not now")
	case 1:
		q.tried[f.ID] = true
		return doc.Errorf(doc.DocumentTooLarge, "never")
	}
	q.tried[f.ID] = true
	return nil
}
