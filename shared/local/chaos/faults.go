package chaos

import (
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"holdfast/shared/local/engines"
	"holdfast/shared/local/faultproxy"
)

// gate is the proxy between the functions and an engine.
type gate struct {
	engine engines.Name
	proxy  *faultproxy.Proxy

	mu       sync.Mutex
	requests int
	met      map[string]int // by fault
}

func newGate(n engines.Name, url string, seed uint64) *gate {
	return &gate{engine: n, proxy: faultproxy.StartSeeded(url, seed), met: map[string]int{}}
}

// open has requests meet faults at a rate.
func (g *gate) open(rate float64, seed uint64) { g.proxy.Set(rules(g.engine, rate, seed)...) }

// close ends the faults, and returns when nothing is on its way any more that
// met one before.
func (g *gate) close() {
	g.proxy.Set()
	g.proxy.Settle()
}

func (g *gate) end() { g.proxy.Close() }

// count takes up what the proxy has seen.
func (g *gate) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.proxy.Take() {
		g.requests++
		if s.Fault != "" {
			g.met[s.Fault]++
		}
	}
}

func (g *gate) faults() (n int) {
	g.count()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.met {
		n += m
	}
	return n
}

// figures are how many requests there were, and how many met which fault.
func (g *gate) figures() (requests int, met map[string]int) {
	g.count()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests, maps.Clone(g.met)
}

// What engines say when they have too much to do, in their own words.
const (
	throttledTable = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"Rate of requests exceeds the allowed throughput."}`
	throttledQueue = `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"The request was denied due to request throttling."}`
	failedAWS      = `{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"The service is unavailable."}`
	busySearch     = `{"error":{"type":"circuit_breaking_exception","reason":"[parent] Data too large"},"status":429}`
	failedSearch   = `{"error":{"type":"cluster_manager_not_discovered_exception","reason":null},"status":503}`
	rejectedItem   = "opensearch_rejected_execution_exception"
)

// manyAtOnce is how much more often requests fail that carry many documents each,
// and of which there are few.
const manyAtOnce = 2

// rules are the faults of an engine, all as likely as each other; rate is the
// share of the requests to the table that meet one of them. Of those to the queue
// and the index it is twice as many, and writes to the index meet faults of their
// own besides, as often.
func rules(n engines.Name, rate float64, seed uint64) []faultproxy.Rule {
	if n != engines.DynamoDB {
		rate *= manyAtOnce
	}
	everywhere := []faultproxy.Fault{faultproxy.Drop(), faultproxy.LoseAnswer(0), faultproxy.LoseAnswer(30), faultproxy.DelayUpTo(1500 * time.Millisecond)}
	var bulk []faultproxy.Fault
	switch n {
	case engines.DynamoDB:
		everywhere = append(everywhere, faultproxy.Answer(400, throttledTable), faultproxy.Answer(503, failedAWS), faultproxy.Late(500*time.Millisecond))
	case engines.SQS:
		everywhere = append(everywhere, faultproxy.Answer(429, throttledQueue), faultproxy.Answer(503, failedAWS), faultproxy.Late(5*time.Second))
	case engines.OpenSearch:
		everywhere = append(everywhere, faultproxy.Answer(429, busySearch), faultproxy.Answer(503, failedSearch))
		bulk = append(bulk, faultproxy.Late(5*time.Second), faultproxy.RejectItems(429, rejectedItem, aThird(seed)))
	}
	var all []faultproxy.Rule
	add := func(path string, faults []faultproxy.Fault) {
		for _, f := range faults {
			if rate > 0 {
				all = append(all, faultproxy.Rule{Path: path, Rate: rate / float64(len(faults)), Fault: f})
			}
		}
	}
	add("/_bulk", bulk)
	add("", everywhere)
	return all
}

// aThird chooses a third of the documents, by chance.
func aThird(seed uint64) func(id string) bool {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(seed, 3))
	return func(string) bool {
		mu.Lock()
		defer mu.Unlock()
		return chance.IntN(3) == 0
	}
}
