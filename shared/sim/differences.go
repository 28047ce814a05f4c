package sim

import (
	"encoding/json"
	"fmt"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// differences compares the table with what searches see (invariant 2), and the
// quarantine with what the index really refuses (invariants 4 and 6). It is
// called with the lock held.
func (w *World) differences() []Violation {
	var wrong []Violation
	differ := func(invariant int, format string, args ...any) {
		wrong = append(wrong, Violation{Invariant: invariant, At: w.now(), What: fmt.Sprintf(format, args...)})
	}
	if w.repairs {
		w.unfinished(func(format string, args ...any) { differ(7, format, args...) })
	}
	now := w.now()
	for _, id := range sortedKeys(w.Table.items) {
		i := w.Table.items[id]
		if c := id.Collection(); w.repairs && !c.System() && !w.State.collections[c] {
			differ(7, "%s has documents and is not registered", c)
		}
		q, listed := w.State.quarantine[id]
		level := poisonOf(i)
		switch {
		case level == 0 && listed && w.repairs:
			differ(4, "%s is in quarantine at version %s and whole in the table at %s", id, short(q.Version), short(i.standing()))
		case level > 0 && !listed:
			differ(4, "%s is refused at version %s and not in quarantine", id, short(i.standing()))
		case level > 0 && (q.Version != i.standing() || q.Reason == "" || q.Partial != (level <= 3)):
			differ(4, "%s is refused at version %s, the quarantine says %+v", id, short(i.standing()), q)
		}
		p := w.reads(id.Collection())
		if p == nil {
			differ(2, "%s has no index", id)
			continue
		}
		if level == 4 { // nothing of it can be in the index
			continue
		}
		s := p.visible(id, now)
		if s == nil {
			if !i.deleted {
				differ(2, "%s stands at version %s and is not in the index", id, short(i.standing()))
			}
			continue
		}
		d := s.read()
		switch {
		case i.version == 0:
			differ(2, "%s has no version", id)
		case s.version != i.version || d.Version != i.version:
			differ(2, "%s stands at version %s, in the index at %s", id, short(i.version), short(s.version))
		case d.Deleted != i.deleted:
			differ(2, "%s: deleted is %v in the table, %v in the index", id, i.deleted, d.Deleted)
		case !i.deleted && d.Raw != string(value.Append(nil, i.data)):
			differ(2, "%s has at version %s the text %s in the table, %s in the index", id, short(i.version), value.Append(nil, i.data), d.Raw)
		}
	}
	for _, name := range sortedKeys(w.Index.indexes) {
		p := w.Index.indexes[name]
		for _, id := range p.shownIDs(now) {
			if w.reads(id.Collection()) != p || w.Table.items[id] != nil {
				continue
			}
			if d := p.visible(id, now).read(); !d.Deleted {
				differ(2, "%s is in the index at version %s and not in the table", id, short(d.Version))
			}
		}
	}
	return wrong
}

// poisonOf is the level of reduction from which on the index takes an item; 0:
// it takes the whole.
func poisonOf(i *item) int {
	if i.deleted || i.data["poison"] == nil {
		return 0
	}
	n, ok := i.data["poison"].(json.Number)
	if !ok {
		return 0
	}
	return int(n[0] - '0')
}

// reads is the index that queries of a collection read; nil: there is none.
func (w *World) reads(c doc.Collection) *physical {
	g, ok := collection.Read(w.State.family(w.State.definition(c).Reads()))
	if !ok {
		return nil
	}
	return w.Index.of(g)
}
