package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	secretCursors = "cursors"
	secretBytes   = 32
)

// CursorKey is the secret that cursors are signed with: random, made by
// whoever asks first and the same for all processes from then on. It is read
// each time; a caller keeps it.
func (s *State) CursorKey(ctx context.Context) ([]byte, error) {
	const doing = "reading the key of cursors"
	item, err := s.get(ctx, doing, kindSecret, secretCursors, true)
	if err != nil {
		return nil, err
	}
	if len(item) == 0 {
		if item, err = s.makeSecret(ctx, secretCursors); err != nil {
			return nil, err
		}
	}
	return decodeSecret(item)
}

// makeSecret writes a new secret unless there is one, and gives the one that
// is there then.
func (s *State) makeSecret(ctx context.Context, name string) (map[string]types.AttributeValue, error) {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	x := newExpression()
	x.assignOnce(attrBody, str(base64.StdEncoding.EncodeToString(secret)))
	made, _, _, err := s.update(ctx, "making a secret", kindSecret, name, x)
	return made, err
}

func decodeSecret(item map[string]types.AttributeValue) ([]byte, error) {
	body, _ := text(item[attrBody])
	secret, err := base64.StdEncoding.DecodeString(body)
	if err != nil || len(secret) != secretBytes {
		return nil, fmt.Errorf("a secret in the state table is not one that was put there")
	}
	return secret, nil
}
