package engines

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// toolbox is a folder of pretended tools that note that they were called.
func toolbox(t *testing.T, scripts map[string]string) (look func(string) (string, error), calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	note := filepath.Join(dir, "calls")
	for name, script := range scripts {
		text := "#!/bin/sh\necho " + name + " >> " + note + "\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	look = func(name string) (string, error) {
		path := filepath.Join(dir, name)
		_, err := os.Stat(path)
		return path, err
	}
	calls = func() []string {
		text, err := os.ReadFile(note)
		if err != nil {
			return nil
		}
		return strings.Fields(string(text))
	}
	return look, calls
}

var goodTools = map[string]string{
	"java":  `echo 'openjdk version "21.0.2" 2024-01-16' >&2`,
	"javac": `true`,
	"npm": `p=$(pwd)/node_modules/$(echo "$*" | sed 's/.* \(@dynoxide[^ ]*\)@[^@]*$/\1/')
mkdir -p "$p"; echo binary > "$p/dynoxide"`,
	"mvn": `for a in "$@"; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done
mkdir -p "$d"; touch "$d/opensearch-` + openSearchVersion + `.jar" "$d/elasticmq-server_2.13-` + elasticMQVersion + `.jar"`,
}

func without(tools map[string]string, names ...string) map[string]string {
	left := map[string]string{}
	for n, s := range tools {
		if !slices.Contains(names, n) {
			left[n] = s
		}
	}
	return left
}

func TestMissingToolsAreNamedAllAtOnceBeforeAnythingIsFetched(t *testing.T) {
	old := without(goodTools, "npm", "mvn")
	old["java"] = `echo 'java version "1.8.0_392"' >&2`
	cases := []struct {
		name  string
		tools map[string]string
		need  []Name
		want  []string
	}{
		{"nothing there", nil, All, []string{"java", "javac", "mvn", "npm"}},
		{"an old java counts as missing", old, All, []string{"java", "mvn", "npm"}},
		{"only what the engines asked for need", nil, []Name{DynamoDB}, []string{"npm"}},
		{"S3 needs nothing", nil, []Name{S3}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			look, calls := toolbox(t, c.tools)
			_, err := Cache{Dir: t.TempDir(), LookPath: look}.Provide(t.Context(), c.need...)
			var missing *MissingTools
			if !errors.As(err, &missing) {
				if c.want == nil && err == nil {
					return
				}
				t.Fatalf("the error is %v", err)
			}
			var got []string
			for _, tool := range missing.Tools {
				got = append(got, tool.Name)
				if !strings.Contains(err.Error(), tool.Get) {
					t.Errorf("the error does not say how to get %s:\n%v", tool.Name, err)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("missing %v, want %v", got, c.want)
			}
			if slices.Contains(calls(), "mvn") || slices.Contains(calls(), "npm") {
				t.Errorf("something was fetched: %v", calls())
			}
		})
	}
}

func TestWhatIsInTheCacheIsNotFetchedAgain(t *testing.T) {
	look, calls := toolbox(t, goodTools)
	cache := Cache{Dir: filepath.Join(t.TempDir(), "deep", "cache"), LookPath: look}
	var users sync.WaitGroup
	for range 4 { // at once, like processes that share the directory
		users.Go(func() {
			parts, err := cache.Provide(t.Context(), All...)
			if err != nil {
				t.Error(err)
				return
			}
			for _, path := range []string{parts.Dynoxide, parts.ElasticMQ, filepath.Join(parts.OpenSearch, "lib")} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	fetches := func() (n int) {
		for _, c := range calls() {
			if c == "mvn" || c == "npm" {
				n++
			}
		}
		return n
	}
	if n := fetches(); n != 3 {
		t.Errorf("three engines took %d fetches: %v", n, calls())
	}
	// From now on only java is needed.
	cache.LookPath, calls = toolbox(t, without(goodTools, "npm", "mvn", "javac"))
	if _, err := cache.Provide(t.Context(), All...); err != nil {
		t.Error(err)
	}
	if n := fetches(); n != 0 {
		t.Errorf("the second time took %d fetches", n)
	}
}

func TestAFetchThatFailsOrIsCutShortLeavesNothingBehind(t *testing.T) {
	cases := map[string]string{
		"failing":    "echo no such package; exit 1",
		"incomplete": "exit 0",
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			tools := without(goodTools, "npm")
			tools["npm"] = script
			look, _ := toolbox(t, tools)
			cache := Cache{Dir: t.TempDir(), LookPath: look}
			left := filepath.Join(cache.Dir, ".half-killed")
			if err := os.Mkdir(left, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := cache.Provide(t.Context(), DynamoDB)
			if err == nil {
				t.Fatal("no error")
			}
			if name == "failing" && !strings.Contains(err.Error(), "no such package") {
				t.Errorf("the error hides the tool's words: %v", err)
			}
			entries, _ := os.ReadDir(cache.Dir)
			for _, e := range entries {
				if e.Name() != ".lock" {
					t.Errorf("%s is left", e.Name())
				}
			}
			// The next try, with a tool that works, succeeds.
			cache.LookPath, _ = toolbox(t, goodTools)
			if _, err := cache.Provide(t.Context(), DynamoDB); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheLockExcludesAndIsFreedByTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("the second holder gets %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting without time gets %v", err)
	}
	unlock()
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestVersionsAndPOMsAgree(t *testing.T) {
	if !bytes.Contains(openSearchPOM, []byte(">"+openSearchVersion+"<")) {
		t.Errorf("the POM of OpenSearch does not name version %s", openSearchVersion)
	}
	if !bytes.Contains(elasticMQPOM, []byte(">"+elasticMQVersion+"<")) {
		t.Errorf("the POM of ElasticMQ does not name version %s", elasticMQVersion)
	}
}

func TestTheNameOfDynoxidesPackage(t *testing.T) {
	for machine, want := range map[string]string{"linux/amd64": "@dynoxide/linux-x64", "darwin/arm64": "@dynoxide/darwin-arm64", "plan9/amd64": "", "linux/386": ""} {
		goos, goarch, _ := strings.Cut(machine, "/")
		got, err := dynoxidePackage(goos, goarch)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", machine, got, err)
		}
	}
}
