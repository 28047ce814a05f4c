package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

const (
	mostCollections = 100  // of one query
	mostSortKeys    = 10   // of one query
	mostTokens      = 1000 // of one query
	mostPaths       = 100  // of fields, and of include

	standardWait = 5 * time.Second
	longestWait  = 20 * time.Second
)

// queryRequest is the body of POST /query.
type queryRequest struct {
	from   []doc.Collection // distinct
	filter filter.Expr
	sort   []search.SortKey
	limit  int
	after  string
	count  bool
	wait   *waitRequest // nil: answer with what there is

	explain bool // tell what the query becomes, instead

	reads reading // of from

	fields    []value.Path
	projected bool         // answer with fields only
	include   []value.Path // nil: nothing
	where     func(ctx context.Context, data map[string]any) (bool, error)
	whereText string
	verified  bool // read what was found again

	aggregations     []search.Aggregation // nil: none
	aggregationNames []namedAggregation
}

// variant is what a cursor belongs to beside from, filter and sort.
func (q *queryRequest) variant() string {
	text := ""
	if q.verified {
		text = "verified"
	}
	if q.where != nil {
		text += " where " + q.whereText
	}
	return text
}

// waitRequest is what a query waits for before it is run.
type waitRequest struct {
	signals    []doc.Signal
	asOfNow    bool // also for everything that was written before
	timeout    time.Duration
	acceptLate bool // after the timeout answer with what there is
}

// parseQueryRequest reads a query. A refusal names the place by its pointer.
// find tells in which indexes the collections are read that it is about.
func parseQueryRequest(body []byte, conditions Conditions, find func([]doc.Collection) (reading, error)) (*queryRequest, error) {
	object, err := readObject(body, doc.InvalidQuery, "from", "filter", "sort", "limit", "after", "count", "wait",
		"where", "scan", "fields", "include", "aggregate", "read", "explain")
	if err != nil {
		return nil, err
	}
	q := &queryRequest{limit: standardPage}
	if q.from, err = parseFrom(object["from"]); err != nil {
		return nil, err
	}
	if q.reads, err = find(q.from); err != nil {
		return nil, err
	}
	given, filtered := object["filter"]
	if !filtered {
		given = map[string]any{}
	}
	if q.filter, err = filter.Parse(given, filter.ParseOptions{Pointer: "/filter", Text: q.reads.text}); err != nil {
		return nil, err
	}
	if given, has := object["sort"]; has {
		if q.sort, err = parseSort(given); err != nil {
			return nil, err
		}
	}
	if given, has := object["limit"]; has {
		number, ok := given.(json.Number)
		n, err := strconv.Atoi(string(number)) // canonical: 1e2 is 100 here
		if !ok || err != nil || n < 0 || n > largestPage {
			return nil, at(doc.Errorf(doc.InvalidQuery, "limit is a whole number from 0 to %d", largestPage).With("limit", largestPage), "/limit")
		}
		q.limit = n
	}
	if given, has := object["after"]; has {
		text, ok := given.(string)
		if !ok || text == "" {
			return nil, at(doc.Errorf(doc.InvalidQuery, "after is the text of an earlier answer's next"), "/after")
		}
		q.after = text
	}
	if given, has := object["count"]; has {
		count, ok := given.(bool)
		if !ok {
			return nil, at(doc.Errorf(doc.InvalidQuery, "count is true or false"), "/count")
		}
		q.count = count
	}
	if given, has := object["wait"]; has {
		if q.wait, err = parseWait(given); err != nil {
			return nil, err
		}
	}
	if given, has := object["explain"]; has {
		explain, ok := given.(bool)
		if !ok {
			return nil, at(doc.Errorf(doc.InvalidQuery, "explain is true or false"), "/explain")
		}
		q.explain = explain
	}
	if given, has := object["fields"]; has {
		q.projected = true
		if q.fields, err = parsePaths(given, "fields"); err != nil {
			return nil, err
		}
	}
	if given, has := object["include"]; has {
		if q.include, err = parsePaths(given, "include"); err != nil {
			return nil, err
		}
	}
	if given, has := object["aggregate"]; has {
		if q.aggregationNames, q.aggregations, err = parseAggregate(given); err != nil {
			return nil, err
		}
	}
	if given, has := object["read"]; has {
		switch given {
		case "indexed":
		case "verified":
			q.verified = true
		default:
			return nil, at(doc.Errorf(doc.InvalidQuery, "read is indexed or verified"), "/read")
		}
	}
	if err := q.parseWhere(object, conditions); err != nil {
		return nil, err
	}
	return q, nil
}

// parseWhere reads the members where and scan.
func (q *queryRequest) parseWhere(object map[string]any, conditions Conditions) (err error) {
	scan := false
	if given, has := object["scan"]; has {
		var ok bool
		if scan, ok = given.(bool); !ok {
			return at(doc.Errorf(doc.InvalidQuery, "scan is true or false"), "/scan")
		}
	}
	given, has := object["where"]
	if !has {
		return nil
	}
	text, ok := given.(string)
	conditional, _ := object["filter"].(map[string]any)
	switch {
	case !ok:
		return at(doc.Errorf(doc.InvalidQuery, "where is an expression such as doc.shippedDate > doc.requiredDate"), "/where")
	case conditions == nil:
		return at(doc.Errorf(doc.InvalidQuery, "where is not available here"), "/where")
	case object["aggregate"] != nil:
		return at(doc.Errorf(doc.InvalidQuery, "where and aggregate do not go together"), "/where")
	case len(conditional) == 0 && !scan:
		return at(doc.Errorf(doc.InvalidQuery, `where looks at every document that the filter leaves: give a filter, or say "scan":true`), "/where")
	}
	if q.where, err = conditions.Predicate(text); err != nil {
		return at(err, "/where")
	}
	q.whereText = text
	return nil
}

// parsePaths reads a list of paths inside a document.
func parsePaths(v any, member string) ([]value.Path, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, at(doc.Errorf(doc.InvalidQuery, "%s is a list of paths", member), value.Pointer(member))
	}
	if len(list) > mostPaths {
		return nil, at(tooCostly("a query names at most %d paths", mostPaths, len(list)), value.Pointer(member))
	}
	paths := make([]value.Path, 0, len(list)) // not nil: it was asked for
	for i, v := range list {
		pointer := value.Pointer(member, strconv.Itoa(i))
		text, ok := v.(string)
		if !ok {
			return nil, at(doc.Errorf(doc.InvalidQuery, "a path is a string"), pointer)
		}
		p, err := value.ParsePath(text)
		if err != nil {
			return nil, at(doc.Errorf(doc.InvalidQuery, "%s", detailOf(err)), pointer)
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// parseFrom reads a collection or a list of them.
func parseFrom(v any) ([]doc.Collection, error) {
	list, ok := v.([]any)
	if !ok {
		name, err := parseCollection(v, "/from")
		return []doc.Collection{name}, err
	}
	if len(list) == 0 {
		return nil, at(doc.Errorf(doc.InvalidQuery, "from names at least one collection"), "/from")
	}
	if len(list) > mostCollections {
		return nil, at(doc.Errorf(doc.QueryTooCostly, "a query looks into at most %d collections", mostCollections).
			With("limit", mostCollections).With("actual", len(list)), "/from")
	}
	var from []doc.Collection
	for i, v := range list {
		name, err := parseCollection(v, value.Pointer("from", strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(from, name) {
			from = append(from, name)
		}
	}
	return from, nil
}

func parseCollection(v any, pointer string) (doc.Collection, error) {
	text, ok := v.(string)
	if !ok {
		return "", at(doc.Errorf(doc.InvalidQuery, "from is the name of a collection, such as users or users/account, or a list of names"), pointer)
	}
	name, err := doc.ParseCollection(text)
	if err != nil {
		return "", at(doc.Errorf(doc.InvalidQuery, "no name of a collection: %s", detailOf(err)), pointer)
	}
	if name.System() {
		return "", at(doc.Errorf(doc.InvalidQuery, "collections whose name begins with $ are the system's own"), pointer)
	}
	return name, nil
}

// parseSort reads a list of objects with one member each, {"path":"asc"}.
func parseSort(v any) ([]search.SortKey, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, at(doc.Errorf(doc.InvalidQuery, `sort is a list such as [{"orderDate":"desc"}]`), "/sort")
	}
	if len(list) > mostSortKeys {
		return nil, at(doc.Errorf(doc.QueryTooCostly, "a query sorts by at most %d fields", mostSortKeys).
			With("limit", mostSortKeys).With("actual", len(list)), "/sort")
	}
	var keys []search.SortKey
	for i, v := range list {
		object, ok := v.(map[string]any)
		if !ok || len(object) != 1 {
			return nil, at(doc.Errorf(doc.InvalidQuery, `an element of sort has one member, {"path":"asc"} or {"path":"desc"}`), value.Pointer("sort", strconv.Itoa(i)))
		}
		for name, order := range object {
			pointer := value.Pointer("sort", strconv.Itoa(i), name)
			if order != "asc" && order != "desc" {
				return nil, at(doc.Errorf(doc.InvalidQuery, "the order is asc or desc"), pointer)
			}
			if strings.HasPrefix(name, "$") && !filter.IsPseudo(name) {
				return nil, at(doc.Errorf(doc.InvalidQuery, "the envelope has no such field; a document's own name with a leading $ is reached by a pointer, /%s", name), pointer)
			}
			field, err := filter.ParseField(name)
			if err != nil {
				return nil, at(doc.Errorf(doc.InvalidQuery, "%s", detailOf(err)), pointer)
			}
			keys = append(keys, search.SortKey{Path: field.Path, Pseudo: field.Pseudo, Desc: order == "desc"})
		}
	}
	return keys, nil
}

// parseWait reads the member wait.
func parseWait(v any) (*waitRequest, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, at(doc.Errorf(doc.InvalidQuery, "wait is an object with tokens, asOfNow, timeout and onTimeout"), "/wait")
	}
	if err := onlyMembers(object, doc.InvalidQuery, "/wait", "tokens", "asOfNow", "timeout", "onTimeout"); err != nil {
		return nil, err
	}
	w := &waitRequest{timeout: standardWait}
	if given, has := object["timeout"]; has {
		text, _ := given.(string)
		timeout, ok := parseDuration(text)
		if !ok || timeout > longestWait {
			return nil, at(doc.Errorf(doc.InvalidQuery, "timeout is a number with s or ms, such as 5s or 200ms, and at most %s", longestWait), "/wait/timeout")
		}
		w.timeout = timeout
	}
	if given, has := object["onTimeout"]; has {
		switch given {
		case "error":
		case "stale":
			w.acceptLate = true
		default:
			return nil, at(doc.Errorf(doc.InvalidQuery, "onTimeout is error or stale"), "/wait/onTimeout")
		}
	}
	if given, has := object["asOfNow"]; has {
		if w.asOfNow, ok = given.(bool); !ok {
			return nil, at(doc.Errorf(doc.InvalidQuery, "asOfNow is true or false"), "/wait/asOfNow")
		}
		if _, has := object["tokens"]; !has {
			return w, nil
		}
	}
	tokens, ok := object["tokens"].([]any)
	if !ok {
		return nil, at(doc.Errorf(doc.InvalidQuery, "tokens is a list of what writes answered as Holdfast-Token"), "/wait/tokens")
	}
	if len(tokens) > mostTokens {
		return nil, at(doc.Errorf(doc.InvalidQuery, "a query waits for at most %d tokens", mostTokens).
			With("limit", mostTokens).With("actual", len(tokens)), "/wait/tokens")
	}
	var texts []string
	for i, v := range tokens {
		text, ok := v.(string)
		if !ok {
			return nil, at(doc.Errorf(doc.InvalidQuery, "a token is a string"), value.Pointer("wait", "tokens", strconv.Itoa(i)))
		}
		if text == "" {
			// What /bulk answers when it wrote nothing: there is nothing to wait for.
			continue
		}
		if _, err := freshness.ParseToken(text); err != nil {
			return nil, at(err, value.Pointer("wait", "tokens", strconv.Itoa(i)))
		}
		texts = append(texts, text)
	}
	var err error
	w.signals, err = freshness.ParseTokens(texts, "/wait/tokens")
	return w, err
}

// parseDuration reads digits with s or ms.
func parseDuration(text string) (time.Duration, bool) {
	unit := time.Second
	digits, ok := strings.CutSuffix(text, "ms")
	if ok {
		unit = time.Millisecond
	} else if digits, ok = strings.CutSuffix(text, "s"); !ok {
		return 0, false
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

// detailOf is what an error tells a client.
func detailOf(err error) string {
	var e *doc.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return "it cannot be read"
}
