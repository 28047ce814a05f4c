package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Cache is where fetched engines are kept. Several processes may use one
// directory at the same time.
type Cache struct {
	Dir string            // "" means <user cache directory>/holdfast/engines
	Say func(line string) // progress; nil: nobody is told

	// LookPath finds a program; nil means exec.LookPath.
	LookPath func(name string) (string, error)
}

// Parts is where the fetched parts of the engines are. Those of engines that
// were not asked for are empty.
type Parts struct {
	Java       string // the java program
	Dynoxide   string // the binary
	ElasticMQ  string // a directory of jars
	OpenSearch string // a directory with lib/*.jar and classes/
}

// Provide makes sure that the engines are in the cache. It fetches only what
// is not there; with everything there it touches no network.
func (c Cache) Provide(ctx context.Context, names ...Name) (Parts, error) {
	if c.Say == nil {
		c.Say = func(string) {}
	}
	if c.LookPath == nil {
		c.LookPath = exec.LookPath
	}
	if c.Dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return Parts{}, fmt.Errorf("no place to keep engines: %w", err)
		}
		c.Dir = filepath.Join(base, "holdfast", "engines")
	}
	dir, err := filepath.Abs(c.Dir) // engines run in directories of their own
	if err != nil {
		return Parts{}, fmt.Errorf("engine cache: %w", err)
	}
	c.Dir = dir
	var absent []Name
	for _, n := range names {
		if place(n) != "" && !exists(filepath.Join(c.Dir, place(n))) {
			absent = append(absent, n)
		}
	}
	tools, err := find(ctx, c.LookPath, toolsFor(names, absent))
	if err != nil {
		return Parts{}, err
	}
	if len(absent) > 0 {
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return Parts{}, fmt.Errorf("engine cache: %w", err)
		}
	}
	for _, n := range absent {
		if err := c.fetch(ctx, n, tools); err != nil {
			return Parts{}, fmt.Errorf("fetch %s: %w", place(n), err)
		}
	}
	parts := Parts{Java: tools["java"]}
	for _, n := range names {
		dir := filepath.Join(c.Dir, place(n))
		switch n {
		case DynamoDB:
			parts.Dynoxide = filepath.Join(dir, "dynoxide")
		case SQS:
			parts.ElasticMQ = filepath.Join(dir, "lib")
		case OpenSearch:
			parts.OpenSearch = dir
		}
	}
	return parts, nil
}

// toolsFor is what it takes to run names after fetching absent.
func toolsFor(names, absent []Name) []Tool {
	need := map[Tool]bool{}
	for _, n := range names {
		if n == SQS || n == OpenSearch {
			need[javaTool] = true
		}
	}
	for _, n := range absent {
		switch n {
		case DynamoDB:
			need[npmTool] = true
		case SQS:
			need[mavenTool] = true
		case OpenSearch:
			need[mavenTool], need[javacTool] = true, true
		}
	}
	var tools []Tool
	for _, t := range []Tool{javaTool, javacTool, mavenTool, npmTool} {
		if need[t] {
			tools = append(tools, t)
		}
	}
	return tools
}

// fetch fills an engine's place. The place appears by a rename when it is
// complete, so that it is either whole or not there. One fetch runs at a time
// over the cache: Maven's own repository does not bear two writers.
func (c Cache) fetch(ctx context.Context, n Name, tools map[string]string) error {
	lock := filepath.Join(c.Dir, ".lock")
	unlock, err := TryLock(lock)
	if errors.Is(err, ErrLocked) {
		c.Say(fmt.Sprintf("%s: waiting for another process that fetches engines", n))
		unlock, err = Lock(ctx, lock)
	}
	if err != nil {
		return err
	}
	defer unlock()
	final := filepath.Join(c.Dir, place(n))
	if exists(final) {
		return nil // another process was first
	}
	begun := time.Now()
	c.Say(fmt.Sprintf("%s: fetching %s", n, origin[n]))
	half, err := filepath.Glob(filepath.Join(c.Dir, ".half-*"))
	if err != nil {
		return err
	}
	for _, old := range half { // what a fetch that was killed left; we hold the lock, so nobody is at it
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(c.Dir, ".half-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	stop := c.sayStill(n, begun)
	err = c.fill(ctx, n, tools, work)
	stop()
	if err != nil {
		return err
	}
	if err := os.Rename(work, final); err != nil {
		return err
	}
	c.Say(fmt.Sprintf("%s: fetched in %.0f s, kept in %s", n, time.Since(begun).Seconds(), final))
	return nil
}

// origin is what a person waits for.
var origin = map[Name]string{
	DynamoDB:   "version " + dynoxideVersion + " from the npm registry (8 MB)",
	SQS:        "version " + elasticMQVersion + " from Maven Central (38 MB)",
	OpenSearch: "version " + openSearchVersion + " from Maven Central (54 MB)",
}

// sayStill reports every few seconds that a fetch goes on.
func (c Cache) sayStill(n Name, begun time.Time) (stop func()) {
	tick, done := time.NewTicker(5*time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				c.Say(fmt.Sprintf("%s: still fetching, %.0f s", n, time.Since(begun).Seconds()))
			case <-done:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(done) }
}

func (c Cache) fill(ctx context.Context, n Name, tools map[string]string, work string) error {
	switch n {
	case DynamoDB:
		return fillDynoxide(ctx, tools, work)
	case SQS:
		return fillJars(ctx, tools, work, elasticMQPOM, "elasticmq-server_2.13-"+elasticMQVersion+".jar")
	case OpenSearch:
		if err := fillJars(ctx, tools, work, openSearchPOM, "opensearch-"+openSearchVersion+".jar"); err != nil {
			return err
		}
		source := filepath.Join(work, "OsLauncher.java")
		if err := os.WriteFile(source, openSearchLauncher, 0o644); err != nil {
			return err
		}
		return run(ctx, work, tools["javac"], "-cp", filepath.Join(work, "lib", "*"), "-d", filepath.Join(work, "classes"), source)
	}
	return fmt.Errorf("there is no engine %q", n)
}

func fillDynoxide(ctx context.Context, tools map[string]string, work string) error {
	pkg, err := dynoxidePackage(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	stage := filepath.Join(work, "npm")
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	if err := run(ctx, stage, tools["npm"], "install", "--prefix", stage, "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-save", "--no-package-lock", "--loglevel=error", pkg+"@"+dynoxideVersion); err != nil {
		return err
	}
	binary := filepath.Join(work, "dynoxide")
	if err := os.Rename(filepath.Join(stage, "node_modules", filepath.FromSlash(pkg), "dynoxide"), binary); err != nil {
		return fmt.Errorf("the package holds no binary: %w", err)
	}
	if err := os.Chmod(binary, 0o755); err != nil {
		return err
	}
	return os.RemoveAll(stage)
}

// fillJars copies what a POM depends on to work/lib and looks for the main jar.
func fillJars(ctx context.Context, tools map[string]string, work string, pom []byte, main string) error {
	pomFile := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pomFile, pom, 0o644); err != nil {
		return err
	}
	lib := filepath.Join(work, "lib")
	if err := run(ctx, work, tools["mvn"], "-B", "-ntp", "-q", "-C", "-f", pomFile,
		"dependency:copy-dependencies", "-DoutputDirectory="+lib); err != nil {
		return err
	}
	if !exists(filepath.Join(lib, main)) {
		return fmt.Errorf("maven did not bring %s", main)
	}
	return nil
}

// run executes a tool, which does not outlive this process either. Its last
// output is the error's text.
func run(ctx context.Context, dir, path string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, 5*time.Second
	child, err := startBound(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	select {
	case err = <-child.exited:
	case <-ctx.Done():
		child.signal(syscall.SIGKILL)
		<-child.exited
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(path), err, lastLines(out.String(), 15))
	}
	return nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
