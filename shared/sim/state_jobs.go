package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// leaseSkew is how long after its end a lease is left alone.
const leaseSkew = 2 * time.Second

// retry repeats a call whose repetition does no harm, as the store does.
func (s *State) retry(ctx context.Context, kind string, mutates bool, apply func()) error {
	for n := 0; ; n++ {
		v := s.w.dated(ctx, s.p, s.clk, StateEngine, kind, mutates, apply)
		if v == told {
			return nil
		}
		if n >= 2 || s.p == nil || s.p.dead || ctx.Err() != nil {
			return problem(kind, v)
		}
		s.p.sleep(20 * time.Millisecond << n)
	}
}

// AcquireLease takes the lease of a name, or answers false when somebody has it.
func (s *State) AcquireLease(ctx context.Context, name string, life time.Duration) (l store.Lease, ok bool, err error) {
	now := s.clk.Now()
	s.w.mu.Lock()
	owner := s.w.Table.nonce()
	s.w.mu.Unlock()
	err = s.retry(ctx, "acquire", true, func() {
		stands := s.w.State.leases[name]
		switch {
		case stands.Owner == owner: // an answer was lost
			l, ok = stands, true
		case stands.Owner == "" || !stands.Until.After(now.Add(-leaseSkew)):
			l = store.Lease{Name: name, Token: stands.Token + 1, Owner: owner, Until: now.Add(life)}
			s.w.State.leases[name], ok = l, true
		default:
			ok = false
		}
	})
	return l, ok && err == nil, err
}

// RenewLease makes a lease last longer, if it is still the holder's.
func (s *State) RenewLease(ctx context.Context, l store.Lease, life time.Duration) (store.Lease, bool, error) {
	until := s.clk.Now().Add(life)
	ok := false
	err := s.retry(ctx, "renew", true, func() {
		stands := s.w.State.leases[l.Name]
		if ok = stands.Owner == l.Owner && stands.Token == l.Token; ok && until.After(stands.Until) {
			stands.Until = until
			s.w.State.leases[l.Name] = stands
		}
		l = stands
	})
	return l, ok && err == nil, err
}

// ReleaseLease gives a lease back.
func (s *State) ReleaseLease(ctx context.Context, l store.Lease) error {
	return s.retry(ctx, "release", true, func() {
		if stands := s.w.State.leases[l.Name]; stands.Owner == l.Owner && stands.Token == l.Token {
			s.w.State.leases[l.Name] = store.Lease{Name: l.Name, Token: l.Token}
		}
	})
}

// Proofs are those of all generations.
func (s *State) Proofs(ctx context.Context) (all []store.Proof, err error) {
	err = s.call(ctx, "proofs", false, func() {
		all = nil
		for _, p := range s.w.State.proofs {
			all = append(all, p)
		}
	})
	slices.SortFunc(all, func(a, b store.Proof) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Generation, b.Generation))
	})
	return all, err
}

// PutProof replaces a proof, unless one of a higher fence stands there.
func (s *State) PutProof(ctx context.Context, p store.Proof) (ok bool, err error) {
	k := proofKey{p.Family, p.Generation}
	err = s.call(ctx, "put proof", true, func() {
		if ok = s.w.State.proofs[k].Fence <= p.Fence; ok {
			s.w.State.proofs[k] = p
			s.w.proven(p)
		}
	})
	return ok, err
}

// DropProof takes a proof back, by the same rule.
func (s *State) DropProof(ctx context.Context, f collection.Family, generation int, fence int64) (ok bool, err error) {
	k := proofKey{f, generation}
	err = s.call(ctx, "drop proof", true, func() {
		if ok = s.w.State.proofs[k].Fence <= fence; ok {
			s.w.State.proofs[k] = store.Proof{Family: f, Generation: generation, Fence: fence}
		}
	})
	return ok, err
}

// Job is the record of a job.
func (s *State) Job(ctx context.Context, name string) (r store.JobRecord, ok bool, err error) {
	err = s.call(ctx, "job", false, func() { r, ok = s.w.State.jobs[name] })
	return r, ok, err
}

// PutJob replaces the record of a job, unless one of a higher fence stands there.
func (s *State) PutJob(ctx context.Context, r store.JobRecord) (ok bool, err error) {
	r.Body = slices.Clone(r.Body)
	if len(r.Body) > store.MaxJobBody || !json.Valid(r.Body) {
		return false, doc.Errorf(doc.DocumentTooLarge, "the record of a job has at most %d bytes", store.MaxJobBody)
	}
	err = s.call(ctx, "put job", true, func() {
		if ok = s.w.State.jobs[r.Name].Fence <= r.Fence; ok {
			s.w.State.jobs[r.Name] = r
		}
	})
	return ok, err
}

// JobRequests are the requests for a job that wait.
func (s *State) JobRequests(ctx context.Context, name string) (all []store.JobRequest, err error) {
	err = s.call(ctx, "requests", false, func() {
		all = nil
		for _, r := range s.w.State.requests {
			if r.Name == name {
				all = append(all, r)
			}
		}
	})
	return all, err
}

// DropJobRequest removes a request.
func (s *State) DropJobRequest(ctx context.Context, r store.JobRequest) error {
	return s.call(ctx, "drop request", true, func() {
		s.w.State.requests = slices.DeleteFunc(s.w.State.requests, func(o store.JobRequest) bool { return o.ID == r.ID })
	})
}

// request leaves a request for a job, unless one like it waits.
func (r *Registry) request(name, mode string) {
	for _, o := range r.requests {
		if o.Name == name && o.Mode == mode {
			return
		}
	}
	r.w.Table.nonces++
	r.requests = append(r.requests, store.JobRequest{Name: name, Mode: mode, At: r.w.now(), ID: "r" + strconv.Itoa(r.w.Table.nonces)})
}

// AmendDefinition replaces a definition that is exactly the expected one.
func (s *State) AmendDefinition(ctx context.Context, d, expected collection.Definition) error {
	d.Revision = expected.Revision
	ok := false
	err := s.call(ctx, "amend definition", true, func() {
		if ok = sameText(s.w.State.definitions[d.Name], expected); ok {
			d.Amended = expected.Amended + 1
			s.w.State.definitions[d.Name] = d
			if g, reads := collection.Read(s.w.State.family(d.Reads())); reads && d.Moved && !expected.Moved {
				s.w.begins(g)
			}
		}
	})
	if err == nil && !ok {
		return doc.Errorf(doc.VersionConflict, "the definition was changed meanwhile")
	}
	if err == nil {
		s.remembered[d.Name] = rememberedDefinition{d, s.clk.Now()}
	}
	return err
}

// sameText compares records as they are stored.
func sameText(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// Quarantined is a page of the notes, in the order of ids.
func (s *State) Quarantined(ctx context.Context, q store.QuarantineQuery) (page []doc.Quarantined, next string, err error) {
	err = s.call(ctx, "list quarantine", false, func() {
		page, next = nil, ""
		for _, id := range sortedKeys(s.w.State.quarantine) {
			if string(id) <= q.After || q.Collection != "" && id.Collection() != q.Collection {
				continue
			}
			if q.Limit > 0 && len(page) == q.Limit {
				next = string(page[len(page)-1].ID)
				return
			}
			page = append(page, s.w.State.quarantine[id])
		}
	})
	return page, next, err
}
