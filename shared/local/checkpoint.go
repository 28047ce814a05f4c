package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// checkpoints remembers in a file how far each shard of a stream has been
// handled. What it has not yet written is handled again after a crash.
type checkpoints struct {
	file string
	mu   sync.Mutex
	kept checkpointFile
}

type checkpointFile struct {
	Stream string                `json:"stream"` // the ARN; another stream of the same table begins anew
	Shards map[string]shardPoint `json:"shards"`
}

// shardPoint is how far one shard has been handled.
type shardPoint struct {
	After string `json:"after,omitempty"` // the sequence number of the last record that is done with all before it
	Done  bool   `json:"done,omitempty"`  // the shard has ended and all its records are done
}

// openCheckpoints reads the file of a stream; there may be none.
func openCheckpoints(file, stream string) (*checkpoints, error) {
	c := &checkpoints{file: file, kept: checkpointFile{Stream: stream, Shards: map[string]shardPoint{}}}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var kept checkpointFile
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("checkpoints in %s: %w", file, err)
	}
	if kept.Stream == stream && kept.Shards != nil {
		c.kept = kept
	}
	return c, nil
}

func (c *checkpoints) get(shard string) shardPoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Shards[shard]
}

func (c *checkpoints) set(shard string, p shardPoint) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Shards[shard] = p
	return c.save()
}

// forget drops shards that the stream no longer has.
func (c *checkpoints) forget(present map[string]bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.kept.Shards)
	maps.DeleteFunc(c.kept.Shards, func(shard string, _ shardPoint) bool { return !present[shard] })
	if len(c.kept.Shards) == before {
		return nil
	}
	return c.save()
}

func (c *checkpoints) save() error {
	text, err := json.Marshal(c.kept)
	if err != nil {
		return err
	}
	return writeFile(c.file, text)
}

// writeFile replaces a file in one step, so that a process killed in between
// leaves the old content or the new.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
