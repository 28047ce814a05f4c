package search

import (
	"encoding/json"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// SortKey is one key of a sort: a path in the document or, where Pseudo is not
// empty, a pseudo-field.
type SortKey struct {
	Path   value.Path
	Pseudo string
	Desc   bool
}

func (k SortKey) field() filter.Field { return filter.Field{Path: k.Path, Pseudo: k.Pseudo} }

// orderBy is one key in the index's terms.
type orderBy struct {
	key   SortKey
	field string // in the index
	desc  bool
}

// orderOf are the keys of a sort, ended by the id, so that no two documents
// stand at one position.
func orderOf(keys []SortKey) []orderBy {
	order := make([]orderBy, 0, len(keys)+1)
	for _, k := range keys {
		if k.Pseudo != "" {
			order = append(order, orderBy{key: k, field: k.Pseudo, desc: k.Desc})
			if k.Pseudo == filter.ID {
				return order // nothing after it can matter
			}
			continue
		}
		order = append(order, orderBy{key: k, field: leafField(fieldPath(k.Path.Segments()), leafKey), desc: k.Desc})
	}
	return append(order, orderBy{key: SortKey{Pseudo: filter.ID}, field: fieldID})
}

// sortDSL is the order as OpenSearch takes it.
func sortDSL(order []orderBy) []object {
	sorts := make([]object, len(order))
	for i, by := range order {
		how := object{"order": "asc"}
		if by.desc {
			how["order"] = "desc"
		}
		if by.key.Pseudo == "" {
			// Missing stands with null, whichever way the sort goes.
			how["missing"], how["unmapped_type"], how["mode"] = nullKey, "keyword", "min"
			if by.desc {
				how["mode"] = "max"
			}
		}
		sorts[i] = object{by.field: how}
	}
	return sorts
}

// positionOf is where a document stands by its content, which is where the
// index puts it if it knows all of its keys in full.
func positionOf(d doc.Document, order []orderBy) position {
	p := make(position, len(order))
	for i, by := range order {
		switch by.key.Pseudo {
		case filter.ID:
			p[i] = string(d.ID)
		case filter.Root:
			p[i] = d.ID.Root()
		case filter.Version:
			p[i] = json.Number(d.Version.String())
		case filter.CreatedAt:
			p[i] = json.Number(strconv.FormatInt(d.CreatedAt.UnixMicro(), 10))
		case filter.UpdatedAt:
			p[i] = json.Number(strconv.FormatInt(d.UpdatedAt.UnixMicro(), 10))
		default:
			p[i] = wholeKey(by.key.Path.SortKey(d.Data, by.desc))
		}
	}
	return p
}

// misplaced finds the documents that the index may put elsewhere than their
// content does: their key was left out of the index, an array stands where the
// path has a number, or arrays inside arrays stand on the way.
func misplaced(order []orderBy) query {
	var parts []query
	for _, by := range order {
		if by.key.Pseudo != "" {
			continue
		}
		segments := by.key.Path.Segments()
		var shapes []string
		for i, s := range segments {
			if i == 0 {
				continue
			}
			above := fieldPath(segments[:i])
			shapes = append(shapes, shapeTerm(shapeNest, above))
			if s.Index >= 0 {
				shapes = append(shapes, shapeTerm(shapeArray, above))
			}
		}
		left := allOf(terms(fieldPartial, covering(fieldPath(segments))), not(present(by.field)))
		parts = append(parts, left, terms(fieldShape, shapes))
	}
	return anyOf(parts...)
}
