package local

import (
	"strings"
	"testing"
	"time"

	"holdfast/shared/local/engines"
)

func TestAStackThatCannotWorkIsRefusedAtOnce(t *testing.T) {
	for part, o := range map[string]Options{
		"data directory": {},
		"where opensearch is": {DataDir: t.TempDir(), Engines: map[engines.Name]string{
			engines.DynamoDB: "http://127.0.0.1:1", engines.SQS: "http://127.0.0.1:1",
		}},
		"the indexer may take": {DataDir: t.TempDir(), Visibility: time.Second},
	} {
		o.Address = "127.0.0.1:0"
		s, err := Start(t.Context(), o)
		if err == nil {
			s.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func TestAStackOnOtherEnginesKillsNone(t *testing.T) {
	s := &Stack{}
	if err := s.Kill(string(engines.SQS)); err == nil || s.Engines() != nil {
		t.Errorf("%v, %v", err, s.Engines())
	}
}
