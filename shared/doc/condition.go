package doc

import "slices"

// Condition is what a write demands of the document that it finds. The zero
// value demands nothing.
type Condition struct {
	Absent bool      // there is no live document (If-None-Match: *)
	Exists bool      // there is a live document (If-Match: *, or any list of versions)
	AnyOf  []Version // with Exists: its version is one of these; empty means any version
}

// Unconditional reports whether the condition demands nothing.
func (c Condition) Unconditional() bool { return !c.Absent && !c.Exists }

// Check compares the condition with what is there: version is that of the live
// document, or zero when there is none. A refusal is of kind VersionConflict
// with the members expected and actual.
func (c Condition) Check(version Version) error {
	switch {
	case c.Absent && version != 0:
		return Errorf(VersionConflict, "the document exists").With("expected", nil).With("actual", version)
	case c.Exists && version == 0:
		return Errorf(VersionConflict, "the document does not exist").With("expected", c.expected()).With("actual", nil)
	case c.Exists && len(c.AnyOf) > 0 && !slices.Contains(c.AnyOf, version):
		return Errorf(VersionConflict, "the document has another version").With("expected", c.expected()).With("actual", version)
	}
	return nil
}

// expected is one version, a list of them, or "*".
func (c Condition) expected() any {
	switch len(c.AnyOf) {
	case 0:
		return "*"
	case 1:
		return c.AnyOf[0]
	}
	return c.AnyOf
}
