// Package enginetest gives tests the real engines.
//
// One `go test` run has one set of engines, whatever the number of packages:
// the first test that asks for an engine starts a host, a detached copy of its
// own test binary, and the tests of all packages of the run talk to it. Each
// engine starts when it is first asked for. The host ends, and its engines with
// it, as soon as the `go test` is over. A test binary that is run by hand has a
// host of its own.
//
// Engines are shared by tests that run at the same time: use table, queue and
// index names that nobody else uses, and clean up. A test that has to break an
// engine takes Private ones.
//
// HOLDFAST_TEST_DYNAMODB, HOLDFAST_TEST_SQS and HOLDFAST_TEST_OPENSEARCH name
// engines to be used instead, by their URLs.
package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/shared/local/engines"
)

// Main runs the tests of a package that uses engines. It is called by
// TestMain, which does nothing before it.
func Main(m *testing.M) {
	engines.Guard()
	if dir := os.Getenv(hostDir); dir != "" {
		os.Exit(runHost(dir))
	}
	mainWasCalled = true
	os.Exit(m.Run())
}

var mainWasCalled bool

// DynamoDB is the URL of a DynamoDB with streams. Under -short the test is
// skipped.
func DynamoDB(t testing.TB) string {
	t.Helper()
	return url(t, engines.DynamoDB, "HOLDFAST_TEST_DYNAMODB")
}

// SQS is the URL of an SQS. Under -short the test is skipped.
func SQS(t testing.TB) string {
	t.Helper()
	return url(t, engines.SQS, "HOLDFAST_TEST_SQS")
}

// OpenSearch is the URL of an OpenSearch node. Under -short the test is
// skipped.
func OpenSearch(t testing.TB) string {
	t.Helper()
	return url(t, engines.OpenSearch, "HOLDFAST_TEST_OPENSEARCH")
}

func url(t testing.TB, n engines.Name, override string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an engine")
	}
	if u := os.Getenv(override); u != "" {
		return u
	}
	if !mainWasCalled {
		t.Fatal("a package with engine tests calls enginetest.Main from TestMain")
	}
	u, err := ask(t.Context(), n)
	if err != nil {
		t.Fatalf("no %s: %v", n, err)
	}
	return u
}

// Private starts engines (none named: all) of this test's own, which it may
// kill, halt and resume. They end with the test. Under -short the test is
// skipped.
func Private(t testing.TB, names ...engines.Name) *engines.Set {
	t.Helper()
	if testing.Short() {
		t.Skip("needs engines")
	}
	set, err := engines.NewSet(engines.Options{
		Cache: Cache(), Dir: filepath.Join(t.TempDir(), "engines"),
		Say: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Stop)
	if err := set.Start(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	return set
}

// Cache is where tests keep fetched engines: where the local stack does.
func Cache() engines.Cache {
	return engines.Cache{Dir: os.Getenv("HOLDFAST_CACHE")}
}
