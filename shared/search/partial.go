package search

import (
	"slices"
	"strings"
)

// maxPartial bounds the list of what a document's index form leaves out.
// Beyond it, entries are replaced by their parents, deepest first.
const maxPartial = 64

// boundPartial sorts the paths, removes those that another covers and shortens
// the list to what may be kept. The result covers all that paths covers.
func boundPartial(paths []string) []string { return boundPaths(paths, maxPartial) }

func boundPaths(paths []string, most int) []string {
	if len(paths) == 0 {
		return nil
	}
	paths = uncovered(paths)
	for len(paths) > most {
		deepest := 0
		for _, p := range paths {
			deepest = max(deepest, steps(p))
		}
		for i, p := range paths {
			if steps(p) == deepest {
				paths[i] = parentPath(p)
			}
		}
		paths = uncovered(paths)
	}
	return paths
}

// uncovered sorts the paths and drops repeated ones and those below another.
func uncovered(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	kept := make(map[string]bool, len(paths))
	for _, p := range paths {
		kept[p] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		for p != "" {
			if p = parentPath(p); kept[p] {
				return true
			}
		}
		return false
	})
}

// steps counts the names of a path; the whole document has none.
func steps(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, ".") + 1
}

// parentPath is the path without its last name.
func parentPath(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// covering are the entries of $partial that leave out something at the path:
// the path itself, every path above it and the whole document.
func covering(path string) []string {
	entries := []string{path}
	for path != "" {
		path = parentPath(path)
		entries = append(entries, path)
	}
	return entries
}
