package sim

import (
	"hash/fnv"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Table is the model of the table of documents: conditional writes of single
// items, time to live, the stream, and the index behind the change feed. Its
// methods are called with the world's lock held.
type Table struct {
	w       *World
	items   map[doc.ID]*item
	history map[doc.ID][]state
	buckets int
	nonces  int

	reapDelay time.Duration // how long after its end an item is still there

	Stream *Stream
	Feed   *Feed
}

// item is one item. One that is in the table is never changed, only replaced.
type item struct {
	id         doc.ID
	version    doc.Version // 0: none
	nonce      string
	collection string
	bucket     int // -1: none
	created    time.Time
	updated    time.Time
	expires    time.Time
	deleted    bool
	data       map[string]any
	ttl        time.Time
	adopted    bool // has its content from a state before
}

// state is what an id stood at from a moment on. The zero item is that of
// nothing.
type state struct {
	at      time.Time
	item    *item     // nil: no item
	foreign bool      // not written by this system
	reaped  bool      // removed by time to live
	wild    bool      // by a clock that was further off than anybody allows for
	shown   time.Time // when the feed shows it
}

// unversioned is the version as which an item without one is read.
const unversioned doc.Version = 1

func newTable(w *World) *Table {
	t := &Table{w: w, items: map[doc.ID]*item{}, history: map[doc.ID][]state{}, buckets: 3, reapDelay: 10 * time.Hour}
	t.Stream = &Stream{table: t, bells: [shards]*bell{newBell(), newBell()}}
	t.Feed = newFeed(t)
	return t
}

func (t *Table) nonce() string {
	t.nonces++
	return "n" + doc.Version(t.nonces).String()
}

func bucketOf(id doc.ID, buckets int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum64() % uint64(buckets))
}

// standing is the item's version as a condition sees it.
func (i *item) standing() doc.Version {
	switch {
	case i == nil:
		return 0
	case i.version == 0:
		return unversioned
	}
	return i.version
}

// live is the version of the live document; 0 where there is none.
func (i *item) live(now time.Time) doc.Version {
	if i == nil || i.deleted || i.expired(now) {
		return 0
	}
	return i.standing()
}

func (i *item) expired(now time.Time) bool {
	return !i.expires.IsZero() && !now.Before(i.expires)
}

// document is the item as the store decodes it.
func (i *item) document() doc.Document {
	d := doc.Document{
		ID: i.id, Version: i.standing(), CreatedAt: i.created, UpdatedAt: i.updated, ExpiresAt: i.expires, Deleted: i.deleted,
	}
	if !d.Deleted {
		if d.Data = i.data; d.Data == nil {
			d.Data = map[string]any{}
		}
	}
	return d
}

func (i *item) image() *image {
	if i == nil {
		return nil
	}
	return &image{version: i.version, collection: i.collection, nonce: i.nonce, deleted: i.deleted, expires: i.expires}
}

func (i *item) seen() store.Seen {
	if i == nil {
		return store.Seen{}
	}
	return store.Seen{Version: i.version, Nonce: i.nonce}
}

// set replaces what stands under an id; nil removes it. It is the one place
// where the table changes.
func (t *Table) set(p *Process, id doc.ID, now *item, by writer) {
	was := t.items[id]
	if now == nil {
		delete(t.items, id)
	} else {
		t.items[id] = now
	}
	at := t.w.now()
	s := state{at: at, item: now, foreign: by == stranger, reaped: by == timeToLive}
	if now != nil && by == ours {
		off := now.version.Time().Sub(at).Abs()
		s.wild = off > clockError && (was == nil || now.version > was.standing()+1)
		if now.version <= was.standing() {
			t.w.violate(3, "%s went from version %s to %s in the table", id, short(was.standing()), short(now.version))
		}
	}
	t.Stream.append(p, was, now, by == timeToLive)
	s.shown = t.Feed.change(p, was, now)
	t.history[id] = append(t.history[id], s)
}

// writer is who changes the table.
type writer int

const (
	ours writer = iota
	stranger
	timeToLive
)

// clockError is how far a corrected clock may be off when a version is chosen.
const clockError = 2 * time.Second

// reap removes what time to live has given up, as DynamoDB does some time later.
func (t *Table) reap() {
	now := t.w.now()
	for _, id := range sortedKeys(t.items) {
		i := t.items[id]
		if !i.ttl.IsZero() && i.ttl.Add(t.reapDelay).Before(now) {
			t.set(nil, id, nil, timeToLive)
		}
	}
}
