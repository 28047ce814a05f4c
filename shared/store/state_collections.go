package store

import (
	"context"

	"holdfast/shared/doc"
)

// Register records that a collection has documents. It is called before the
// first document is written, so that whoever goes through all collections
// misses none; what this process has registered is remembered. The system's own
// collections are not recorded.
func (s *State) Register(ctx context.Context, c doc.Collection) error {
	if c.System() {
		return nil
	}
	s.mu.Lock()
	known := s.registered[c]
	s.mu.Unlock()
	if known {
		return nil
	}
	const doing = "registering a collection"
	// Nearly always it is there already, and a read costs a tenth of a write.
	item, err := s.get(ctx, doing, kindCollection, string(c), false)
	if err != nil {
		return err
	}
	if len(item) == 0 {
		x := newExpression()
		x.assignOnce(attrSince, num(s.clock.Now().UnixMicro()))
		if _, _, _, err := s.update(ctx, doing, kindCollection, string(c), x); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered == nil || len(s.registered) >= maxRemembered {
		s.registered = map[doc.Collection]bool{}
	}
	s.registered[c] = true
	return nil
}

// Collections are all collections that have or had documents, in the order of
// their names, without the system's own.
func (s *State) Collections(ctx context.Context) ([]doc.Collection, error) {
	items, err := s.list(ctx, "listing the collections", kindCollection)
	if err != nil {
		return nil, err
	}
	names := make([]doc.Collection, 0, len(items))
	for _, item := range items {
		name, _ := text(item[attrSK])
		if c := doc.Collection(name); !c.System() {
			names = append(names, c)
		}
	}
	return names, nil
}
