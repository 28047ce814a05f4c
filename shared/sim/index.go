package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

const (
	indexPrefix = "sim"
	// gcDeletes is how long an index remembers the version of what was deleted
	// from it.
	gcDeletes = 60 * time.Second
	// refreshEvery is how often an index shows searches what was written.
	refreshEvery = time.Second
)

// Index is the model of the search engine: indexes in which the newest version
// of a document wins, that forget deletes, and that show searches what was
// written only after a refresh. Its methods are called with the world's lock
// held.
type Index struct {
	w       *World
	indexes map[string]*physical
	aliases map[collection.Family]map[string]bool // whose filter is always there
	made    int
	lost    map[string]time.Time // when an index of that name was lost last
}

// physical is one index.
type physical struct {
	made      collection.Generation
	entries   map[doc.ID]*entry
	deletes   map[doc.ID]deleted
	seen      map[doc.ID]doc.Version // the highest version there ever was
	begun     time.Time
	refreshed time.Time // the last refresh that somebody asked for
	number    int       // tells it from others of its name
	spoiled   bool      // its mapping is not the one it was made with
}

// entry is what is under an id, and what searches see of it.
type entry struct {
	shown
	at  time.Time
	old *shown // what was there at the last refresh before at; nil: nothing
}

// shown is one version of an index document.
type shown struct {
	version doc.Version
	source  []byte
	parsed  *indexed // source, once somebody has read it
}

// deleted is what is left for a while of what was taken out.
type deleted struct {
	version doc.Version
	at      time.Time
	old     *shown
}

func newIndex(w *World) *Index {
	return &Index{w: w, indexes: map[string]*physical{}, aliases: map[collection.Family]map[string]bool{}, lost: map[string]time.Time{}}
}

func (x *Index) of(g collection.Generation) *physical { return x.indexes[g.IndexName(indexPrefix)] }

// ensure creates the generation's index; one that was made for another is an
// error.
func (x *Index) ensure(g collection.Generation) error {
	name := g.IndexName(indexPrefix)
	made, ok := x.indexes[name]
	if !ok {
		x.made++
		x.indexes[name] = &physical{
			number: x.made, made: g, entries: map[doc.ID]*entry{}, deletes: map[doc.ID]deleted{}, seen: map[doc.ID]doc.Version{}, begun: x.w.now(),
		}
	} else if !sameIndex(made.made, g) {
		return fmt.Errorf("index %s was made for another generation", name)
	}
	if g.State == collection.Active && len(x.aliases[g.Family]) == 0 {
		x.aliases[g.Family] = map[string]bool{name: true}
	}
	return nil
}

// uuid tells it from others of its name.
func (i *physical) uuid() string { return strconv.Itoa(i.number) }

func sameIndex(a, b collection.Generation) bool {
	return a.Family == b.Family && a.Number == b.Number && a.Projector == b.Projector && a.Revision == b.Revision
}

// lastRefresh is the moment up to which searches see what was written.
func (i *physical) lastRefresh(now time.Time) time.Time {
	tick := i.begun.Add(now.Sub(i.begun).Truncate(refreshEvery))
	if i.refreshed.After(tick) {
		return i.refreshed
	}
	return tick
}

// visible is what searches see under an id; nil: nothing.
func (i *physical) visible(id doc.ID, now time.Time) *shown {
	last := i.lastRefresh(now)
	if e := i.entries[id]; e != nil {
		if e.at.After(last) {
			return e.old
		}
		return &e.shown
	}
	if d, ok := i.deletes[id]; ok && d.at.After(last) {
		return d.old
	}
	return nil
}

// write carries out one operation.
func (x *Index) write(op search.Operation) search.Outcome {
	i := x.of(op.Generation)
	if i == nil {
		return search.Outcome{Kind: search.Environment, Status: 404, Reason: "the index is missing", IndexMissing: true}
	}
	now := x.w.now()
	if i.floor(op.ID, now) > op.Version {
		return search.Outcome{Kind: search.Stale, Status: 409}
	}
	if reason, field := refusal(op.Source); reason != "" {
		return search.Outcome{Kind: search.Refused, Status: 400, Reason: reason, Field: field}
	}
	i.put(x.w, op.ID, op.Version, op.Source, now)
	return search.Outcome{Kind: search.Applied, Status: 200}
}

// put writes whatever the version; the caller has compared it.
func (i *physical) put(w *World, id doc.ID, v doc.Version, source []byte, now time.Time) {
	// In the index of a family that its collection has left nobody looks for it,
	// and before anybody does again, it is compared.
	belongs := slices.Contains(w.State.definition(id.Collection()).Writes(), i.made.Family)
	if i.seen[id] > v && belongs {
		w.violate(3, "%s went from version %s to %s in index %s-%d", id, short(i.seen[id]), short(v), i.made.Family, i.made.Number)
	}
	i.seen[id] = max(i.seen[id], v)
	old := i.visible(id, now)
	delete(i.deletes, id)
	i.entries[id] = &entry{shown: shown{version: v, source: source}, at: now, old: old}
}

// floor is the version below which a write is stale.
func (i *physical) floor(id doc.ID, now time.Time) doc.Version {
	if e := i.entries[id]; e != nil {
		return e.version
	}
	d, ok := i.deletes[id]
	if ok && now.Sub(d.at) > gcDeletes {
		delete(i.deletes, id)
		return 0
	}
	return d.version
}

// erase takes an entry out unless it is newer.
func (x *Index) erase(g collection.Generation, s doc.Signal) search.Outcome {
	i := x.of(g)
	if i == nil {
		return search.Outcome{Kind: search.Environment, Status: 404, Reason: "the index is missing", IndexMissing: true}
	}
	now := x.w.now()
	if i.floor(s.ID, now) > s.Version {
		return search.Outcome{Kind: search.Stale, Status: 409}
	}
	old := i.visible(s.ID, now)
	i.seen[s.ID] = max(i.seen[s.ID], s.Version)
	delete(i.entries, s.ID)
	i.deletes[s.ID] = deleted{version: s.Version, at: now, old: old}
	return search.Outcome{Kind: search.Applied, Status: 200}
}

// restart makes every index forget what was deleted from it.
func (x *Index) restart() {
	now := x.w.now()
	for _, i := range x.indexes {
		clear(i.deletes)
		i.refreshed = now
	}
}

// lose removes an index with everything in it, and its place in the alias.
func (x *Index) lose(name string) {
	x.lost[name] = x.w.now()
	delete(x.indexes, name)
	for f, names := range x.aliases {
		if delete(names, name); len(names) == 0 {
			delete(x.aliases, f)
		}
	}
}

// swap moves the family's alias in one step, from nowhere but where it may come
// from.
func (x *Index) swap(to collection.Generation, from []collection.Generation) error {
	name := to.IndexName(indexPrefix)
	if x.indexes[name] == nil {
		return fmt.Errorf("alias of %s: index %s is missing", to.Family, name)
	}
	for _, holder := range sortedKeys(x.aliases[to.Family]) {
		known := slices.ContainsFunc(from, func(g collection.Generation) bool { return g.IndexName(indexPrefix) == holder })
		if holder != name && !known {
			return fmt.Errorf("alias of %s: it leads to %s: %w", to.Family, holder, search.ErrNotSwapped)
		}
	}
	x.aliases[to.Family] = map[string]bool{name: true}
	return nil
}

var (
	poisonMark = []byte(`poison\":`)
	systemMark = []byte(`{"$id":`)
)

// refusal is why an index refuses a source: a document whose member poison is a
// number n is refused at all levels of reduction below n, and what is no index
// document at all is refused as a strict mapping does.
func refusal(source []byte) (reason, field string) {
	if !bytes.HasPrefix(source, systemMark) {
		return strictly(source)
	}
	at := bytes.Index(source, poisonMark)
	if at < 0 {
		return "", ""
	}
	level := int(source[at+len(poisonMark)] - '0')
	if int(levelOf(source)) < level {
		return "illegal_argument_exception: a value is too long for the index", "doc.poison.$num"
	}
	return "", ""
}

// levelOf tells the levels of reduction apart by what is left.
func levelOf(source []byte) search.Reduction {
	var s struct {
		Partial []string        `json:"$partial"`
		Shape   json.RawMessage `json:"$shape"`
	}
	switch err := json.Unmarshal(source, &s); {
	case err != nil, s.Shape == nil:
		return search.EnvelopeOnly
	case slices.Contains(s.Partial, ""):
		return search.WithoutTree
	case len(s.Partial) > 0:
		return search.KnownFields
	}
	return search.Full
}

// strictly refuses what a strict mapping refuses.
func strictly(source []byte) (reason, field string) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(source, &members); err != nil {
		return "mapper_parsing_exception", ""
	}
	for name, v := range members {
		if name == "doc" {
			continue
		}
		if len(name) == 0 || name[0] != '$' {
			return "strict_dynamic_mapping_exception", name
		}
		if name == "$version" && bytes.HasPrefix(v, []byte(`"`)) {
			return "mapper_parsing_exception", name
		}
	}
	return "", ""
}
