package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// speakEvery is how often progress is told where no bar can be drawn.
const speakEvery = 5 * time.Second

// progress tells how far something has come: a bar on a terminal, elsewhere a
// line now and then.
type progress struct {
	w     io.Writer
	verb  string
	size  int64 // of what position goes through; 0: not known
	bar   *progressbar.ProgressBar
	begun time.Time
	spoke time.Time
}

func newProgress(w io.Writer, verb string, size int64) *progress {
	now := time.Now()
	p := &progress{w: w, verb: verb, size: size, begun: now, spoke: now}
	if isTerminal(w) {
		most := size
		if most == 0 {
			most = -1
		}
		p.bar = progressbar.NewOptions64(most, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(verb),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(size > 0), progressbar.OptionShowBytes(size > 0))
	}
	return p
}

// at tells that n documents are done; position is how far the input was read.
func (p *progress) at(n, position int64) {
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%s %d documents", p.verb, n))
		if p.size > 0 {
			_ = p.bar.Set64(min(position, p.size)) // a bar that cannot be drawn is no reason to stop
		} else {
			_ = p.bar.Set64(n)
		}
		return
	}
	now := time.Now()
	if now.Sub(p.spoke) < speakEvery {
		return
	}
	p.spoke = now
	line := fmt.Sprintf("%s: %d documents in %.0f s", p.verb, n, now.Sub(p.begun).Seconds())
	if p.size > 0 {
		line += fmt.Sprintf(", %d %% of the file read", 100*min(position, p.size)/p.size)
	}
	fmt.Fprintln(p.w, line)
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
