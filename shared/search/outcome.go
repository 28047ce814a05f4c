package search

import (
	"net/http"
	"strings"
)

// outcomeOf reads what a bulk answer says about one operation.
func outcomeOf(item bulkResult) Outcome {
	status := item.Status
	var kind, reason string
	if e := item.Error; e != nil {
		kind, reason = e.Type, e.Reason
		for cause := e.CausedBy; cause != nil; cause = cause.CausedBy {
			reason += ": " + cause.Reason
		}
	}
	switch {
	case status/100 == 2:
		return Outcome{Kind: Applied, Status: status}
	case status == http.StatusConflict && kind == "version_conflict_engine_exception":
		return Outcome{Kind: Stale, Status: status}
	case status == http.StatusNotFound && kind == missingIndex:
		return Outcome{Kind: Environment, Status: status, Reason: "the index is missing", IndexMissing: true}
	case status == http.StatusBadRequest && !aboutCluster(kind, reason):
		return Outcome{Kind: Refused, Status: status, Reason: refusal(kind, reason), Field: refusedField(reason)}
	case status == 0:
		return Outcome{Kind: Environment, Reason: "the answer of opensearch did not tell"}
	}
	return Outcome{Kind: Environment, Status: status, Reason: "opensearch could not write: " + kind}
}

// aboutCluster reports whether a 400 says something about the cluster or the
// index and nothing about the document.
func aboutCluster(kind, reason string) bool {
	switch kind {
	case "validation_exception", // this action would add shards, but the cluster has its most
		closedIndex,
		"invalid_index_name_exception",
		"cluster_block_exception",
		"resource_already_exists_exception",
		"invalid_alias_name_exception":
		return true
	}
	return strings.Contains(reason, "maximum shards open") || strings.Contains(reason, "maximum normal shards open")
}

// refusal says why a document was refused without anything of its content:
// OpenSearch likes to quote the value.
func refusal(kind, reason string) string {
	switch {
	case strings.Contains(reason, "Limit of total fields"):
		return kind + ": the index has its most fields"
	case strings.Contains(reason, "Limit of mapping depth"):
		return kind + ": too deep for the index"
	case strings.Contains(reason, "immense term"):
		return kind + ": a value is too long for the index"
	case strings.Contains(reason, "number of nested documents"):
		return kind + ": too many nested documents"
	}
	return kind
}

// refusedField is the field that OpenSearch names in its explanation, or "".
func refusedField(reason string) string {
	for _, mark := range [][2]string{{"failed to parse field [", "] of type"}, {`in field="`, `" (whose`}, {"object mapping for [", "] "}} {
		_, rest, ok := strings.Cut(reason, mark[0])
		if !ok {
			continue
		}
		if field, _, ok := strings.Cut(rest, mark[1]); ok {
			return field
		}
	}
	return ""
}
