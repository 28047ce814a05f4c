package search

import (
	"maps"
	"slices"
)

// maxUnwanted bounds the list of what a definition leaves out of one document.
// It is longer than that of what does not fit: were the entries replaced by
// their parents, every filter would have to look at the document, and where only
// some paths are included the parent of all others is the document itself.
const maxUnwanted = 1000

// choose marks what the definition leaves out of the index. Each path is listed
// in $partial, so that filters on it are still exact, by looking at documents.
func (p *projector) choose(n *node, above []string) {
	if p.chosen == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		child := n.children[name]
		path := append(above[:len(above):len(above)], name)
		if !p.chosen.Indexed(path) {
			child.unwanted = true
			p.unwanted = append(p.unwanted, child.path)
			continue
		}
		p.choose(child, path)
	}
}

// allPartial lists what is left out, for whichever reason.
func (p *projector) allPartial() []string {
	partial := boundPartial(p.partial)
	if len(p.unwanted) == 0 {
		return partial
	}
	return uncovered(append(partial, boundPaths(p.unwanted, maxUnwanted)...))
}
