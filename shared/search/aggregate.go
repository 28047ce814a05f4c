package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// aggregate answers the aggregations. The index computes the groups of the
// documents about which it is sure; the others are looked at, within the
// budget, and added. Where a figure cannot be had from two parts, all documents
// are looked at.
func (s *search) aggregate(ctx context.Context, result *Result) error {
	plans, certain, candidates := s.divide()
	apart := true
	for _, p := range plans {
		for _, m := range p.asked.Metrics {
			apart = apart && m.merges()
		}
	}
	answers, err := s.searches(ctx, s.grouping(plans, certain, candidates)...)
	if err != nil {
		return err
	}
	looks := answers[0].Hits.Total.Value
	if looks > 0 && !apart {
		candidates, looks, certain = s.may(), answers[1].Hits.Total.Value, nothing
	}
	if looks > s.client.budget {
		return s.tooCostly("the aggregation", looks)
	}
	tallies := make([]*tally, len(plans))
	estimated := make([][]bool, len(plans))
	begin := func() {
		for i, p := range plans {
			tallies[i] = newTally(p.asked, p.nested)
			estimated[i] = make([]bool, len(p.asked.Metrics))
		}
	}
	begin()
	if certain.constant != never {
		err := s.completeAll(ctx, plans, certain, answers[2:], tallies, estimated)
		if errors.Is(err, errTwoParts) {
			candidates, looks, certain, err = s.may(), answers[1].Hits.Total.Value, nothing, nil
			begin()
			if looks > s.client.budget {
				return s.tooCostly("the aggregation", looks)
			}
		}
		if err != nil {
			return err
		}
	}
	if looks > 0 {
		if err := s.tallyUp(ctx, candidates, tallies, result); err != nil {
			return err
		}
	}
	result.Aggregates = make([]Aggregate, len(plans))
	for i, p := range plans {
		if result.Aggregates[i], err = tallies[i].answer(estimated[i]); err != nil {
			return err
		}
		for _, by := range p.asked.Group {
			if by.Step != "" && certain.constant != never && !exactInDoubles(by.Step) {
				result.Aggregates[i].Exact = false
			}
		}
	}
	return nil
}

// divide tells how the aggregations are asked for, of which documents the index
// computes the groups, and which ones are looked at.
func (s *search) divide() (plans []plan, certain, candidates query) {
	plans = make([]plan, len(s.request.Aggregate))
	var doubts []query
	for i, a := range s.request.Aggregate {
		plans[i] = plan{asked: a, nested: s.nestedFor(a)}
		doubts = append(doubts, a.doubtful(plans[i].nested))
	}
	doubt := anyOf(doubts...)
	return plans, allOf(s.scope, s.reading.sure, not(doubt)), allOf(s.may(), anyOf(not(s.reading.sure), doubt))
}

// grouping are the first searches of the aggregations: for how many documents
// have to be looked at, for how many there are, and, unless the index is certain
// of none, for the groups of each aggregation.
func (s *search) grouping(plans []plan, certain, candidates query) []object {
	number := func(q query) object { return object{"query": q.dsl(), "size": 0, "track_total_hits": true} }
	bodies := []object{number(candidates), number(s.may())}
	if certain.constant != never {
		for _, p := range plans {
			bodies = append(bodies, p.body(certain, nil))
		}
	}
	return bodies
}

// errTwoParts says that the index has a group in two parts, without a key and
// with null as its key, whose figures cannot be had from those of the parts.
var errTwoParts = errors.New("figures of two parts of one group")

// completeAll takes the first answers and fetches the rest of each.
func (s *search) completeAll(ctx context.Context, plans []plan, q query, first []found, tallies []*tally, estimated [][]bool) error {
	for i, p := range plans {
		if err := s.complete(ctx, p, q, first[i], tallies[i], estimated[i]); err != nil {
			return err
		}
	}
	return nil
}

// tallyUp looks at the candidates and counts those that match.
func (s *search) tallyUp(ctx context.Context, candidates query, tallies []*tally, result *Result) error {
	hits, looked := s.stream(candidates, orderOf(nil), nil, firstChunk), 0
	for {
		h, _, err := hits.next(ctx, mostChunk)
		if err != nil {
			return err
		}
		if h == nil {
			result.Examined = max(result.Examined, looked)
			return nil
		}
		if looked++; looked > s.client.budget {
			return s.tooCostly("the aggregation", looked)
		}
		d, matches, _, err := s.decide(ctx, h, result)
		if err == nil && d.Data == nil {
			d, err = h.document()
		}
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		for _, t := range tallies {
			if err := t.add(&d); err != nil {
				return err
			}
		}
	}
}

// complete takes the groups of the first answer and fetches the rest.
func (s *search) complete(ctx context.Context, p plan, q query, first found, t *tally, estimated []bool) error {
	for answer := first; ; {
		after, err := p.read(answer, t, estimated)
		if errors.Is(err, errTwoParts) {
			return err
		}
		if err != nil {
			return unavailable(fmt.Errorf("read an aggregation of opensearch: %w", err))
		}
		if len(t.groups) > MaxGroups {
			return tooManyGroups()
		}
		if after == nil {
			return nil
		}
		answers, err := s.searches(ctx, p.body(q, after))
		if err != nil {
			return err
		}
		answer = answers[0]
	}
}

// bucket is one of OpenSearch's, or everything at the top of an answer.
type bucket map[string]json.RawMessage

// aggregated is the answer of any one of the aggregations that are used.
type aggregated struct {
	DocCount int             `json:"doc_count"`
	Buckets  []bucket        `json:"buckets"`
	AfterKey json.RawMessage `json:"after_key"`
	// stats
	Count  int             `json:"count"`
	Sum    float64         `json:"sum"`
	Min    float64         `json:"min"`
	Max    float64         `json:"max"`
	Value  json.RawMessage `json:"value"`
	Values []struct {
		Value *float64 `json:"value"`
	} `json:"values"`
}

func (b bucket) part(name string) (aggregated, error) {
	var a aggregated
	text, ok := b[name]
	if !ok {
		return a, nil
	}
	err := json.Unmarshal(text, &a)
	return a, err
}

func (b bucket) inner(name string) (bucket, error) {
	inner := bucket{}
	text, ok := b[name]
	if !ok {
		return inner, nil
	}
	err := json.Unmarshal(text, &inner)
	return inner, err
}

func (b bucket) number(name string) (n int, err error) {
	if text, ok := b[name]; ok {
		err = json.Unmarshal(text, &n)
	}
	return n, err
}

// read adds an answer's groups to the tally. after is not nil where there may
// be more.
func (p plan) read(answer found, t *tally, estimated []bool) (after any, err error) {
	top := bucket(answer.Aggregations)
	if p.nested != "" {
		for range 2 {
			if top, err = top.inner(aggInner); err != nil {
				return nil, err
			}
		}
	}
	if len(p.asked.Group) == 0 {
		g := t.group(nil)
		g.docs += answer.Hits.Total.Value
		return nil, p.readFigures(top, g, estimated)
	}
	groups, err := top.part(aggGroups)
	if err != nil {
		return nil, err
	}
	for _, b := range groups.Buckets {
		key, ok, err := p.key(b)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := p.readGroup(b, t.group(key), estimated); err != nil {
			return nil, err
		}
	}
	if without, there := top[aggWithout]; there {
		var b bucket
		if err := json.Unmarshal(without, &b); err != nil {
			return nil, err
		}
		if n, err := b.number("doc_count"); err != nil {
			return nil, err
		} else if n > 0 {
			if err := p.readGroup(b, t.group([]keyPart{{}}), estimated); err != nil {
				return nil, err
			}
		}
	}
	if p.composite() && len(groups.Buckets) == p.pageSize() {
		return groups.AfterKey, nil
	}
	return nil, nil
}

func (p plan) readGroup(b bucket, g *group, estimated []bool) error {
	docs, err := b.number("doc_count")
	if err == nil && p.nested != "" {
		var owner bucket
		if owner, err = b.inner(aggOwner); err == nil {
			docs, err = owner.number("doc_count")
		}
	}
	if err != nil {
		return err
	}
	g.docs += docs
	return p.readFigures(b, g, estimated)
}

func (p plan) readFigures(b bucket, g *group, estimated []bool) error {
	owner := b
	if p.nested != "" {
		var err error
		if owner, err = b.inner(aggOwner); err != nil {
			return err
		}
	}
	for i, m := range p.asked.Metrics {
		if m.Kind == Count {
			continue
		}
		from, name := b, "m"+strconv.Itoa(i)
		if p.nested != "" && !below(p.nested, m.Path) {
			from = owner
		}
		a, err := from.part(name)
		if err != nil {
			return err
		}
		f := &g.figures[i]
		switch m.Kind {
		case Sum, Avg, Stats:
			f.merge(a.Count, a.Sum, a.Min, a.Max)
		case Min, Max:
			if len(a.Buckets) == 0 {
				continue
			}
			v, ok, err := scalarKey(a.Buckets[0]["key"])
			if err != nil || !ok {
				return fmt.Errorf("the key %s is none of ours: %w", a.Buckets[0]["key"], err)
			}
			f.offer(m.Kind, v)
		case Percentiles:
			at := func(i int, _ float64) (float64, bool) {
				if i >= len(a.Values) || a.Values[i].Value == nil {
					return 0, false
				}
				return *a.Values[i].Value, true
			}
			_, some := at(0, 0)
			if err := f.tell(percentilesOf(m, at), some); err != nil {
				return err
			}
		case Cardinality:
			n, err := cardinality(a, from, name)
			if err != nil {
				return err
			}
			if err := f.tell(json.Number(strconv.Itoa(n)), n > 0); err != nil {
				return err
			}
			estimated[i] = estimated[i] || n > 0
		}
	}
	return nil
}

// tell takes the index's word for a figure that cannot be merged; some says that
// there were any values at all.
func (f *figure) tell(figure any, some bool) error {
	switch {
	case f.isTold && f.hasSome && some:
		return errTwoParts
	case f.isTold && !some:
		return nil
	}
	f.told, f.isTold, f.hasSome = figure, true, some
	return nil
}

func cardinality(a aggregated, from bucket, name string) (n int, err error) {
	if len(a.Value) == 0 {
		return 0, nil
	}
	if err = json.Unmarshal(a.Value, &n); err != nil {
		return 0, err
	}
	nulls, err := from.part(name + nullsOf)
	if err == nil && len(nulls.Buckets) > 0 && n > 0 {
		n-- // null is no value
	}
	return n, err
}

// key is the key of a group; false where null makes no group.
func (p plan) key(b bucket) (key []keyPart, ok bool, err error) {
	if !p.composite() {
		part, ok, err := p.asked.Group[0].bucketPart(b["key"])
		return []keyPart{part}, ok, err
	}
	parts, err := b.inner("key")
	if err != nil {
		return nil, false, err
	}
	key = make([]keyPart, len(p.asked.Group))
	for i, by := range p.asked.Group {
		text := parts["k"+strconv.Itoa(i)]
		var ok bool
		if key[i], ok, err = by.bucketPart(text); err != nil {
			return nil, false, err
		}
		if !ok && !p.asked.MissingNull {
			return nil, false, nil
		}
	}
	return key, true, nil
}

// bucketPart is one part of a bucket's key; false for null.
func (by GroupBy) bucketPart(text json.RawMessage) (part keyPart, ok bool, err error) {
	if len(text) == 0 || string(text) == "null" {
		return keyPart{}, false, nil
	}
	switch {
	case by.Field.Pseudo != "":
		var s string
		err = json.Unmarshal(text, &s)
		return keyPart{s, s}, true, err
	case by.plain():
		v, ok, err := scalarKey(text)
		return keyPart{v, v}, ok && v != nil, err
	}
	var f float64
	if err = json.Unmarshal(text, &f); err != nil {
		return keyPart{}, false, err
	}
	if by.Step != "" {
		return by.stepPart(stepAt(f, by.Step)), true, nil
	}
	return by.timePart(time.UnixMilli(int64(f))), true, nil
}

// scalarKey decodes a text of the $key leaf.
func scalarKey(text json.RawMessage) (v any, ok bool, err error) {
	var s string
	if err = json.Unmarshal(text, &s); err != nil {
		return nil, false, err
	}
	v, ok = scalarOf(s)
	if !ok {
		return nil, false, fmt.Errorf("%.40q is no key of a scalar", s)
	}
	return v, true, nil
}
