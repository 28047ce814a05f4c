package search

// query is a piece of OpenSearch's query DSL in filter context. The two that
// need no engine to decide, everything and nothing, are kept apart, so that
// they vanish from whatever they are combined with.
type query struct {
	constant constant
	body     object
	clauses  int // what OpenSearch counts against its limit of clauses
}

type constant int

const (
	undecided constant = iota
	always
	never
)

var (
	everything = query{constant: always}
	nothing    = query{constant: never}
)

func leaf(body object) query { return query{body: body, clauses: 1} }

func term(field string, v any) query {
	return leaf(object{"term": object{field: v}})
}

// terms matches any of the values; none match without values.
func terms[T any](field string, values []T) query {
	switch len(values) {
	case 0:
		return nothing
	case 1:
		return term(field, values[0])
	}
	return leaf(object{"terms": object{field: values}})
}

func rangeOf(field, op string, v any) query {
	return leaf(object{"range": object{field: object{op: v}}})
}

func present(field string) query {
	return leaf(object{"exists": object{"field": field}})
}

func prefix(field, text string) query {
	return leaf(object{"prefix": object{field: text}})
}

// nested finds the documents of which one index document at the nested path
// meets the query.
func nested(path string, q query) query {
	if q.constant == never {
		return nothing
	}
	return query{body: object{"nested": object{"path": fieldTree + "." + path, "query": q.dsl()}}, clauses: q.clauses + 1}
}

func allOf(parts ...query) query {
	var filters, excluded []object
	clauses := 0
	for _, p := range parts {
		switch p.constant {
		case never:
			return nothing
		case always:
			continue
		}
		clauses += p.clauses
		if b, ok := p.body["bool"].(object); ok && b["should"] == nil {
			// A conjunction inside a conjunction needs no level of its own.
			inner, _ := b["filter"].([]object)
			filters = append(filters, inner...)
			out, _ := b["must_not"].([]object)
			excluded = append(excluded, out...)
			continue
		}
		filters = append(filters, p.body)
	}
	switch {
	case len(filters) == 0 && len(excluded) == 0:
		return everything
	case len(filters) == 1 && len(excluded) == 0:
		return query{body: filters[0], clauses: clauses}
	}
	b := object{}
	if len(filters) > 0 {
		b["filter"] = filters
	}
	if len(excluded) > 0 {
		b["must_not"] = excluded
	}
	return query{body: object{"bool": b}, clauses: clauses}
}

func anyOf(parts ...query) query {
	var alternatives []object
	clauses := 0
	for _, p := range parts {
		switch p.constant {
		case always:
			return everything
		case never:
			continue
		}
		clauses += p.clauses
		if b, ok := p.body["bool"].(object); ok && b["should"] != nil {
			alternatives = append(alternatives, b["should"].([]object)...)
			continue
		}
		alternatives = append(alternatives, p.body)
	}
	switch len(alternatives) {
	case 0:
		return nothing
	case 1:
		return query{body: alternatives[0], clauses: clauses}
	}
	return query{body: object{"bool": object{"should": alternatives, "minimum_should_match": 1}}, clauses: clauses}
}

func not(q query) query {
	switch q.constant {
	case always:
		return nothing
	case never:
		return everything
	}
	return query{body: object{"bool": object{"must_not": []object{q.body}}}, clauses: q.clauses}
}

// dsl is the query as OpenSearch takes it.
func (q query) dsl() object {
	switch q.constant {
	case always:
		return object{"match_all": object{}}
	case never:
		return object{"match_none": object{}}
	}
	return q.body
}
