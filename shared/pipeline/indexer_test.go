package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
)

// TestIndexerTranscripts plays testdata/indexer-*.txt. The commands:
//
//	table                    what it holds: an id, its version, and deleted or {json}; or an id and gone
//	index                    what it holds: generation, id, version
//	own <collection>         the collection has an index of its own
//	generations <family>     its generations: number, state and, unless it is this program's, projector=
//	refuse <id> below <form> the index refuses forms above this one; "below nothing" refuses all
//	fail <what> …            table, queue, quarantine, fields, ensure, generations do not answer
//	index answers <status> [for <id> or <family>] each document with a failure of the environment; 0: no answer
//	lose <index>             an index is gone
//	slices of <n>            the table is read in slices of so many documents
//	works                    everything works again
//	after <duration>         time passes
//	messages                 an invocation: each line a message, <name> [tries=n] id@version …, or <name> garbage
//
// A repeated document id can be written with a count: flights/{1..500}@7.
func TestIndexerTranscripts(t *testing.T) {
	playTranscripts(t, "indexer-*.txt", func(t *testing.T) func(step) string {
		p := &indexerPlay{t: t, world: newWorld()}
		p.world.tell = func(format string, args ...any) { fmt.Fprintf(&p.told, format+"\n", args...) }
		p.indexer = p.world.indexer(0)
		return p.play
	})
}

type indexerPlay struct {
	t       *testing.T
	world   *world
	indexer *pipeline.Indexer
	told    strings.Builder
}

func (p *indexerPlay) play(s step) string {
	p.told.Reset()
	w := p.world
	word := strings.Fields(s.command)
	switch word[0] {
	case "table":
		for _, line := range s.lines {
			p.put(line)
		}
	case "index":
		if len(word) > 2 && word[1] == "answers" {
			p.environment(word[2:])
			break
		}
		for _, line := range s.lines {
			f := strings.Fields(line)
			if w.indexes[f[0]] == nil {
				w.indexes[f[0]] = map[doc.ID]held{}
			}
			w.indexes[f[0]][doc.ID(f[1])] = held{doc.Version(number(p.t, f[2])), "full"}
		}
	case "own":
		w.definitions[doc.Collection(word[1])] = collection.Definition{Index: collection.Own}
	case "generations":
		family := collection.Family(word[1])
		w.generations[family] = nil
		for _, line := range s.lines {
			first, o := words(line, 2)
			g := collection.Generation{Family: family, Number: int(number(p.t, first[0])), State: collection.GenerationState(first[1]), Projector: search.Projector}
			if o["projector"] != "" {
				g.Projector = int(number(p.t, o["projector"]))
			}
			w.generations[family] = append(w.generations[family], g)
			w.indexes[indexName(g)] = map[doc.ID]held{}
		}
	case "refuse":
		level, ok := levels[strings.Join(word[3:], " ")]
		if !ok {
			level = search.EnvelopeOnly + 1
		}
		w.refused[doc.ID(word[1])] = level
	case "fail":
		for _, what := range word[1:] {
			w.broken[what] = true
		}
	case "lose":
		delete(w.indexes, word[1])
	case "slices":
		w.sliceOf = int(number(p.t, word[2]))
		p.indexer = w.indexer(600 * w.sliceOf) // so that each slice is written on its own
	case "works":
		if w.sliceOf > 0 {
			p.indexer = w.indexer(0)
		}
		w.environment, w.sliceOf = nil, 0
		clear(w.broken)
		clear(w.refused)
	case "after":
		d, err := time.ParseDuration(word[1])
		if err != nil {
			p.t.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "messages":
		p.messages(s.lines)
	default:
		p.t.Fatalf("unknown command %q", s.command)
	}
	return p.told.String()
}

func (p *indexerPlay) put(line string) {
	f := strings.SplitN(line, " ", 3)
	for _, id := range spread(p.t, f[0]) {
		d := doc.Document{ID: id}
		if f[1] == "gone" {
			delete(p.world.table, id)
			continue
		}
		d.Version = doc.Version(number(p.t, f[1]))
		if f[2] == "deleted" {
			d.Deleted = true
		} else {
			dec := json.NewDecoder(strings.NewReader(f[2]))
			dec.UseNumber()
			if err := dec.Decode(&d.Data); err != nil {
				p.t.Fatal(err)
			}
		}
		p.world.table[id] = d
	}
}

func (p *indexerPlay) environment(word []string) {
	status := int(number(p.t, word[0]))
	only := ""
	if len(word) > 2 {
		only = word[2]
	}
	p.world.environment = func(op search.Operation) (search.Outcome, bool) {
		if only != "" && only != string(op.ID) && only != string(op.Generation.Family) {
			return search.Outcome{}, false
		}
		return search.Outcome{Kind: search.Environment, Status: status, Reason: "not now"}, true
	}
}

// spread writes out users/{1..3}.
func spread(t *testing.T, s string) []doc.ID {
	before, rest, many := strings.Cut(s, "{")
	if !many {
		return []doc.ID{doc.ID(s)}
	}
	span, after, _ := strings.Cut(rest, "}")
	from, to, _ := strings.Cut(span, "..")
	var ids []doc.ID
	for i := number(t, from); i <= number(t, to); i++ {
		ids = append(ids, doc.ID(before+strconv.FormatInt(i, 10)+after))
	}
	return ids
}

func (p *indexerPlay) messages(lines []string) {
	var messages []pipeline.Message
	for _, line := range lines {
		f := strings.Fields(line)
		if f[1] == "garbage" {
			messages = append(messages, pipeline.Message{ID: f[0], Body: `{"v":1,"signals":[{"id":"users","v":1}]}`})
			continue
		}
		tries := 0
		var signals []doc.Signal
		for _, s := range f[1:] {
			if n, ok := strings.CutPrefix(s, "tries="); ok {
				tries = int(number(p.t, n))
				continue
			}
			ids, version, _ := strings.Cut(s, "@")
			for _, id := range spread(p.t, ids) {
				signals = append(signals, doc.Signal{ID: id, Version: doc.Version(number(p.t, version))})
			}
		}
		packed, err := pipeline.Pack(signals, tries)
		if err != nil {
			p.t.Fatal(err)
		}
		for i, m := range packed {
			name := f[0]
			if i > 0 {
				name += "." + strconv.Itoa(i)
			}
			messages = append(messages, pipeline.Message{ID: name, Body: m.Body, Receives: 1})
		}
	}
	report, failed := p.indexer.Index(context.Background(), messages)
	checkReport(p.t, report)
	fmt.Fprintf(&p.told, "%s\n", tellReport(report))
	if len(failed) > 0 {
		fmt.Fprintf(&p.told, "not acknowledged: %s\n", strings.Join(failed, " "))
	}
}

func tellReport(r pipeline.Report) string {
	parts := []string{fmt.Sprintf("%d signals", r.Signals)}
	for _, c := range []struct {
		n    int
		name string
	}{
		{r.Merged, "merged"}, {r.Applied, "applied"}, {r.Stale, "stale"}, {r.Partial, "partial"},
		{r.Quarantined, "quarantined"}, {r.Absent, "absent"}, {r.Requeued, "requeued"}, {r.Returned, "returned"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	if r.Unreadable > 0 {
		parts = append(parts, fmt.Sprintf("%d messages unreadable", r.Unreadable))
	}
	return strings.Join(parts, ", ")
}

// checkReport: outcomes add up to inputs.
func checkReport(t interface{ Errorf(string, ...any) }, r pipeline.Report) {
	if sum := r.Settled() + r.Requeued + r.Returned; sum != r.Signals {
		t.Errorf("%d signals, but %d outcomes: %+v", r.Signals, sum, r)
	}
}
