package search_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/search"
)

func TestWhatADefinitionLeavesOut(t *testing.T) {
	const data = `{"a":{"b":1,"c":[{"d":"x"},{"e":2}]},"f.g":true,"h":"` + "long" + `"}`
	for _, c := range []struct {
		include, exclude []string
		partial          []string
		tree             string
	}{
		{nil, []string{"a"}, []string{"a"}, `{"f~2Eg":{"$bool":true,"$key":"3t"},"h":{"$key":"2long","$str":"long"}}`},
		{nil, []string{"a.c[].d", "/f.g", "none"}, []string{"a.c.d", "f~2Eg"}, ``},
		{[]string{"h"}, nil, []string{"a", "f~2Eg"}, `{"h":{"$key":"2long","$str":"long"}}`},
		{[]string{"a.c.e", "h"}, nil, []string{"a.b", "a.c.d", "f~2Eg"}, ``},
		{[]string{"a", "h"}, []string{"a.c"}, []string{"a.c", "f~2Eg"}, ``},
		{[]string{"none"}, nil, []string{"a", "f~2Eg", "h"}, `null`},
	} {
		g := collection.First(collection.Definition{Name: "odd", Include: c.include, Exclude: c.exclude}, search.Projector)
		p := search.Project(document(t, "odd/1", data), g)
		if !slices.Equal(p.Partial, c.partial) {
			t.Errorf("include %q, exclude %q: partial %q, want %q", c.include, c.exclude, p.Partial, c.partial)
		}
		form := indexForm(t, p)
		tree, _ := json.Marshal(form["doc"])
		if c.tree != "" && string(tree) != c.tree {
			t.Errorf("include %q, exclude %q: tree %s", c.include, c.exclude, tree)
		}
		shape, _ := json.Marshal(form["$shape"])
		for _, path := range c.partial {
			if strings.Contains(string(tree), `"`+path[strings.LastIndexByte(path, '.')+1:]+`":`) || strings.Contains(string(shape), ":"+path+`"`) {
				t.Errorf("%s is left out, and there: %s %s", path, tree, shape)
			}
		}
	}
}

// Where some paths of many are included, the others are listed one by one: an
// entry for the whole document would have every filter look at it.
func TestManyPathsLeftOutAreListed(t *testing.T) {
	var members []string
	for i := range 900 {
		members = append(members, fmt.Sprintf(`"n%d":%d`, i, i))
	}
	g := collection.First(collection.Definition{Name: "odd", Include: []string{"n7"}}, search.Projector)
	p := search.Project(document(t, "odd/1", "{"+strings.Join(members, ",")+"}"), g)
	if len(p.Partial) != 899 || slices.Contains(p.Partial, "") || slices.Contains(p.Partial, "n7") {
		t.Errorf("%d entries", len(p.Partial))
	}
	for i := range 900 {
		members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	p = search.Project(document(t, "odd/1", "{"+strings.Join(members, ",")+"}"), g)
	if !slices.Equal(p.Partial, []string{""}) {
		t.Errorf("%d entries", len(p.Partial))
	}
}

// Filters and sorts stay exact whatever a definition leaves out of the index.
func TestSearchAgreesWithMatchOnPartsOfDocuments(t *testing.T) {
	fewChecks(t, 6)
	for name, definition := range map[string]collection.Definition{
		"exclude": {Name: "odd", Nested: []string{"a"}, Exclude: []string{"a.b", "b", "/a.b/c", "c.0"}},
		"include": {Name: "odd", Nested: []string{"c"}, Include: []string{"a.c", "c", "/"}},
	} {
		t.Run(name, func(t *testing.T) { agree(t, definition) })
	}
}
