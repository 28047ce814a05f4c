package search

import (
	"strings"

	"holdfast/shared/collection"
)

// Limits of an index.
const (
	maxFields       = 6000 // all fields and objects of the mapping; beyond it new paths go unindexed
	maxNestedFields = 100
	maxDepth        = 64 // above maxLevels, so that depth is never what an index refuses
	refreshInterval = "1s"
)

type object = map[string]any

// indexBody is the request that creates the generation's index.
//
// The codec stays the default one: best_compression took a third off the store
// of 20,000 small documents and made pages of 1,000 four times slower.
func indexBody(g collection.Generation, replicas int) object {
	return object{
		"settings": object{
			"index.number_of_shards":             1,
			"index.number_of_replicas":           replicas,
			"index.refresh_interval":             refreshInterval,
			"index.mapping.coerce":               false,
			"index.mapping.ignore_malformed":     false,
			"index.mapping.total_fields.limit":   maxFields,
			"index.mapping.nested_fields.limit":  maxNestedFields,
			"index.mapping.nested_objects.limit": 2 * maxElements,
			"index.mapping.depth.limit":          maxDepth,
		},
		"mappings": indexMapping(g),
	}
}

func indexMapping(g collection.Generation) object {
	return object{
		"dynamic":           "strict",
		"date_detection":    false,
		"numeric_detection": false,
		"dynamic_templates": leafTemplates(),
		"_meta":             object{metaKey: g},
		"properties":        systemFields(g),
	}
}

// metaKey is where an index keeps the generation that it was made for.
const metaKey = "holdfast"

// leafTemplates map a leaf by its name, whatever its first value looks like.
func leafTemplates() []object {
	template := func(leaf string, mapping object) object {
		return object{leaf[1:]: object{"match": leaf, "path_match": fieldTree + ".*", "mapping": mapping}}
	}
	return []object{
		template(leafString, object{"type": "keyword"}),
		template(leafNumber, object{"type": "double", "coerce": false}),
		template(leafDecimal, object{"type": "keyword"}),
		template(leafBool, object{"type": "boolean"}),
		template(leafDate, object{"type": "date", "format": "epoch_millis"}),
		// Words, found by this program and not by an analyzer, so that filters in
		// memory see the same ones.
		template(leafText, object{"type": "keyword", "doc_values": false}),
		template(leafShape, object{"type": "keyword", "doc_values": false}),
		// Sorted and grouped by, never searched: doc values are enough.
		template(leafKey, object{"type": "keyword", "index": false}),
	}
}

// systemFields are the only fields at the top level.
func systemFields(g collection.Generation) object {
	keyword := object{"type": "keyword"}
	whole := object{"type": "long", "coerce": false}
	return object{
		fieldID:         keyword,
		fieldCollection: keyword,
		fieldRoot:       keyword,
		fieldVersion:    whole,
		fieldCreatedAt:  whole,
		fieldUpdatedAt:  whole,
		fieldExpiresAt:  whole,
		fieldDeleted:    object{"type": "boolean"},
		fieldShape:      keyword,
		fieldPartial:    keyword,
		fieldSum:        keyword,
		// In _source only: no terms, so no limit on its length.
		fieldRaw:  object{"type": "keyword", "index": false, "doc_values": false},
		fieldTree: treeMapping(g),
	}
}

// treeMapping is dynamic, with the declared nested paths in place. What stands
// at one is also part of the document as a whole, or of the nested path around
// it, which is part of the document in turn; never of both, lest values be there
// twice.
func treeMapping(g collection.Generation) object {
	tree := object{"type": "object", "dynamic": true}
	nested := declaredPaths(g.Nested)
	for path := range nested {
		at := tree
		for name := range strings.SplitSeq(path, ".") {
			properties, ok := at["properties"].(object)
			if !ok {
				properties = object{}
				at["properties"] = properties
			}
			child, ok := properties[name].(object)
			if !ok {
				child = object{}
				properties[name] = child
			}
			at = child
		}
		at["type"] = "nested"
		into := "include_in_root"
		for above := parentPath(path); above != ""; above = parentPath(above) {
			if nested[above] {
				into = "include_in_parent"
			}
		}
		at[into] = true
	}
	return tree
}

// mappedLeaves adds the full names of the leaves in a mapping's properties.
func mappedLeaves(known Fields, path string, properties map[string]mappedField) {
	for name, field := range properties {
		full := path + name
		if len(field.Properties) == 0 && field.Type != "" && field.Type != "nested" {
			known[full] = true
			continue
		}
		mappedLeaves(known, full+".", field.Properties)
	}
}

type mappedField struct {
	Type       string                 `json:"type"`
	Properties map[string]mappedField `json:"properties"`
}

// mappingAnswer is what OpenSearch says about one index's mapping.
type mappingAnswer map[string]struct {
	Mappings struct {
		Properties map[string]mappedField `json:"properties"`
	} `json:"mappings"`
}
