package search

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
)

// cursorKeyBytes is the size of a key that a client makes for itself.
const cursorKeyBytes = 32

// cursorKeys is the key that cursors are signed with, read when it is first
// needed.
type cursorKeys struct {
	read func(context.Context) ([]byte, error)

	mu  sync.Mutex
	key []byte
}

// newCursorKeys makes a key of its own where there is none to read.
func newCursorKeys(read func(context.Context) ([]byte, error)) *cursorKeys {
	k := &cursorKeys{read: read}
	if read == nil {
		k.key = make([]byte, cursorKeyBytes)
		_, _ = rand.Read(k.key) // never fails
	}
	return k
}

func (k *cursorKeys) get(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key == nil {
		key, err := k.read(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the key of cursors: %w", err)
		}
		if len(key) == 0 {
			return nil, fmt.Errorf("the key of cursors is empty")
		}
		k.key = key
	}
	return k.key, nil
}
