// Package chaos shows that a stack keeps its promises while everything under it
// breaks. It runs a stack on engines of its own, writes to it from several sides,
// kills and restarts the engines and the stack itself, has requests between the
// functions and the engines fail, and in the end compares everything with a
// record that it kept of every write.
//
// The engines and the proxies that make the faults are of this process. The stack
// is a process of its own, so that it can be killed as kill -9 does: functions,
// gateway and pollers end in the middle of what they do, and the next ones go on
// with the data and the engines as they are.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"holdfast/shared/local/engines"
)

// Options of a run. Dir and Command are required.
type Options struct {
	Dir   string        // gets everything: the engines' data, logs, what the pollers remember. Empty, or made
	Cache engines.Cache // where fetched engines are kept
	Heap  string        // of OpenSearch, as -Xmx takes it; "": the engines' default

	// Command makes the command of a process that does nothing but call Serve.
	Command func() *exec.Cmd

	Documents int           // that are imported; at most those of Input, where there is one
	Input     io.Reader     // NDJSON lines {"id","data"}; nil: documents are made
	Duration  time.Duration // over which documents and kills are spread; it takes longer when the machine is slower
	Kills     int
	Rate      float64 // the share of the requests between functions and engines that meet a fault
	Seed      uint64  // of what is left to chance: documents, which requests fail, what is killed when
	Writers   int     // clients that write at the same time; 0: 6
	Within    time.Duration
	Say       func(line string)   // told what goes on, one line each; nil: nobody
	Tell      func(p Progress)    // told how far the run has come, a few times a second; nil: nobody
	began     time.Time           // set by Run
	now       func() time.Time    // set by Run
	_         struct{}            // fields are named
}

// Progress is how far a run has come.
type Progress struct {
	Doing        string // a word or two
	Documents    int    // that were imported
	Of           int
	Acknowledged int // writes
	Kills        int
	Faults       int
	Differing    int // documents about which index and table differ, as far as that was looked at
}
