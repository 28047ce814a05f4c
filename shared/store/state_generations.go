package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// Generations are the generations of a family, by number. There are none before
// the first is put.
func (s *State) Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error) {
	items, err := s.list(ctx, "reading the generations", kindGeneration+string(f))
	if err != nil {
		return nil, err
	}
	generations := make([]collection.Generation, len(items))
	for i, item := range items {
		if err := decodeBody(item, &generations[i]); err != nil {
			return nil, fmt.Errorf("reading a generation of family %s: %w", f, err)
		}
	}
	return generations, nil
}

// PutGeneration writes a generation if what stands under its family and number
// is still expected; nil: nothing. The error is of kind VersionConflict when it
// is not, so of two creators one learns that it has to read again.
func (s *State) PutGeneration(ctx context.Context, g collection.Generation, expected *collection.Generation) error {
	body, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("writing a generation: %w", err)
	}
	item := stateKey(kindGeneration+string(g.Family), generationNumber(g.Number))
	item[attrBody] = str(string(body))
	x := newExpression()
	if expected == nil {
		x.require("attribute_not_exists(" + x.name(attrPK) + ")")
	} else {
		old, err := json.Marshal(*expected)
		if err != nil {
			return fmt.Errorf("writing a generation: %w", err)
		}
		x.require(x.name(attrBody) + " = " + x.value("expected", str(string(old))))
	}
	_, ok, err := s.replace(ctx, "writing a generation", item, x)
	if err != nil {
		return err
	}
	if !ok {
		return doc.Errorf(doc.VersionConflict, "the generation was changed meanwhile")
	}
	return nil
}

// DropGeneration removes the record of a generation if it still is as given.
// That there is none is no error; one of kind VersionConflict means that it was
// changed meanwhile. Its number is free then, so the record of a family's last
// generation is kept as long as its index may exist.
func (s *State) DropGeneration(ctx context.Context, g collection.Generation) error {
	body, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("removing a generation: %w", err)
	}
	x := newExpression()
	x.require("attribute_not_exists(" + x.name(attrPK) + ") OR " + x.name(attrBody) + " = " + x.value(attrBody, str(string(body))))
	ok, err := s.remove(ctx, "removing a generation", kindGeneration+string(g.Family), generationNumber(g.Number), x)
	if err != nil {
		return err
	}
	if !ok {
		return doc.Errorf(doc.VersionConflict, "the generation was changed meanwhile")
	}
	return nil
}

// generationNumber has eight digits, so that the text sorts as the number.
func generationNumber(n int) string { return fmt.Sprintf("%08d", n) }

// decodeBody reads the JSON of a record.
func decodeBody(item map[string]types.AttributeValue, into any) error {
	body, ok := text(item[attrBody])
	if !ok {
		return fmt.Errorf("the record has no body")
	}
	return json.Unmarshal([]byte(body), into)
}
