package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// Search answers as the search engine does, by looking at everything.
func (x *IndexPort) Search(ctx context.Context, r search.Request) (result search.Result, err error) {
	after := 0
	if r.After != "" {
		text, cursorErr := readCursor("search", r.After)
		if after, err = strconv.Atoi(text); cursorErr != nil || err != nil {
			return result, doc.Errorf(doc.InvalidCursor, "this is not a cursor of this query")
		}
	}
	var docs []doc.Document
	var missing []collection.Generation
	callErr := x.call(ctx, "search", false, func() {
		docs, missing, err = x.w.Index.matching(r)
		x.searched = maps.Clone(x.w.Index.indexes)
	})
	if callErr != nil || err != nil {
		return result, cmp.Or(callErr, err)
	}
	slices.SortFunc(docs, func(a, b doc.Document) int {
		for _, key := range r.Sort {
			c := value.Compare(first(key, a), first(key, b))
			if key.Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	result.Missing = missing
	if r.Count {
		result.Count, result.CountExact = len(docs), true
	}
	end := min(after+r.Limit, len(docs))
	result.Documents = docs[min(after, end):end]
	if end < len(docs) && r.Limit > 0 {
		result.Next = writeCursor("search", strconv.Itoa(end))
	}
	return result, nil
}

func first(key search.SortKey, d doc.Document) any {
	if values := key.Path.Values(d.Data); len(values) > 0 {
		return values[0]
	}
	return nil
}

// matching are the documents that the request asks for, in no order.
func (x *Index) matching(r search.Request) (docs []doc.Document, missing []collection.Generation, err error) {
	now := r.Now
	if now.IsZero() {
		now = x.w.now()
	}
	seen := map[doc.ID]bool{}
	for _, from := range r.From {
		if from.Generation == nil {
			continue
		}
		i := x.of(*from.Generation)
		if i == nil {
			missing = append(missing, *from.Generation)
			continue
		}
		for _, id := range i.shownIDs(x.w.now()) {
			d := i.visible(id, x.w.now()).read()
			if d.Deleted || seen[id] || id.Collection() != from.Collection {
				continue
			}
			found, err := d.document()
			if err != nil {
				return nil, nil, err
			}
			if found.Expired(now) || r.Filter != nil && !filter.Match(r.Filter, &found) {
				continue
			}
			seen[id] = true
			docs = append(docs, found)
		}
	}
	return docs, missing, nil
}
