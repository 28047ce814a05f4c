package obs

import (
	"encoding/json"
	"io"
	"math"
	"sync"
	"time"
)

// Limits of the CloudWatch embedded metric format.
//
// Source: Amazon CloudWatch User Guide, "Specification: Embedded metric format",
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
const (
	maxMetricsPerLine = 100 // metric definitions in one metric directive
	maxDimensions     = 30  // keys in one dimension set
)

// Unit is a unit that CloudWatch knows.
type Unit string

// The units in use.
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	Seconds      Unit = "Seconds"
	Bytes        Unit = "Bytes"
)

// Metric is one measured value.
type Metric struct {
	Name  string
	Unit  Unit
	Value float64
}

// Dimension is a name and value by which CloudWatch tells metrics apart. Its
// values are few: never an id or anything else a client chooses.
type Dimension struct{ Name, Value string }

// Metrics writes measurements as log lines in the embedded metric format, from
// which CloudWatch makes metrics without a call. A nil *Metrics writes nothing.
// Metrics is safe for concurrent use.
type Metrics struct {
	namespace string
	fixed     []Dimension
	now       func() time.Time

	mu sync.Mutex
	w  io.Writer
}

// NewMetrics makes a writer of metrics in one namespace. The fixed dimensions
// are on every metric. now may be nil for time.Now.
func NewMetrics(w io.Writer, namespace string, now func() time.Time, fixed ...Dimension) *Metrics {
	if now == nil {
		now = time.Now
	}
	return &Metrics{w: w, namespace: namespace, now: now, fixed: fixed}
}

type directive struct {
	Timestamp         int64             `json:"Timestamp"` // milliseconds since 1970
	CloudWatchMetrics []metricDirective `json:"CloudWatchMetrics"`
}

type metricDirective struct {
	Namespace  string             `json:"Namespace"`
	Dimensions [][]string         `json:"Dimensions"`
	Metrics    []metricDefinition `json:"Metrics"`
}

type metricDefinition struct {
	Name string `json:"Name"`
	Unit Unit   `json:"Unit,omitempty"`
}

// Record writes the metrics, with the dimensions beside the fixed ones, in one
// line or, above 100 metrics, several. Values that are not finite are left out:
// CloudWatch would refuse the whole line. Errors of the writer are not
// reported; a request does not fail for a lost measurement.
func (m *Metrics) Record(metrics []Metric, dimensions ...Dimension) {
	if m == nil {
		return
	}
	for len(metrics) > 0 {
		n := min(len(metrics), maxMetricsPerLine)
		m.line(metrics[:n], dimensions)
		metrics = metrics[n:]
	}
}

func (m *Metrics) line(metrics []Metric, dimensions []Dimension) {
	root := map[string]any{}
	names := []string{}
	for _, set := range [][]Dimension{m.fixed, dimensions} {
		for _, d := range set {
			if _, dup := root[d.Name]; dup || d.Value == "" || len(names) == maxDimensions {
				continue
			}
			root[d.Name] = d.Value
			names = append(names, d.Name)
		}
	}
	var defs []metricDefinition
	for _, v := range metrics {
		if _, taken := root[v.Name]; taken || math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			continue
		}
		root[v.Name] = v.Value
		defs = append(defs, metricDefinition{Name: v.Name, Unit: v.Unit})
	}
	if len(defs) == 0 {
		return
	}
	root["_aws"] = directive{
		Timestamp: m.now().UnixMilli(),
		CloudWatchMetrics: []metricDirective{{
			Namespace: m.namespace, Dimensions: [][]string{names}, Metrics: defs,
		}},
	}
	line, err := json.Marshal(root)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// One Write per line, so that lines of several writers do not mix.
	_, _ = m.w.Write(append(line, '\n'))
}
