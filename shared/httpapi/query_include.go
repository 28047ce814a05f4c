package httpapi

import (
	"context"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// Loader reads documents by their ids, strongly. Errors that a client is told
// about are of type *doc.Error.
type Loader interface {
	LoadMany(ctx context.Context, ids []doc.ID, maxBytes int) (store.LoadResult, error)
}

// included are the documents that those of a page refer to. How many fit
// decides how long the page is: it ends before the first document that would
// come without what it refers to. Only what a single document refers to may
// itself be too much; the answer then names the rest.
type included struct {
	loader Loader
	wanted [][]doc.ID // by the page's documents: what each refers to
	loaded map[doc.ID]reference
}

// reference is a member of the answer's object included.
type reference struct {
	text   []byte
	fits   size
	unread bool // too much for any answer together with what came before it, or not to be had now
}

func newIncluded(loader Loader, paths []value.Path, docs []doc.Document) *included {
	in := &included{loader: loader, wanted: make([][]doc.ID, len(docs)), loaded: map[doc.ID]reference{}}
	for i, d := range docs {
		in.wanted[i] = references(d, paths)
	}
	return in
}

// of are the distinct ids that the first n documents refer to, without their
// own.
func (in *included) of(docs []doc.Document, n int) []doc.ID {
	seen := make(map[doc.ID]bool, n)
	for _, d := range docs[:n] {
		seen[d.ID] = true
	}
	var ids []doc.ID
	for _, wanted := range in.wanted[:n] {
		for _, id := range wanted {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// load reads those of the ids that are not loaded yet.
func (in *included) load(ctx context.Context, ids []doc.ID) error {
	var missing []doc.ID
	for _, id := range ids {
		if _, ok := in.loaded[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	result, err := in.loader.LoadMany(ctx, missing, answerBytes)
	if err != nil {
		return err
	}
	for _, id := range result.Remaining {
		in.loaded[id] = reference{unread: true}
	}
	for _, id := range missing {
		if in.loaded[id].unread {
			continue
		}
		text := append(appendText(nil, string(id)), ':')
		if found, exists := result.Documents[id]; exists {
			text = appendEnvelope(text, found)
		} else {
			text = append(text, "null"...)
		}
		in.loaded[id] = reference{text: text, fits: sizeOf(text).plus(size{1, 1})} // with its comma
	}
	return nil
}

// fit says how many of the documents, whose texts have these sizes, fit into
// the budget together with what they refer to, and the ids of that.
func (in *included) fit(ctx context.Context, docs []doc.Document, sizes []size, left budget) (n int, ids []doc.ID, err error) {
	for n = len(docs); ; n-- {
		ids = in.of(docs, n)
		if len(ids) > mostIDs {
			return 0, nil, tooManyIncluded(len(ids))
		}
		if err := in.load(ctx, ids); err != nil {
			return 0, nil, err
		}
		if n <= 1 || in.allFit(sizes[:n], ids, left) {
			return n, ids, nil
		}
	}
}

func (in *included) allFit(sizes []size, ids []doc.ID, left budget) bool {
	var all size
	for _, s := range sizes {
		all = all.plus(s)
	}
	for _, id := range ids {
		r := in.loaded[id]
		if r.unread {
			return false
		}
		all = all.plus(r.fits)
	}
	return left.has(all)
}

// append writes the member included, and remaining for what does not fit.
func (in *included) append(dst []byte, ids []doc.ID, left budget) []byte {
	var remaining []doc.ID
	names := 0
	for _, id := range ids {
		names += 4*len(id) + 8
	}
	left.answer -= names
	left.payload -= names
	dst = append(dst, `,"included":{`...)
	first := true
	for _, id := range ids {
		r := in.loaded[id]
		if r.unread || !left.take(r.text) {
			remaining = append(remaining, id)
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, r.text...)
	}
	dst = append(dst, '}')
	if len(remaining) > 0 {
		dst = appendRemaining(dst, remaining)
	}
	return dst
}

// references are the ids at the paths of a document, in their order. Values
// that are no ids are passed over.
func references(d doc.Document, paths []value.Path) []doc.ID {
	var ids []doc.ID
	add := func(v any) {
		if text, ok := v.(string); ok {
			if id, err := doc.ParseID(text); err == nil {
				ids = append(ids, id)
			}
		}
	}
	for _, path := range paths {
		for _, v := range path.Values(d.Data) {
			list, ok := v.([]any) // a list of ids at the path itself
			if !ok {
				add(v)
			}
			for _, v := range list {
				add(v)
			}
		}
	}
	return ids
}

// tooManyIncluded refuses what refers to more documents than one load reads.
func tooManyIncluded(actual int) error {
	return at(doc.Errorf(doc.TooMany, "the documents refer to more than %d others at these paths", mostIDs).
		With("limit", mostIDs).With("actual", actual), "/include")
}

// appendRemaining names the documents that did not fit the answer, to be asked
// for again.
func appendRemaining(dst []byte, ids []doc.ID) []byte {
	dst = append(dst, `,"remaining":[`...)
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, string(id))
	}
	return append(dst, ']')
}
