package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// DefinitionLife is how long a definition may be used after it was read: the
// seconds after which every function knows a new one. Who changes what depends
// on definitions waits at least as long.
const DefinitionLife = 5 * time.Second

// Definition is what was declared of a collection. It may be up to
// DefinitionLife old. A collection that nobody declared anything about has a
// definition with its name only.
func (s *State) Definition(ctx context.Context, c doc.Collection) (collection.Definition, error) {
	now := s.clock.Now()
	s.mu.Lock()
	cached, ok := s.definitions[c]
	s.mu.Unlock()
	// An age below zero is that of a clock that was set back.
	if age := now.Sub(cached.at); ok && age >= 0 && age < DefinitionLife {
		return cached.definition, nil
	}
	return s.CurrentDefinition(ctx, c)
}

func (s *State) remember(d collection.Definition, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.definitions == nil || len(s.definitions) >= maxRemembered {
		s.definitions = map[doc.Collection]cachedDefinition{}
	}
	s.definitions[d.Name] = cachedDefinition{definition: d, at: at}
}

// PutDefinition replaces a collection's definition if its revision still is the
// expected one (0: there is none) and it was amended as often as the new one
// says, and returns it with its new revision. The error is of kind VersionConflict
// when somebody else was faster.
func (s *State) PutDefinition(ctx context.Context, d collection.Definition, expectedRevision int64) (collection.Definition, error) {
	d.Revision = expectedRevision + 1
	body, err := json.Marshal(d)
	if err != nil {
		return collection.Definition{}, fmt.Errorf("writing a definition: %w", err)
	}
	item := stateKey(kindDefinition, string(d.Name))
	item[attrBody], item[attrRevision] = str(string(body)), num(d.Revision)
	x := newExpression()
	if expectedRevision == 0 {
		x.require("attribute_not_exists(" + x.name(attrPK) + ")")
	} else {
		x.require(x.name(attrRevision) + " = " + x.value("expected", num(expectedRevision)))
	}
	if d.Amended == 0 {
		x.require("attribute_not_exists(" + x.name(attrAmended) + ")")
	} else {
		item[attrAmended] = num(d.Amended)
		x.require(x.name(attrAmended) + " = " + x.value("amended", item[attrAmended]))
	}
	_, ok, err := s.replace(ctx, "writing a definition", item, x)
	if err != nil {
		return collection.Definition{}, err
	}
	if !ok {
		return collection.Definition{}, doc.Errorf(doc.VersionConflict, "the definition has another revision").With("expected", expectedRevision)
	}
	s.remember(d, s.clock.Now())
	return d, nil
}

// AmendDefinition replaces a definition that is exactly the expected one, and
// keeps its revision: what clients declared stays the same. The error is of kind
// VersionConflict when another one stands there.
func (s *State) AmendDefinition(ctx context.Context, d, expected collection.Definition) error {
	d.Revision, d.Amended = expected.Revision, expected.Amended+1
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("amending a definition: %w", err)
	}
	old, err := json.Marshal(expected)
	if err != nil {
		return fmt.Errorf("amending a definition: %w", err)
	}
	item := stateKey(kindDefinition, string(d.Name))
	item[attrBody], item[attrRevision], item[attrAmended] = str(string(body)), num(d.Revision), num(d.Amended)
	x := newExpression()
	x.require(x.name(attrBody) + " = " + x.value("expected", str(string(old))))
	_, ok, err := s.replace(ctx, "amending a definition", item, x)
	if err != nil {
		return err
	}
	if !ok {
		return doc.Errorf(doc.VersionConflict, "the definition was changed meanwhile")
	}
	s.remember(d, s.clock.Now())
	return nil
}
