"""Expands template.yaml as SAM does on deployment and checks what comes out.

Usage: template.py TEMPLATE OUTPUT — writes the expansion to OUTPUT as JSON and
fails with a list of what breaks the project's own rules. cfn-lint then reads
the expansion.
"""

import json
import os
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")  # any will do: nothing is called


class NoManagedPolicies:
    """The template writes its policies out, so none has to be looked up."""

    def load(self):
        return {}


def expand(path):
    with open(path, encoding="utf-8") as f:
        template = yaml_parse(f.read())
    for name, r in template["Resources"].items():
        if r["Type"] == "AWS::Serverless::Function":
            folder = os.path.join(os.path.dirname(path), r["Properties"]["CodeUri"])
            if not os.path.exists(os.path.join(folder, "main.go")):
                sys.exit(f"template.yaml: {name} has no code in {folder}")
            r["Properties"]["CodeUri"] = "s3://built/" + name  # what sam package puts there
    return transform(template, {}, NoManagedPolicies())


def of_type(template, kind):
    return {n: r["Properties"] for n, r in template["Resources"].items() if r["Type"] == kind}


def statements(template):
    for kind in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
        for name, p in of_type(template, kind).items():
            documents = [x["PolicyDocument"] for x in p.get("Policies", [])]
            if "PolicyDocument" in p:
                documents.append(p["PolicyDocument"])
            for d in documents:
                for s in d["Statement"]:
                    yield name, s
            if p.get("ManagedPolicyArns"):
                yield name, {"Sid": "managed policies", "Action": "*", "Resource": "*"}


def listed(x):
    return x if isinstance(x, list) else [x]


def rules(t):
    """Yields a sentence for each rule that is broken."""
    for name, p in of_type(t, "AWS::DynamoDB::Table").items():
        if not p.get("SSESpecification", {}).get("SSEEnabled"):
            yield f"{name} is not encrypted"
        if not p.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"):
            yield f"{name} has no point-in-time recovery"
        if t["Resources"][name].get("DeletionPolicy") != "Retain":
            yield f"{name} is not retained"
        if "TimeToLiveSpecification" not in p:
            yield f"{name} has no TTL"
    stream = of_type(t, "AWS::DynamoDB::Table")["DocumentsTable"].get("StreamSpecification", {})
    if stream.get("StreamViewType") != "NEW_AND_OLD_IMAGES":
        yield "the documents table's stream lacks old or new images"
    functions = of_type(t, "AWS::Lambda::Function")
    queues = of_type(t, "AWS::SQS::Queue")
    for name, p in queues.items():
        if not p.get("SqsManagedSseEnabled") and not p.get("KmsMasterKeyId"):
            yield f"{name} is not encrypted"
    mappings = of_type(t, "AWS::Lambda::EventSourceMapping")
    if len(mappings) != 2:
        yield f"there are {len(mappings)} event source mappings, not 2"
    for name, p in mappings.items():
        if p.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name} does not report failures by item"
        source = p["EventSourceArn"].get("Fn::GetAtt", [None])[0]
        function = functions[p["FunctionName"]["Ref"]]
        if source in queues:
            if queues[source].get("VisibilityTimeout", 30) < 6 * function["Timeout"]:
                yield f"{source}'s visibility timeout is below six times the timeout of its function"
            if "RedrivePolicy" not in queues[source]:
                yield f"{source} has no dead letters"
            if p["BatchSize"] > 10 and not p.get("MaximumBatchingWindowInSeconds"):
                yield f"{name}: a batch above 10 needs a window"
        else:
            if not p.get("DestinationConfig") or not p.get("MaximumRecordAgeInSeconds"):
                yield f"{name}: a stuck shard is not seen"
            if p["BatchSize"] > 10000:
                yield f"{name}: the batch is above the limit"
            if p.get("TumblingWindowInSeconds"):
                yield f"{name} has a tumbling window"
    for name, p in functions.items():
        if p["Runtime"] != "provided.al2023" or p["Handler"] != "bootstrap":
            yield f"{name} has another runtime"
        if "LoggingConfig" not in p:
            yield f"{name} has no log group of its own"
        if p["Timeout"] > 29 and name in ("DocumentsFunction", "QueryFunction"):
            yield f"{name} may run longer than its caller waits"
    for name, p in of_type(t, "AWS::ApiGatewayV2::Route").items():
        if p.get("AuthorizationType") != {"Fn::If": ["UseJwt", "JWT", "AWS_IAM"]}:
            yield f"{name} is not authorised"
    for name, s in statements(t):
        for r in listed(s["Resource"]):
            if r == "*":
                yield f"{name} {s.get('Sid')}: a bare * as resource"
        for a in listed(s["Action"]):
            if a.endswith("*"):
                yield f"{name} {s.get('Sid')}: {a} is not written out"
    for name, p in of_type(t, "AWS::OpenSearchService::Domain").items():
        if not p["EncryptionAtRestOptions"]["Enabled"] or not p["NodeToNodeEncryptionOptions"]["Enabled"]:
            yield f"{name} is not encrypted"
        if not p["DomainEndpointOptions"]["EnforceHTTPS"]:
            yield f"{name} answers without TLS"
    for name, p in of_type(t, "AWS::Logs::LogGroup").items():
        if "RetentionInDays" not in p:
            yield f"{name} keeps its logs for ever"


def main():
    template = expand(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(template, f, indent=1)
    broken = list(rules(template))
    for sentence in broken:
        print(f"template.yaml: {sentence}")
    if broken:
        sys.exit(1)
    print(f"template.yaml: {len(template['Resources'])} resources, every rule kept")


main()
