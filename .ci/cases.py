"""Which function gets which payload of events/, in order, and what has to come of it.

A case is (function, name of the payload, check). A check gives what is wrong
with the answer, or nothing.
"""

import base64
import gzip
import json


def status(wanted, **headers):
    def check(answer):
        if not isinstance(answer, dict) or answer.get("statusCode") != wanted:
            return f"it is not {wanted}"
        got = {k.lower(): v for k, v in answer.get("headers", {}).items()}
        if "holdfast-request-id" not in got:
            return "it has no request id"
        for name, part in headers.items():
            if part not in got.get(name.replace("_", "-"), ""):
                return f"its header {name} lacks {part}"
    return check


def body(wanted, test, what):
    def check(answer):
        wrong = status(wanted)(answer)
        if wrong:
            return wrong
        text = answer["body"]
        if answer.get("isBase64Encoded"):
            text = gzip.decompress(base64.b64decode(text)).decode()
        if not test(text):
            return f"{what}: {text[:300]}"
    return check


def failures(*identifiers):
    def check(answer):
        got = sorted(f["itemIdentifier"] for f in answer["batchItemFailures"]) if isinstance(answer, dict) and "batchItemFailures" in answer else None
        if got != sorted(identifiers):
            return f"it does not fail {list(identifiers)} and nothing else"
    return check


def repaired(answer):
    if not isinstance(answer, dict) or answer.get("held") is not True or "report" not in answer:
        return "it did not run"


D, Q, A, R, X, P = "DocumentsFunction", "QueryFunction", "AdminFunction", "RelayFunction", "IndexerFunction", "RepairFunction"

CASES = [
    (D, "http-put", status(201, etag='"', holdfast_token="")),
    (D, "http-put-base64", status(201)),
    (D, "http-put-conditions", status(412)),
    (D, "http-create", status(201, location="/docs/users/1/account/")),
    (D, "http-odd-path", body(201, lambda b: json.loads(b)["id"] == "users/a b+c/50%/%41/é/日本;x=1,y?q#f&g", "another id")),
    (D, "http-get", body(200, lambda b: json.loads(b) == {"name": "Ada", "born": 1815, "tags": ["first"]}, "not what was put")),
    (D, "http-get-fields", body(200, lambda b: json.loads(b) == {"name": "Ada"}, "other fields")),
    (D, "http-get-by-query", status(404)),
    (D, "http-head", body(200, lambda b: b == "", "a body")),
    (D, "http-bulk", body(200, lambda b: len(b.splitlines()) == 3, "not a line per line")),
    (D, "http-load", body(200, lambda b: json.loads(b)["documents"]["users/absent"] is None, "no null")),
    (D, "http-prefix", body(200, lambda b: len(json.loads(b)["documents"]) == 1, "another number of documents")),
    (D, "http-prefix-gzip", status(200)),
    (D, "http-repeated-parameter", status(400)),
    (D, "http-changes", body(200, lambda b: "safeThrough" in json.loads(b), "no instant")),
    (D, "http-ids", body(200, lambda b: len(set(json.loads(b)["ids"])) == 3, "not three identifiers")),
    (D, "http-delete", status(412)),
    (D, "http-openapi", body(200, lambda b: json.loads(b)["openapi"].startswith("3."), "no description")),
    (D, "http-options", status(405, allow="PUT")),
    (D, "http-root", status(404)),
    (D, "http-unknown", status(404)),
    (D, "http-stage", status(200)),
    (D, "http-stage-default-route", status(200)),
    (D, "http-domain", status(201, location="/store/v1/docs/users/")),
    (D, "http-domain-stage", status(404)),
    (D, "http-jwt", status(200)),
    (D, "http-rest-get", body(200, lambda b: json.loads(b) == {"name": "Ada"}, "other fields")),
    (D, "http-rest-head", status(200)),
    (D, "http-rest-options", status(405)),
    (D, "http-rest-put-base64", status(200)),
    (D, "http-rest-multi", status(412)),
    (D, "http-rest-odd-path", status(404)),
    (D, "http-rest-query-parameters", status(400)),
    (D, "http-rest-domain", status(200)),
    (D, "http-rest-domain-stage", status(200)),
    (A, "http-collection-put", body(200, lambda b: "generation" in json.loads(b), "no generation")),
    (A, "http-collection-get", status(200, etag='"')),
    (A, "http-collections", body(200, lambda b: "users" in b, "not the collections")),
    (R, "stream", failures()),
    (R, "stream-types", failures()),
    (R, "stream-foreign", failures()),
    (R, "stream-ttl", failures()),
    (X, "signals", failures("059f36b4-87a3-44ab-83d2-66197562a7d2")),
    (X, "signals-again", failures()),
    (X, "relay-failure", failures("059f36b4-87a3-44ab-83d2-66197562a7d4")),
    (P, "schedule-prove", repaired),
    (P, "schedule-compare", repaired),
    (A, "http-status", body(200, lambda b: isinstance(json.loads(b)["healthy"], bool), "no status")),
    (A, "http-quarantine", body(200, lambda b: "entries" in json.loads(b), "no entries")),
    (A, "http-quarantine-retry", body(202, lambda b: "signalled" in json.loads(b), "no number of signals")),
    (A, "http-jobs", body(200, lambda b: len(json.loads(b)["jobs"]) == 2, "not the jobs")),
    (A, "http-job", body(200, lambda b: json.loads(b)["last"]["mode"] == "compare", "not the last run")),
    (A, "http-job-start", status(202)),
    (A, "http-dead-letters", body(200, lambda b: json.loads(b)["messages"] == [], "messages")),
    (A, "http-dead-letters-redrive", body(200, lambda b: json.loads(b)["moved"] == 0, "moved messages")),
    (Q, "http-query", body(200, lambda b: "staleness" in json.loads(b), "no staleness")),
    (Q, "http-query-now", body(200, lambda b: "staleness" in json.loads(b), "no staleness")),
    (Q, "http-query-get", status(405, allow="POST")),
    (Q, "http-domain-query", body(200, lambda b: "documents" in json.loads(b), "no documents")),
]
