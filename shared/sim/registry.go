package sim

import (
	"reflect"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Registry is the model of the table of the system's own records. Its methods
// are called with the world's lock held.
type Registry struct {
	w           *World
	collections map[doc.Collection]bool
	definitions map[doc.Collection]collection.Definition
	generations map[collection.Family]map[int]collection.Generation
	quarantine  map[doc.ID]doc.Quarantined
	lag         *store.LagMeasure
	sequences   map[string]int64
	leases      map[string]store.Lease
	proofs      map[proofKey]store.Proof
	jobs        map[string]store.JobRecord
	requests    []store.JobRequest
}

type proofKey struct {
	family collection.Family
	number int
}

func newRegistry(w *World) *Registry {
	return &Registry{
		w: w, collections: map[doc.Collection]bool{}, definitions: map[doc.Collection]collection.Definition{},
		generations: map[collection.Family]map[int]collection.Generation{}, quarantine: map[doc.ID]doc.Quarantined{},
		sequences: map[string]int64{}, leases: map[string]store.Lease{}, proofs: map[proofKey]store.Proof{}, jobs: map[string]store.JobRecord{},
	}
}

func (r *Registry) definition(c doc.Collection) collection.Definition {
	d := r.definitions[c]
	d.Name = c
	return d
}

func (r *Registry) putDefinition(d collection.Definition, expected int64) (collection.Definition, bool) {
	if current := r.definitions[d.Name]; current.Revision != expected || current.Amended != d.Amended {
		return d, false
	}
	d.Revision = expected + 1
	r.definitions[d.Name] = d
	return d, true
}

func (r *Registry) family(f collection.Family) []collection.Generation {
	var all []collection.Generation
	for _, n := range sortedKeys(r.generations[f]) {
		all = append(all, r.generations[f][n])
	}
	return all
}

// putGeneration is a compare-and-set on what stands under the number.
func (r *Registry) putGeneration(g collection.Generation, expected *collection.Generation) bool {
	stands, ok := r.generations[g.Family][g.Number]
	if ok != (expected != nil) || ok && !sameGeneration(stands, *expected) {
		return false
	}
	if r.generations[g.Family] == nil {
		r.generations[g.Family] = map[int]collection.Generation{}
	}
	r.generations[g.Family][g.Number] = g
	if ok && g.State == collection.Active && stands.State == collection.Building {
		r.w.begins(g)
	}
	return true
}

// sameGeneration compares as the stored text is compared: moments by value.
func sameGeneration(a, b collection.Generation) bool {
	if !a.Since.Equal(b.Since) {
		return false
	}
	a.Since, b.Since = time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

func (r *Registry) dropGeneration(g collection.Generation) bool {
	stands, ok := r.generations[g.Family][g.Number]
	if !ok {
		return true
	}
	if !sameGeneration(stands, g) {
		return false
	}
	delete(r.generations[g.Family], g.Number)
	return true
}

// recordQuarantine adds attempts to the note of the same version, replaces that
// of an older one and leaves that of a newer one.
func (r *Registry) recordQuarantine(q doc.Quarantined) {
	stands, ok := r.quarantine[q.ID]
	q.Attempts = max(q.Attempts, 1)
	switch {
	case ok && stands.Version > q.Version:
		return
	case ok && stands.Version == q.Version:
		q.Attempts += stands.Attempts
		q.Since = stands.Since
	}
	r.quarantine[q.ID] = q
}

func (r *Registry) clearQuarantine(id doc.ID, upTo doc.Version) {
	if q, ok := r.quarantine[id]; ok && q.Version <= upTo {
		delete(r.quarantine, id)
	}
}

func (r *Registry) countQuarantined(collections []doc.Collection) int {
	wanted := map[doc.Collection]bool{}
	for _, c := range collections {
		wanted[c] = true
	}
	n := 0
	for id := range r.quarantine {
		if wanted[id.Collection()] {
			n++
		}
	}
	return n
}
