package collection

import (
	"fmt"
	"slices"
	"time"
)

// Form is what decides how documents are indexed. Two definitions of one form
// make the same index documents.
type Form struct {
	Index   IndexKind `json:"index,omitempty"`
	Nested  []string  `json:"nested,omitempty"`
	Text    []string  `json:"text,omitempty"`
	Include []string  `json:"include,omitempty"`
	Exclude []string  `json:"exclude,omitempty"`
}

// Form is the declared one.
func (d Definition) Form() Form {
	return Form{Index: d.Index, Nested: d.Nested, Text: d.Text, Include: d.Include, Exclude: d.Exclude}
}

// family tells where documents of this form are indexed: the shared index has
// no form of its own.
func (f Form) family(of Definition) Family {
	if f.Index == Own || f.needsOwn() {
		return Family(of.Name)
	}
	return SharedFamily
}

// needsOwn reports whether the form has something that the index shared with
// other collections cannot have.
func (f Form) needsOwn() bool {
	return len(f.Nested) > 0 || len(f.Text) > 0 || len(f.Include) > 0 || len(f.Exclude) > 0
}

// Same reports whether index documents are the same under both forms, wherever
// they are.
func (f Form) Same(other Form) bool {
	return samePaths(f.Nested, other.Nested) && samePaths(f.Text, other.Text) &&
		samePaths(f.Include, other.Include) && samePaths(f.Exclude, other.Exclude)
}

// Family tells where the collection's documents are indexed by what is declared.
func (d Definition) Family() Family { return d.Form().family(d) }

// Reads is the family that queries read: that of the former form, while the
// documents of the collection are on their way to the index of another family.
func (d Definition) Reads() Family {
	if d.Serving != nil && !d.Moved {
		return d.Serving.family(d)
	}
	return d.Family()
}

// Writes are the families that the collection's documents are written to: the
// one that queries read comes first, and while documents move to another one,
// or have just done so, that one too.
func (d Definition) Writes() []Family {
	families := []Family{d.Reads()}
	if d.Serving != nil {
		families = append(families, d.Family(), d.Serving.family(d))
	}
	var distinct []Family
	for _, f := range families {
		if !slices.Contains(distinct, f) {
			distinct = append(distinct, f)
		}
	}
	return distinct
}

// FormIn is the form of the collection's documents in one of its families.
func (d Definition) FormIn(f Family) Form {
	switch {
	case f == SharedFamily:
		return Form{}
	case d.Serving != nil && d.Family() != f && d.Serving.family(d) == f:
		return *d.Serving
	}
	return d.Form()
}

// Changed is the definition that takes the place of a current one when the
// collection has documents. Where it puts them into the index of another family,
// queries go on reading the one that they read until the other is complete.
func (d Definition) Changed(current Definition, now time.Time) Definition {
	d.Serving, d.Moved, d.Since, d.Amended = nil, false, now, current.Amended
	switch {
	case current.Serving != nil && current.Moved:
		// Everything is in the declared index already; the former one is about
		// to be given up. A return to it fills it anew.
		declared := current.Form()
		if d.Family() != current.Family() {
			d.Serving = &declared
		} else {
			d.Serving, d.Moved = current.Serving, true
		}
	case d.Family() != current.Reads():
		read := current.FormIn(current.Reads())
		d.Serving = &read
	}
	return d
}

// Generation is one physical index of a family with a frozen projection.
// Whatever changes an index document is a new generation, so that one version
// of a document has exactly one body per generation.
type Generation struct {
	Family    Family          `json:"family"`
	Number    int             `json:"number"`    // 1, 2, …
	Projector int             `json:"projector"` // the number of the projection code that fills it
	Revision  int64           `json:"revision"`  // the definition's revision that it was made from
	Nested    []string        `json:"nested,omitempty"`
	Text      []string        `json:"text,omitempty"`
	Include   []string        `json:"include,omitempty"`
	Exclude   []string        `json:"exclude,omitempty"`
	State     GenerationState `json:"state"`
	Since     time.Time       `json:"since,omitzero"` // when it got its state; zero: at the beginning
}

// GenerationState is where a generation stands in its life.
type GenerationState string

// The states of a generation. Of several active ones the last is read; those
// before it are still written for whoever has not heard of it yet.
const (
	Building GenerationState = "building" // written to, not read
	Active   GenerationState = "active"   // written to, and read if it is the last
	Retired  GenerationState = "retired"  // neither; its index is to be removed
	Removed  GenerationState = "removed"  // its index is gone; the record keeps its number from being used again
)

// Written reports whether documents are written to the generation.
func (g Generation) Written() bool { return g.State == Building || g.State == Active }

// Form is the form of the generation's documents.
func (g Generation) Form() Form {
	return Form{Nested: g.Nested, Text: g.Text, Include: g.Include, Exclude: g.Exclude}
}

// Next is the generation of a family that follows those that exist or existed.
// The first one is active from its beginning, because there is nothing before
// it that could be read; all others are built first.
func Next(d Definition, f Family, existing []Generation, projector int, now time.Time) Generation {
	form := d.FormIn(f)
	g := Generation{
		Family: f, Number: 1, Projector: projector,
		Nested: form.Nested, Text: form.Text, Include: form.Include, Exclude: form.Exclude, State: Active, Since: now,
	}
	if f != SharedFamily {
		g.Revision = d.Revision
	}
	for _, e := range existing {
		g.Number = max(g.Number, e.Number+1)
		if e.State == Active {
			g.State = Building
		}
	}
	return g
}

// First is the generation a family begins with.
func First(d Definition, projector int) Generation {
	return Next(d, d.Family(), nil, projector, time.Time{})
}

// Read is the generation that queries read, of all of a family's. There is none
// before the first document.
func Read(generations []Generation) (Generation, bool) {
	var read Generation
	for _, g := range generations {
		if g.State == Active && g.Number > read.Number {
			read = g
		}
	}
	return read, read.Number > 0
}

// IndexName is the physical name of the generation's index,
// <prefix>-<slug>-<hash>-<number>: lower case, unique for the family's exact
// name, recognisable to a person.
func (g Generation) IndexName(prefix string) string {
	return fmt.Sprintf("%s-%d", familyName(prefix, g.Family), g.Number)
}
