package collection

import "holdfast/shared/value"

// Selection says which paths of a document are indexed.
type Selection struct {
	include, exclude [][]string // names from the root
}

// NewSelection is the selection of a definition or of a generation. A text that
// is no path selects nothing. A nil Selection is that of everything.
func NewSelection(include, exclude []string) *Selection {
	if len(include) == 0 && len(exclude) == 0 {
		return nil
	}
	return &Selection{include: names(include), exclude: names(exclude)}
}

func names(texts []string) [][]string {
	var all [][]string
	for _, text := range texts {
		if p, err := value.ParsePath(text); err == nil {
			all = append(all, p.Names())
		}
	}
	return all
}

// Indexed reports whether what stands at the path, given by its names, is
// indexed: nothing at it or above is excluded and, where paths are included, it
// stands at or below one, or on the way to one.
func (s *Selection) Indexed(path []string) bool {
	if s == nil {
		return true
	}
	for _, e := range s.exclude {
		if begins(path, e) {
			return false
		}
	}
	if len(s.include) == 0 {
		return true
	}
	for _, i := range s.include {
		if begins(path, i) || begins(i, path) {
			return true
		}
	}
	return false
}

// begins reports whether path stands at top or below it.
func begins(path, top []string) bool {
	if len(path) < len(top) {
		return false
	}
	for i, name := range top {
		if path[i] != name {
			return false
		}
	}
	return true
}
