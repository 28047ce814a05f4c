package repair_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"holdfast/shared/jobs/repair"
	"holdfast/shared/obs"
)

// A run measures everything that alarms are about.
func TestARunMeasuresWhatAlarmsAreAbout(t *testing.T) {
	var out bytes.Buffer
	_, r := holding(1000, 10, func(o *repair.Options) { o.Metrics = obs.NewMetrics(&out, "Holdfast", o.Now) })
	if _, held, err := r.Run(t.Context(), repair.Prove); err != nil || !held {
		t.Fatal(held, err)
	}
	measured := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for _, name := range []string{"ProofAge", "FeedLag", "IndexLag", "Missing", "Resignalled", "Quarantined", "Drift", "RebuildAge", "Adopted", "Purged", "Captured"} {
		if _, there := measured[name].(float64); !there {
			t.Errorf("%s is not measured: %s", name, out.String())
		}
	}
	// The proof of this run is one second, the margin, older than its beginning.
	if age := measured["ProofAge"].(float64); age != 1 || !slices.Contains([]float64{10, 11}, measured["Captured"].(float64)) {
		t.Errorf("%s", out.String())
	}
}
