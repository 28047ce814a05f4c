package search

// Fields are the full names of the fields that an index has a mapping for.
type Fields map[string]bool

// Without is a copy that lacks a field.
func (f Fields) Without(field string) Fields {
	rest := make(Fields, len(f))
	for name := range f {
		if name != field {
			rest[name] = true
		}
	}
	return rest
}
