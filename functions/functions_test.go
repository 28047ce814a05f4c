package functions

import (
	"strings"
	"testing"

	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
)

func TestAFunctionStartsFromItsEnvironment(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("HOLDFAST_DOCUMENTS_TABLE", "documents")
	t.Setenv("HOLDFAST_STATE_TABLE", "state")
	t.Setenv("HOLDFAST_SIGNALS_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/signals")
	t.Setenv("HOLDFAST_DEAD_LETTERS_URL", "https://sqs.eu-west-1.amazonaws.com/1/dead")
	t.Setenv("HOLDFAST_RELAY_FAILURES_URL", "https://sqs.eu-west-1.amazonaws.com/1/given-up")
	t.Setenv("HOLDFAST_OPENSEARCH_URL", "https://search.example")
	t.Setenv("HOLDFAST_INDEX_REPLICAS", "0")
	t.Setenv("HOLDFAST_TOMBSTONE_LIFE", "720h")
	started := false
	err := run("query", queues.Open, func(app *lambdahost.App) error {
		started = true
		if _, err := app.Query(nil); err != nil {
			return err
		}
		if _, err := app.Relay(); err != nil {
			return err
		}
		if _, err := app.Admin(); err != nil {
			return err
		}
		if _, err := app.Repair(); err != nil {
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
	t.Setenv("AWS_REGION", "eu-west-1")
	for name, c := range map[string]struct{ variable, value, says string }{
		"region":    {"AWS_REGION", "", "AWS_REGION"},
		"no tables": {"HOLDFAST_LOG_LEVEL", "info", "documents table"},
		"level":     {"HOLDFAST_LOG_LEVEL", "loud", "loud"},
		"duration":  {"HOLDFAST_TOMBSTONE_LIFE", "a month", "TombstoneLife"},
		"number":    {"HOLDFAST_INDEX_REPLICAS", "one", "IndexReplicas"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			err := run("documents", nil, func(*lambdahost.App) error {
				t.Error("it was started")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCredentialsAreThoseOfTheRole(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "token")
	c, err := awsConfig()
	if err != nil || c.Region != "eu-west-1" {
		t.Fatalf("%q, %v", c.Region, err)
	}
	got, err := c.Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "id" || got.SecretAccessKey != "secret" || got.SessionToken != "token" || got.CanExpire {
		t.Errorf("%+v, %v", got, err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := c.Credentials.Retrieve(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("%v", err)
	}
}
