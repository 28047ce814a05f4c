// Package shared_test guards the direction in which packages import each other.
package shared_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rank orders the packages: each may import only packages of a lower rank.
// Packages of one rank do not know each other.
var rank = map[string]int{
	"shared/doc":        0,
	"shared/guid":       0,
	"shared/obs":        0,
	"shared/value":      1,
	"shared/filter":     2,
	"shared/collection": 2,
	"shared/where":      2,
	"shared/store":      3,
	"shared/search":     3,
	"shared/pipeline":   4,
	"shared/freshness":  5,
	"shared/jobs":       5,
	"shared/httpapi":    6,
	"shared/lambdahost": 7,
	"shared/local":      8,
	"shared/sim":        8,
	"functions":         9,
	"cmd":               9,
}

// pure packages hold the meaning of things and reach no engine.
var pure = []string{"shared/doc", "shared/guid", "shared/value", "shared/filter", "shared/collection", "shared/where"}

type pkg struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		from, ok := rank[part(p.ImportPath)]
		if !ok {
			if p.ImportPath != "holdfast/shared" {
				t.Errorf("%s has no rank: give it one", p.ImportPath)
			}
			continue
		}
		for _, imported := range p.Imports {
			to, ours := rank[part(imported)]
			if !strings.HasPrefix(imported, "holdfast/") || part(imported) == part(p.ImportPath) {
				continue
			}
			if !ours || to >= from {
				t.Errorf("%s (%d) must not import %s (%d)", p.ImportPath, from, imported, to)
			}
		}
	}
}

func TestPurePackagesReachNoEngine(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(pure, part(p.ImportPath)) {
			continue
		}
		for _, imported := range p.Imports {
			for _, engine := range []string{"github.com/aws/", "github.com/opensearch-project/", "net", "net/http", "os", "database/sql"} {
				if imported == engine || strings.HasSuffix(engine, "/") && strings.HasPrefix(imported, engine) {
					t.Errorf("%s imports %s", p.ImportPath, imported)
				}
			}
			if rank[part(p.ImportPath)] == 0 && part(p.ImportPath) != "shared/obs" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
				t.Errorf("%s imports %s: it keeps to the standard library", p.ImportPath, imported)
			}
		}
	}
}

func TestOnlyTheEdgesKnowLambda(t *testing.T) {
	for _, p := range packages(t) {
		at := part(p.ImportPath)
		if at == "shared/lambdahost" || at == "shared/local" || at == "functions" {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "github.com/aws/aws-lambda-go") {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

// What a function's binary carries is prepared at every start, used or not: so
// much as to make up a good part of the time that a start takes.
func TestFunctionsCarryWhatTheyUse(t *testing.T) {
	const sdk = "github.com/aws/aws-sdk-go-v2/"
	never := []string{
		sdk + "config", sdk + "service/s3",
		"google.golang.org/protobuf/types/descriptorpb", "database/sql", "testing",
	}
	for function, without := range map[string][]string{
		"documents": {sdk + "service/sqs", "cel.dev/cel-go/common/types"},
		"query":     {},
		"admin":     {"cel.dev/cel-go/common/types"},
		"relay":     {"cel.dev/cel-go/common/types"},
		"indexer":   {"cel.dev/cel-go/common/types"},
		"repair":    {"cel.dev/cel-go/common/types"},
	} {
		out, err := exec.Command("go", "list", "-deps", "holdfast/functions/"+function).Output()
		if err != nil {
			t.Fatalf("%s: %v", function, err)
		}
		carried := strings.Fields(string(out))
		if !slices.Contains(carried, sdk+"service/dynamodb") {
			t.Errorf("%s is said to carry %d packages, and no client of DynamoDB", function, len(carried))
		}
		for _, p := range append(without, never...) {
			if slices.Contains(carried, p) {
				t.Errorf("%s carries %s", function, p)
			}
		}
	}
}

// part is the entry of rank that an import path belongs to.
func part(path string) string {
	path = strings.TrimPrefix(path, "holdfast/")
	steps := strings.Split(path, "/")
	if steps[0] == "shared" && len(steps) > 1 {
		return "shared/" + steps[1]
	}
	return steps[0]
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Standard", "holdfast/...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}
