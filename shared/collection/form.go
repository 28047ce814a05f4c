package collection

import (
	"slices"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// Declared reports whether the collection has a definition, as clients see it.
func (d Definition) Declared() bool { return d.Revision > 0 && !d.Removed }

// SameIndex reports whether documents are indexed in the same form under both
// definitions of one collection. Where they are, one definition can take the
// other's place at any time; where they are not, the index has to be made anew.
func (d Definition) SameIndex(other Definition) bool {
	return d.Family() == other.Family() &&
		samePaths(d.Nested, other.Nested) && samePaths(d.Text, other.Text) &&
		samePaths(d.Include, other.Include) && samePaths(d.Exclude, other.Exclude)
}

// WithoutIndex is the definition that declares nothing about the index.
func (d Definition) WithoutIndex() Definition {
	return Definition{Name: d.Name, Revision: d.Revision, Removed: d.Removed}
}

// samePaths compares two lists as sets, whatever the notation of each path.
func samePaths(a, b []string) bool {
	return slices.Equal(canonicalPaths(a), canonicalPaths(b))
}

func canonicalPaths(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = text
		if p, err := value.ParsePath(text); err == nil {
			all[i] = p.String()
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Declares is what a client sees of the definition: the members of the object
// that ParseDefinition reads.
func (d Definition) Declares() map[string]any {
	object := map[string]any{}
	if d.Index != "" {
		object["index"] = string(d.Index)
	}
	list := func(into map[string]any, name string, paths []string) {
		if len(paths) > 0 {
			values := make([]any, len(paths))
			for i, p := range paths {
				values[i] = p
			}
			into[name] = values
		}
	}
	list(object, "nested", d.Nested)
	list(object, "text", d.Text)
	indexed := map[string]any{}
	list(indexed, "include", d.Include)
	list(indexed, "exclude", d.Exclude)
	if len(indexed) > 0 {
		object["indexed"] = indexed
	}
	return object
}

// ParseName checks the name of a collection that a client defines. The error is
// of kind InvalidID.
func ParseName(s string) (doc.Collection, error) {
	name, err := doc.ParseCollection(s)
	if err == nil && name[0] == doc.SystemMark {
		return "", doc.Errorf(doc.InvalidID, "collections whose name begins with $ are reserved for the system")
	}
	return name, err
}
