package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
)

func TestLevelsByName(t *testing.T) {
	for name, want := range map[string]slog.Level{
		"": slog.LevelInfo, "debug": slog.LevelDebug, "INFO": slog.LevelInfo, "Warn": slog.LevelWarn, "error": slog.LevelError,
	} {
		if got, err := ParseLevel(name); err != nil || got != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil {
		t.Error("an unknown level was accepted")
	}
}

func TestALineIsJSONAndCarriesTheRequestID(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(&out, slog.LevelInfo).With("function", "documents").WithGroup("g")
	log.DebugContext(context.Background(), "below the level")
	log.InfoContext(WithRequestID(context.Background(), "r-1"), "served", "status", 200)
	log.InfoContext(context.Background(), "outside a request")

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	var first struct {
		Msg, Function string
		G             struct {
			Status    int
			RequestID string
		}
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if first.Msg != "served" || first.Function != "documents" || first.G.Status != 200 || first.G.RequestID != "r-1" {
		t.Errorf("%s", lines[0])
	}
	if strings.Contains(lines[1], "requestId") {
		t.Errorf("a line without a request has a request id: %s", lines[1])
	}
}

// emf is the shape that the specification's JSON schema demands of a line.
type emf struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	} `json:"_aws"`
}

func checkEMF(t *testing.T, line []byte) (emf, map[string]any) {
	t.Helper()
	var shape emf
	var root map[string]any
	if err := json.Unmarshal(line, &shape); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &root); err != nil {
		t.Fatal(err)
	}
	if shape.AWS.Timestamp <= 0 || len(shape.AWS.CloudWatchMetrics) == 0 {
		t.Fatalf("no directive in %s", line)
	}
	for _, d := range shape.AWS.CloudWatchMetrics {
		if d.Namespace == "" || len(d.Dimensions) == 0 || len(d.Metrics) == 0 || len(d.Metrics) > 100 {
			t.Fatalf("incomplete directive in %s", line)
		}
		for _, set := range d.Dimensions {
			if len(set) > 30 {
				t.Errorf("%d dimensions", len(set))
			}
			for _, name := range set {
				if v, ok := root[name].(string); !ok || v == "" {
					t.Errorf("dimension %s is no text in the line: %v", name, root[name])
				}
			}
		}
		for _, m := range d.Metrics {
			if _, ok := root[m.Name].(float64); !ok {
				t.Errorf("metric %s is no number in the line: %v", m.Name, root[m.Name])
			}
		}
	}
	return shape, root
}

func TestMetricsHaveTheEmbeddedFormat(t *testing.T) {
	var out bytes.Buffer
	at := time.UnixMilli(1796029203123)
	m := NewMetrics(&out, "Holdfast", func() time.Time { return at }, Dimension{"Function", "documents"})
	m.Record([]Metric{{"Requests", Count, 1}, {"Latency", Milliseconds, 12.5}, {"Broken", Count, math.NaN()}}, Dimension{"Route", "get"}, Dimension{"Empty", ""})

	if bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("not one line: %s", out.String())
	}
	shape, root := checkEMF(t, out.Bytes())
	d := shape.AWS.CloudWatchMetrics[0]
	if shape.AWS.Timestamp != at.UnixMilli() || d.Namespace != "Holdfast" || fmt.Sprint(d.Dimensions) != "[[Function Route]]" ||
		fmt.Sprint(d.Metrics) != "[{Requests Count} {Latency Milliseconds}]" {
		t.Errorf("%s", out.String())
	}
	if root["Latency"] != 12.5 || root["Route"] != "get" {
		t.Errorf("%s", out.String())
	}
}

func TestManyMetricsAreSeveralLines(t *testing.T) {
	var out bytes.Buffer
	var many []Metric
	for i := range 250 {
		many = append(many, Metric{fmt.Sprintf("M%d", i), Count, float64(i)})
	}
	NewMetrics(&out, "Holdfast", nil, Dimension{"Function", "x"}).Record(many)
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		checkEMF(t, line)
	}
}

func TestNoMetricsWriteNothing(t *testing.T) {
	var none *Metrics
	none.Record([]Metric{{"Requests", Count, 1}}) // does not panic
	var out bytes.Buffer
	NewMetrics(&out, "Holdfast", nil).Record([]Metric{{"Broken", Count, math.Inf(1)}})
	if out.Len() != 0 {
		t.Errorf("wrote %s", out.String())
	}
}
