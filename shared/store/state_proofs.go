package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/shared/collection"
)

// Proof says up to when the index of a generation is known to hold everything.
type Proof struct {
	Family     collection.Family `json:"family"`
	Generation int               `json:"generation"`
	// Index is the UUID of the very index that this is about. One that was made
	// again under its name, by whomever, has another, and nothing is proven of it.
	Index string `json:"index,omitempty"`
	// Through is the moment up to which every write is in the index; zero: none.
	Through time.Time `json:"through,omitzero"`
	At      time.Time `json:"at,omitzero"` // when the run that found this began
	// FeedLag is how long the change feed took to show a write, as the run
	// measured it, and Margin what the run allowed for.
	FeedLag       time.Duration `json:"feedLag,omitempty"`
	Margin        time.Duration `json:"margin,omitempty"`
	Missing       int           `json:"missing,omitempty"`      // documents that the index does not hold in their version
	OldestMissing time.Time     `json:"oldestMissing,omitzero"` // when the first of them was written
	Fence         int64         `json:"-"`                      // token of the lease of the run
}

// droppedProofLife is how long the fence of a dropped proof is kept: much longer
// than any function can be paused.
const droppedProofLife = 7 * 24 * time.Hour

// Proofs are the proofs of all generations, in no order that means anything. A
// dropped one is among them for a while, with its fence and no Through.
func (s *State) Proofs(ctx context.Context) ([]Proof, error) {
	items, err := s.list(ctx, "reading the proofs", kindProof)
	if err != nil {
		return nil, err
	}
	proofs := make([]Proof, len(items))
	for i, item := range items {
		if err := decodeBody(item, &proofs[i]); err != nil {
			return nil, fmt.Errorf("reading a proof: %w", err)
		}
		proofs[i].Fence = integer(item[attrFence])
	}
	return proofs, nil
}

// PutProof replaces the proof of a generation. It answers false, and changes
// nothing, when one of a higher fence stands there.
func (s *State) PutProof(ctx context.Context, p Proof) (bool, error) {
	return s.putProof(ctx, "writing a proof", p, time.Time{})
}

// DropProof takes back the proof of a generation: nothing is proven of its index
// any more. It answers false, and changes nothing, when a proof of a higher
// fence stands there. The fence of the drop stays for a week.
func (s *State) DropProof(ctx context.Context, f collection.Family, generation int, fence int64) (bool, error) {
	p := Proof{Family: f, Generation: generation, Fence: fence}
	return s.putProof(ctx, "dropping a proof", p, s.clock.Now().Add(droppedProofLife))
}

func (s *State) putProof(ctx context.Context, doing string, p Proof, ends time.Time) (bool, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	item := stateKey(kindProof, string(p.Family)+"#"+generationNumber(p.Generation))
	item[attrBody] = str(string(body))
	if !ends.IsZero() {
		item[attrTTL] = num(ends.Unix())
	}
	return s.fenced(ctx, doing, item, p.Fence)
}
