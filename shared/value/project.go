package value

// Project keeps of a document only what the paths lead to. Paths may overlap;
// what is missing is simply absent.
//
// Arrays on the way stay arrays. Of their elements, objects stay with what the
// paths lead to in them, even if that is nothing; scalars and arrays, into
// which no name leads, are left out. Where only positions lead into an array,
// only the elements at those positions stay, in their order.
//
// The result has its own containers along the paths; whole values at the ends
// of paths are shared with data.
func Project(data map[string]any, paths []Path) map[string]any {
	root := &selection{}
	for _, p := range paths {
		root.add(p.segments)
	}
	if root.all {
		return data
	}
	return root.object(data)
}

// selection is a tree of what to keep.
type selection struct {
	all   bool                  // everything from here on
	below map[string]*selection // by the next step of the paths
	at    map[int]*selection    // those of below whose step is a position too
	names bool                  // below has a step that is a name only
}

func (s *selection) add(steps []Segment) {
	if len(steps) == 0 {
		s.all = true
		return
	}
	next := s.below[steps[0].Name]
	if next == nil {
		next = &selection{}
		s.put(steps[0].Name, steps[0].Index, next)
	}
	next.add(steps[1:])
}

func (s *selection) put(name string, index int, next *selection) {
	if s.below == nil {
		s.below = map[string]*selection{}
	}
	s.below[name] = next
	if index < 0 {
		s.names = true
		return
	}
	if s.at == nil {
		s.at = map[int]*selection{}
	}
	s.at[index] = next
}

// keep is what stays of v; false means that no path leads into it.
func (s *selection) keep(v any) (any, bool) {
	if s.all {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		return s.object(v), true
	case []any:
		return s.array(v), true
	}
	return nil, false
}

func (s *selection) object(v map[string]any) map[string]any {
	kept := make(map[string]any, min(len(v), len(s.below)))
	for name, next := range s.below {
		if member, ok := v[name]; ok {
			if part, ok := next.keep(member); ok {
				kept[name] = part
			}
		}
	}
	return kept
}

func (s *selection) array(v []any) []any {
	kept := []any{}
	for i, element := range v {
		if part, ok := s.element(i, element); ok {
			kept = append(kept, part)
		}
	}
	return kept
}

// element is what stays of the element at position i. In an array a number is
// a position, and in the objects there a name as well.
func (s *selection) element(i int, element any) (any, bool) {
	at := s.at[i]
	object, ok := element.(map[string]any)
	switch {
	case !ok && at == nil:
		return nil, false
	case !ok || at != nil && at.all:
		return at.keep(element)
	case at != nil:
		return s.union(at).object(object), true
	}
	kept := s.object(object)
	return kept, s.names || len(kept) > 0
}

// union is a selection of what either keeps.
func (s *selection) union(other *selection) *selection {
	u := &selection{all: s.all || other.all}
	for _, one := range []*selection{s, other} {
		for name, next := range one.below {
			if have := u.below[name]; have != nil {
				next = have.union(next)
			}
			u.put(name, position(name), next)
		}
	}
	return u
}
