package functions

import (
	"strings"
	"testing"

	"holdfast/shared/lambdahost"
)

func TestAFunctionStartsFromItsEnvironment(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("HOLDFAST_DOCUMENTS_TABLE", "documents")
	t.Setenv("HOLDFAST_STATE_TABLE", "state")
	t.Setenv("HOLDFAST_SIGNALS_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/signals")
	t.Setenv("HOLDFAST_OPENSEARCH_URL", "https://search.example")
	t.Setenv("HOLDFAST_INDEX_REPLICAS", "0")
	t.Setenv("HOLDFAST_TOMBSTONE_LIFE", "720h")
	started := false
	err := run(t.Context(), "query", func(app *lambdahost.App) error {
		started = true
		if _, err := app.Query(); err != nil {
			return err
		}
		if _, err := app.Relay(); err != nil {
			return err
		}
		_, err := app.Indexer()
		return err
	})
	if err != nil || !started {
		t.Errorf("started %v, %v", started, err)
	}
}

func TestWhatIsWrongWithTheEnvironmentIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ variable, value, says string }{
		"no tables": {"HOLDFAST_LOG_LEVEL", "info", "documents table"},
		"level":     {"HOLDFAST_LOG_LEVEL", "loud", "loud"},
		"duration":  {"HOLDFAST_TOMBSTONE_LIFE", "a month", "TombstoneLife"},
		"number":    {"HOLDFAST_INDEX_REPLICAS", "one", "IndexReplicas"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			err := run(t.Context(), "documents", func(*lambdahost.App) error {
				t.Error("it was started")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
