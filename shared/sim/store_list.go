package sim

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// A cursor is the position as text and a check of what it belongs to.
func writeCursor(belongs, position string) string {
	return hex.EncodeToString(fmt.Appendf(nil, "%08x%s", crc32.ChecksumIEEE([]byte(belongs+"\x00"+position)), position))
}

func readCursor(belongs, cursor string) (string, error) {
	b, err := hex.DecodeString(cursor)
	if err != nil || len(b) < 8 || string(b[:8]) != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(belongs+"\x00"+string(b[8:])))) {
		return "", doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
	}
	return string(b[8:]), nil
}

// Prefix reads a page of the live documents under a prefix, strongly.
func (s *Store) Prefix(ctx context.Context, q store.PrefixQuery) (page store.PrefixPage, err error) {
	after := ""
	if q.After != "" {
		if after, err = readCursor(q.Prefix.String(), q.After); err != nil {
			return page, err
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 25
	}
	now := s.clk.Now()
	err = s.again(ctx, "prefix", func() {
		page = store.PrefixPage{}
		var ids []doc.ID
		for id, i := range s.w.Table.items {
			if q.Prefix.Contains(id) && id.Rest() > after && i.live(now) != 0 && (q.Keep == nil || q.Keep(strings.TrimPrefix(string(id), q.Prefix.String()))) {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(a, b doc.ID) int { return strings.Compare(a.Rest(), b.Rest()) })
		size := 0
		for _, id := range ids {
			bytes := textBytes(s.w.Table.items[id])
			if len(page.Documents) == limit || q.MaxBytes > 0 && size > 0 && size+bytes > q.MaxBytes {
				last := page.Documents[len(page.Documents)-1].ID
				page.Next = writeCursor(q.Prefix.String(), last.Rest())
				return
			}
			page.Documents, size = append(page.Documents, s.w.Table.items[id].document()), size+bytes
		}
	})
	return page, err
}

// Create writes a document under the next free number.
func (s *Store) Create(ctx context.Context, parent string, data map[string]any) (doc.Written, error) {
	for {
		n, err := s.take(ctx, parent)
		if err != nil {
			return doc.Written{}, err
		}
		id, err := doc.ParseID(parent + "/" + strconv.FormatInt(n, 10))
		if err != nil {
			return doc.Written{}, err
		}
		w, err := s.put(ctx, id, data, doc.Condition{}, true)
		if doc.KindOf(err) != doc.VersionConflict {
			return w, err
		}
	}
}

// take gives the next number of a parent.
func (s *Store) take(ctx context.Context, parent string) (n int64, err error) {
	err = s.state.call(ctx, "number", true, func() {
		s.w.State.sequences[parent]++
		n = s.w.State.sequences[parent]
	})
	return n, err
}

// changesPosition is where a reader of the feed stands.
type changesPosition struct {
	Version doc.Version
	ID      doc.ID
}

// Changes reads a page of the change feed.
func (s *Store) Changes(ctx context.Context, q store.ChangesQuery) (page store.ChangesPage, err error) {
	var from changesPosition
	if q.After != "" {
		text, err := readCursor("changes", q.After)
		if err == nil && json.Unmarshal([]byte(text), &from) != nil {
			err = doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
		}
		if err != nil {
			return page, err
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	page.SafeThrough = s.clk.Now().Add(-s.w.margin)
	var all []doc.Change
	for bucket := range s.w.Table.buckets {
		err = s.again(ctx, "changes", func() {
			for _, c := range s.w.Table.Feed.page(bucket, from.Version, from.ID, 0) {
				if q.Collection == "" || c.Collection == q.Collection {
					all = append(all, c)
				}
			}
		})
		if err != nil {
			return page, err
		}
	}
	slices.SortFunc(all, compareChanges)
	page.Changes = all[:min(limit, len(all))]
	if n := len(page.Changes); n > 0 {
		from = changesPosition{page.Changes[n-1].Version, page.Changes[n-1].ID}
	}
	text, err := json.Marshal(from)
	if err != nil {
		return page, fmt.Errorf("write a cursor: %w", err)
	}
	page.Next = writeCursor("changes", string(text))
	return page, nil
}

// foreignPut writes an item as another tool does: without a version.
func (t *Table) foreignPut(p *Process, id doc.ID, data map[string]any) {
	t.set(p, id, &item{id: id, bucket: -1, data: data}, stranger)
}

// foreignEdit changes the data of an item and leaves the rest as it is.
func (t *Table) foreignEdit(p *Process, id doc.ID, data map[string]any) bool {
	was := t.items[id]
	if was == nil || was.deleted {
		return false
	}
	now := *was
	now.data = data
	t.set(p, id, &now, stranger)
	return true
}

// foreignRemove removes an item.
func (t *Table) foreignRemove(p *Process, id doc.ID) bool {
	if t.items[id] == nil {
		return false
	}
	t.set(p, id, nil, stranger)
	return true
}
