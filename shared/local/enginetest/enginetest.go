// Package enginetest gives tests the real engines.
package enginetest

import (
	"os"
	"testing"
)

// Main runs the tests of a package that uses engines.
func Main(m *testing.M) { os.Exit(m.Run()) }

// DynamoDB is the endpoint of a DynamoDB with streams.
func DynamoDB(t testing.TB) string { return endpoint(t, "HOLDFAST_TEST_DYNAMODB") }

// SQS is the endpoint of an SQS.
func SQS(t testing.TB) string { return endpoint(t, "HOLDFAST_TEST_SQS") }

// OpenSearch is the endpoint of an OpenSearch node.
func OpenSearch(t testing.TB) string { return endpoint(t, "HOLDFAST_TEST_OPENSEARCH") }

func endpoint(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an engine")
	}
	url := os.Getenv(name)
	if url == "" {
		t.Skip("no engine named")
	}
	return url
}
