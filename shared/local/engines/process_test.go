package engines

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// shell is an engine that is a shell script.
func shell(t *testing.T, script string) command {
	t.Helper()
	dir := t.TempDir()
	return command{
		name: "fake", path: "/bin/sh", args: []string{"-c", script}, dir: dir, log: filepath.Join(dir, "log"), url: "http://fake",
		say: func(string) {}, ready: func(context.Context) error { return nil }, within: 5 * time.Second,
	}
}

func TestAProcessThatEndsBeforeItServesIsAnErrorWithItsLastWords(t *testing.T) {
	c := shell(t, "echo the port is taken; exit 1")
	c.ready = func(context.Context) error { return errors.New("not yet") }
	_, err := startProcess(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("the error is %v", err)
	}
}

func TestAProcessThatDoesNotServeInTimeIsKilled(t *testing.T) {
	c := shell(t, "echo $$ > pid; exec sleep 300")
	c.ready, c.within = func(context.Context) error { return errors.New("not yet") }, 300*time.Millisecond
	if _, err := startProcess(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("the error is %v", err)
	}
}

func TestAnEngineServesWhenItHasSaidSoInThisLife(t *testing.T) {
	c := shell(t, "test -e second && sleep 0.3; touch second; echo is up; exec sleep 300")
	c.says = "is up"
	p, err := startProcess(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop(time.Second)
	begun := time.Now()
	if err := p.kill(false); err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("after %s the words of the first life were taken for those of the second", took)
	}
}

func TestADeadProcessIsStartedAndTunedAgain(t *testing.T) {
	c := shell(t, "exec sleep 300")
	var tuned atomic.Int32
	c.tune = func(context.Context) error { tuned.Add(1); return nil }
	p, err := startProcess(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop(time.Second)
	first := p.status().PID
	if err := p.kill(false); err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := p.status()
	if s.PID == first || s.PID == 0 || s.Restarts != 1 || tuned.Load() != 2 {
		t.Errorf("after one kill: %+v, first process %d, tuned %d times", s, first, tuned.Load())
	}
}

func TestAProcessThatWillNotStopIsKilled(t *testing.T) {
	c := shell(t, "trap '' TERM; touch trapped; while :; do sleep 0.05; done")
	c.ready = func(context.Context) error {
		_, err := os.Stat(filepath.Join(c.dir, "trapped"))
		return err
	}
	p, err := startProcess(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p.stop(100 * time.Millisecond)
	if s := p.status(); s.State != Stopped || s.PID != 0 {
		t.Errorf("after stop: %+v", s)
	}
	if err := p.await(t.Context()); err == nil {
		t.Error("await answers for a stopped engine")
	}
}

func TestStopEndsAPauseAndAHalt(t *testing.T) {
	p, err := startProcess(t.Context(), shell(t, "exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.kill(true); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { p.stop(time.Minute); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("stop waits for a halted engine")
	}
}
