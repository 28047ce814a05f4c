package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// importState is what an interrupted import needs to go on: everything before
// the position is acknowledged and its rejects are in the rejects file.
type importState struct {
	File     fingerprint `json:"file"`
	Request  importAsked `json:"request"`
	Array    bool        `json:"array"`
	At       position    `json:"at"`
	Imported int64       `json:"imported"`
	Present  int64       `json:"present"`
	Rejected int64       `json:"rejected"`
	Rejects  int64       `json:"rejectsBytes"`
}

// importAsked is what has to be the same for an import to go on.
type importAsked struct {
	Endpoint   string `json:"endpoint"`
	Mode       string `json:"mode"`
	Collection string `json:"collection,omitempty"`
	IDField    string `json:"idField,omitempty"`
}

// errNoState says that there is nothing to go on with.
var errNoState = errors.New("there is no interrupted run to go on with")

// readState reads a state file into v.
func readState(path string, v any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoState
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("the state of the interrupted run: %s: %w", path, err)
	}
	return nil
}

// writeState replaces a state file as a whole, so that it is never half
// written.
func writeState(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("keeping the state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keeping the state: %w", err)
	}
	return nil
}

// removeState removes a state file once nothing is left to go on with.
func removeState(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// rejectsFile is made when there is something to put into it.
type rejectsFile struct {
	path  string // "": rejects are only told
	file  *os.File
	out   *bufio.Writer
	bytes int64 // of the file, once it is flushed
}

// begin makes the file hold the first n bytes of what it held; 0 means that it
// starts anew, when it is needed.
func (r *rejectsFile) begin(n int64) error {
	if r.path == "" {
		return nil
	}
	if n == 0 {
		return removeState(r.path)
	}
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("the rejects of the interrupted import: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() < n {
		err = fmt.Errorf("%s is shorter than the interrupted import left it", r.path)
	}
	if err == nil {
		err = f.Truncate(n)
	}
	if err == nil {
		_, err = f.Seek(n, 0)
	}
	if err != nil {
		f.Close()
		return err
	}
	r.file, r.out, r.bytes = f, bufio.NewWriter(f), n
	return nil
}

func (r *rejectsFile) add(line rejected) error {
	if r.path == "" {
		return nil
	}
	if r.file == nil {
		f, err := os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
		if err != nil {
			return fmt.Errorf("rejects: %w", err)
		}
		r.file, r.out = f, bufio.NewWriter(f)
	}
	n := counting{w: r.out}
	err := writeJSON(&n, line)
	r.bytes += n.n
	if err != nil {
		return fmt.Errorf("rejects: %w", err)
	}
	return nil
}

// flush brings to the file what was added.
func (r *rejectsFile) flush() error {
	if r.file == nil {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("rejects: %w", err)
	}
	return nil
}

func (r *rejectsFile) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// counting counts what is written through it.
type counting struct {
	w interface{ Write([]byte) (int, error) }
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
