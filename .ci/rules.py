"""The project's own rules about its template, each with proofs that it can fail.

A rule is a function that yields a sentence for each way in which it is broken.
Its proofs change a good expansion; the rule has to notice every one of them.
"""

import json
import os
import re

from expansion import granted, listed, of_type, role_statements

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RULES = []  # (rule, proofs)

# The functions behind the gateway, which answers after 30 seconds whatever they do.
BEHIND_GATEWAY = ("DocumentsFunction", "QueryFunction", "AdminFunction")
# Variables of the Go runtime; all others are read by the project.
FOREIGN_VARIABLES = {"GOMEMLIMIT"}


# What repair and the indexer measure, and somebody has to be told about.
OWN_METRICS = [(metric, "RepairFunction") for metric in (
    "ProofAge", "IndexLag", "FeedLag", "Missing", "Resignalled", "Quarantined", "Drift", "RebuildAge")]
OWN_METRICS += [(metric, "IndexerFunction") for metric in ("IndexerRequeued", "IndexerReturned", "IndexerUnreadableMessages")]


def rule(*proofs):
    def register(f):
        RULES.append((f, proofs))
        return f
    return register


def prop(resource, *path, to=None):
    """A proof: the property at path is set, or removed when to is None."""
    def change(t):
        at = t["Resources"][resource]["Properties"]
        for step in path[:-1]:
            at = at[step]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to
    change.__name__ = f"{resource}.{'.'.join(map(str, path))} = {to}"
    return change


def attribute(resource, name, to=None):
    """A proof: an attribute of the resource itself is set or removed."""
    def change(t):
        if to is None:
            del t["Resources"][resource][name]
        else:
            t["Resources"][resource][name] = to
    change.__name__ = f"{resource} {name} = {to}"
    return change


def added(name, kind, **properties):
    """A proof: there is one more resource."""
    def change(t):
        t["Resources"][name] = {"Type": kind, "Properties": properties}
    change.__name__ = f"another {kind}"
    return change


def statement(role, **fields):
    """A proof: the role has one more statement."""
    def change(t):
        t["Resources"][role]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"].append({"Effect": "Allow", **fields})
    change.__name__ = f"{role} may {fields}"
    return change


# ------------------------------------------------------------------ data

@rule(prop("DocumentsTable", "SSESpecification"), prop("StateTable", "SSESpecification", "SSEEnabled", to=False),
      prop("SignalsQueue", "SqsManagedSseEnabled"), prop("RelayFailures", "SqsManagedSseEnabled", to=False),
      prop("Domain", "EncryptionAtRestOptions", "Enabled", to=False), prop("Domain", "NodeToNodeEncryptionOptions"))
def everything_is_encrypted(t):
    for name, p in of_type(t, "AWS::DynamoDB::Table").items():
        if p.get("SSESpecification", {}).get("SSEEnabled") is not True:
            yield f"{name} is not encrypted"
    for name, p in of_type(t, "AWS::SQS::Queue").items():
        if p.get("SqsManagedSseEnabled") is not True and not p.get("KmsMasterKeyId"):
            yield f"{name} is not encrypted"
    for name, p in of_type(t, "AWS::OpenSearchService::Domain").items():
        for option in ("EncryptionAtRestOptions", "NodeToNodeEncryptionOptions"):
            if p.get(option, {}).get("Enabled") is not True:
                yield f"{name} lacks {option}"


@rule(prop("Domain", "DomainEndpointOptions", "EnforceHTTPS", to=False),
      prop("Domain", "DomainEndpointOptions", "TLSSecurityPolicy", to="Policy-Min-TLS-1-0-2019-07"),
      prop("QueuesOverTlsOnly", "Queues", to=[{"Ref": "SignalsQueue"}]),
      prop("QueuesOverTlsOnly", "PolicyDocument", "Statement", 0, "Effect", to="Allow"),
      prop("QueuesOverTlsOnly", "PolicyDocument", "Statement", 0, "Condition", to={"Bool": {"aws:SecureTransport": "true"}}))
def everything_travels_over_tls(t):
    for name, p in of_type(t, "AWS::OpenSearchService::Domain").items():
        options = p.get("DomainEndpointOptions", {})
        if options.get("EnforceHTTPS") is not True or "TLS-1-2" not in options.get("TLSSecurityPolicy", ""):
            yield f"{name} answers without TLS 1.2"
    covered = []
    for p in of_type(t, "AWS::SQS::QueuePolicy").values():
        for s in p["PolicyDocument"]["Statement"]:
            if s["Effect"] == "Deny" and s.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}} and s["Action"] == "sqs:*":
                covered += [q["Ref"] for q in p["Queues"]]
    for name in of_type(t, "AWS::SQS::Queue"):
        if name not in covered:
            yield f"{name} takes requests without TLS"


@rule(prop("DocumentsTable", "PointInTimeRecoverySpecification"),
      prop("StateTable", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled", to=False),
      attribute("DocumentsTable", "DeletionPolicy"), attribute("StateTable", "UpdateReplacePolicy", to="Delete"),
      prop("DocumentsTable", "DeletionProtectionEnabled", to=False), prop("StateTable", "DeletionProtectionEnabled"))
def tables_are_kept(t):
    for name, p in of_type(t, "AWS::DynamoDB::Table").items():
        if p.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled") is not True:
            yield f"{name} has no point-in-time recovery"
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if t["Resources"][name].get(policy) != "Retain":
                yield f"{name}: {policy} is not Retain"
        if p.get("DeletionProtectionEnabled") != {"Ref": "DeletionProtection"}:
            yield f"{name} can be deleted whatever DeletionProtection says"


@rule(prop("StateTable", "BillingMode", to="PROVISIONED"), prop("DocumentsTable", "TimeToLiveSpecification"),
      prop("StateTable", "TimeToLiveSpecification", "AttributeName", to="expiresAt"),
      prop("DocumentsTable", "TimeToLiveSpecification", "Enabled", to=False),
      prop("DocumentsTable", "StreamSpecification", "StreamViewType", to="NEW_IMAGE"),
      prop("DocumentsTable", "WarmThroughput"), prop("DocumentsTable", "GlobalSecondaryIndexes", 0, "WarmThroughput"))
def tables_work_as_the_code_expects(t):
    tables = of_type(t, "AWS::DynamoDB::Table")
    for name, p in tables.items():
        if p.get("BillingMode") != "PAY_PER_REQUEST":
            yield f"{name} is not on demand"
        if p.get("TimeToLiveSpecification") != {"AttributeName": "ttl", "Enabled": True}:
            yield f"{name} has no TTL on ttl"
    documents = tables["DocumentsTable"]
    if documents.get("StreamSpecification", {}).get("StreamViewType") != "NEW_AND_OLD_IMAGES":
        yield "the documents table's stream lacks old or new images"
    for what in [documents, *documents["GlobalSecondaryIndexes"]]:
        if "WarmThroughput" not in what:
            yield "the documents table or its index cannot be warmed"


# ------------------------------------------------------------------ events

@rule(prop("SignalsQueue", "VisibilityTimeout", to=300), prop("SignalsQueue", "RedrivePolicy"),
      prop("SignalsQueue", "RedrivePolicy", "maxReceiveCount", to=2), prop("SignalsQueue", "MessageRetentionPeriod", to=345600),
      prop("SignalsDeadLetters", "MessageRetentionPeriod", to=345600),
      prop("IndexerFunctionSignals", "FunctionResponseTypes"), prop("IndexerFunctionSignals", "ScalingConfig"),
      prop("IndexerFunctionSignals", "BatchSize", to=100),
      lambda t: (prop("IndexerFunctionSignals", "BatchSize", to=10001)(t), prop("IndexerFunctionSignals", "MaximumBatchingWindowInSeconds", to=1)(t)))
def queues_are_read_safely(t):
    queues, functions = of_type(t, "AWS::SQS::Queue"), of_type(t, "AWS::Lambda::Function")
    for name, p in mappings(t, queues):
        source = p["EventSourceArn"]["Fn::GetAtt"][0]
        queue, function = queues[source], functions[p["FunctionName"]["Ref"]]
        if queue.get("VisibilityTimeout", 30) < 6 * function["Timeout"]:
            yield f"{source}'s visibility timeout is below six times the timeout of its function"
        redrive = queue.get("RedrivePolicy")
        if not redrive or redrive["maxReceiveCount"] < 5:
            yield f"{source} gives messages up too soon, or never"
        for q in (source, redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]) if redrive else (source,):
            if queues[q].get("MessageRetentionPeriod") != 1209600:
                yield f"{q} keeps messages for less than fourteen days"
        if p.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name} does not report failures by item"
        if p["BatchSize"] > 10 and not p.get("MaximumBatchingWindowInSeconds") or p["BatchSize"] > 10000:
            yield f"{name}: a batch above 10 needs a window, and none is above 10000"
        if p.get("ScalingConfig", {}).get("MaximumConcurrency") != {"Ref": "IndexerConcurrency"}:
            yield f"{name} runs without a bound"


def mappings(t, sources):
    return [(n, p) for n, p in of_type(t, "AWS::Lambda::EventSourceMapping").items()
            if p["EventSourceArn"].get("Fn::GetAtt", [None])[0] in sources]


@rule(prop("RelayFunctionStream", "FunctionResponseTypes"), prop("RelayFunctionStream", "DestinationConfig"),
      prop("RelayFunctionStream", "MaximumRecordAgeInSeconds", to=-1), prop("RelayFunctionStream", "MaximumRecordAgeInSeconds", to=90000),
      prop("RelayFunctionStream", "BisectBatchOnFunctionError", to=False), prop("RelayFunctionStream", "MaximumRetryAttempts", to=3),
      prop("RelayFunctionStream", "StartingPosition", to="LATEST"), prop("RelayFunctionStream", "BatchSize", to=20000),
      prop("RelayFunctionStream", "ParallelizationFactor", to=11), prop("RelayFunctionStream", "TumblingWindowInSeconds", to=10))
def streams_are_read_safely(t):
    for name, p in mappings(t, of_type(t, "AWS::DynamoDB::Table")):
        if p.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name} does not report failures by item"
        if "OnFailure" not in p.get("DestinationConfig", {}):
            yield f"{name}: nothing tells what was given up"
        if not 0 < p.get("MaximumRecordAgeInSeconds", -1) < 86400:
            yield f"{name}: records expire with the stream, and nothing tells which"
        if p.get("MaximumRetryAttempts", -1) != -1:
            yield f"{name} gives records up that could still be sent"
        if p.get("BisectBatchOnFunctionError") is not True:
            yield f"{name}: one record stops its whole batch"
        if p.get("StartingPosition") != "TRIM_HORIZON":
            yield f"{name} misses what was written before it was made"
        if p["BatchSize"] > 10000 or p.get("ParallelizationFactor", 1) > 10:
            yield f"{name} is above a limit of Lambda"
        if p.get("TumblingWindowInSeconds"):
            yield f"{name} has a tumbling window"


@rule(attribute("RelayFunctionStream", "Type", to="Custom::Nothing"),
      added("Third", "AWS::Lambda::EventSourceMapping", EventSourceArn={"Fn::GetAtt": ["Elsewhere", "Arn"]}, FunctionName={"Ref": "RelayFunction"}),
      prop("IndexerFunctionSignals", "FunctionName", to={"Ref": "QueryFunction"}))
def each_source_has_its_function(t):
    found = {(p["EventSourceArn"]["Fn::GetAtt"][0], p["FunctionName"]["Ref"]) for p in of_type(t, "AWS::Lambda::EventSourceMapping").values()}
    if found != {("DocumentsTable", "RelayFunction"), ("SignalsQueue", "IndexerFunction")}:
        yield f"the event source mappings are {sorted(found)}"


@rule(prop("RepairFunctionProve", "ScheduleExpression", to="rate(5 minutes)"), prop("RepairFunctionProve", "State", to="DISABLED"),
      prop("RepairFunctionProve", "Targets", 0, "Input", to='{"mode":"compare"}'), attribute("RepairFunctionCompare", "Type", to="Custom::Nothing"),
      prop("RepairFunctionCompare", "Targets", 0, "Arn", to={"Fn::GetAtt": ["IndexerFunction", "Arn"]}),
      prop("RepairFunctionEventInvokeConfig", "MaximumRetryAttempts", to=2), prop("RepairFunctionEventInvokeConfig", "DestinationConfig"),
      prop("RepairFunctionEventInvokeConfig", "MaximumEventAgeInSeconds", to=21600),
      prop("RepairFunction", "Timeout", to=45), prop("RepairFunction", "Timeout", to=300))
def schedules_run(t):
    found = {}
    for name, p in of_type(t, "AWS::Events::Rule").items():
        if p.get("State") != "ENABLED":
            yield f"{name} is not enabled"
        for target in p["Targets"]:
            found[(target["Arn"]["Fn::GetAtt"][0], target.get("Input"))] = p.get("ScheduleExpression", "")
    if found != {("RepairFunction", '{"mode":"prove"}'): "rate(1 minute)", ("RepairFunction", '{"mode":"compare"}'): "cron(17 2 * * ? *)"}:
        yield f"the schedules are {found}"
    for fn in {fn for fn, _ in found}:
        configs = [p for p in of_type(t, "AWS::Lambda::EventInvokeConfig").values() if p["FunctionName"] == {"Ref": fn}]
        if [(p.get("MaximumRetryAttempts"), p.get("MaximumEventAgeInSeconds", 21600) <= 60) for p in configs] != [(0, True)]:
            yield f"{fn} is called again for a schedule that is over"
        if not all("OnFailure" in p.get("DestinationConfig", {}) for p in configs):
            yield f"{fn}: nothing tells of runs that failed"
    # A run works for 45 seconds, and its lease lasts 150.
    if not 60 < of_type(t, "AWS::Lambda::Function")["RepairFunction"]["Timeout"] < 150:
        yield "RepairFunction ends before its work does, or after its lease"


# ------------------------------------------------------------------ functions

@rule(prop("QueryFunction", "Runtime", to="go1.x"), prop("RelayFunction", "Architectures", to=["arm64"]),
      prop("RelayFunction", "LoggingConfig"), prop("DocumentsFunction", "Timeout", to=60),
      prop("DocumentsFunction", "MemorySize", to=64), added("NightlyFunction", "AWS::Lambda::Function", Runtime="provided.al2023"))
def functions_are_alike(t):
    functions = of_type(t, "AWS::Lambda::Function")
    folders = {d for d in os.listdir(os.path.join(ROOT, "functions")) if os.path.exists(os.path.join(ROOT, "functions", d, "main.go"))}
    if {n.removesuffix("Function").lower() for n in functions} != folders:
        yield f"the functions are {sorted(functions)}, the folders {sorted(folders)}"
    for name, p in functions.items():
        if p.get("Runtime") != "provided.al2023" or p.get("Handler") != "bootstrap":
            yield f"{name} has another runtime"
        if p.get("Architectures") != [{"Ref": "Architecture"}]:
            yield f"{name} does not follow Architecture"
        if "LoggingConfig" not in p:
            yield f"{name} has no log group of its own"
        if p.get("MemorySize", 128) < 128:
            yield f"{name} has too little memory"
        if name in BEHIND_GATEWAY and p["Timeout"] > 29:
            yield f"{name} may run longer than its caller waits"


@rule(prop("DocumentsFunction", "Environment", "Variables", "HOLDFAST_DOCUMENT_TABLE", to="x"),
      prop("QueryFunction", "Environment", "Variables", "HOLDFAST_STATE_TABLE"),
      prop("IndexerFunction", "Environment", "Variables", "HOLDFAST_OPENSEARCH_URL"),
      prop("RelayFunction", "Environment", "Variables", "HOLDFAST_SIGNALS_QUEUE_URL"),
      prop("AdminFunction", "Environment", "Variables", "HOLDFAST_DEAD_LETTERS_URL"),
      prop("RepairFunction", "Environment", "Variables", "HOLDFAST_INDEX_PREFIX"),
      prop("RelayFunction", "Environment", "Variables", "HOLDFAST_SQS_ENDPOINT", to="http://localhost"))
def variables_are_those_the_code_reads(t):
    with open(os.path.join(ROOT, "shared", "lambdahost", "config.go"), encoding="utf-8") as f:
        known = set(re.findall(r'env:"([A-Z_]+)"', f.read()))
    needed = {"DocumentsFunction": {"DOCUMENTS_TABLE", "STATE_TABLE"}}
    needed["RelayFunction"] = {"DOCUMENTS_TABLE", "STATE_TABLE", "SIGNALS_QUEUE_URL"}
    needed["AdminFunction"] = needed["RelayFunction"] | {"DEAD_LETTERS_URL", "RELAY_FAILURES_URL"}
    for name in ("QueryFunction", "IndexerFunction", "RepairFunction"):
        needed[name] = needed["RelayFunction"] | {"OPENSEARCH_URL", "OPENSEARCH_SIGNED", "INDEX_PREFIX", "INDEX_REPLICAS"}
    for name, p in of_type(t, "AWS::Lambda::Function").items():
        given = p.get("Environment", {}).get("Variables", {})
        for variable in set(given) - known - FOREIGN_VARIABLES:
            yield f"{name}: nothing reads {variable}"
        for variable in needed.get(name, ()):
            if not given.get("HOLDFAST_" + variable):
                yield f"{name} lacks HOLDFAST_{variable}"
        for variable in ("HOLDFAST_DYNAMODB_ENDPOINT", "HOLDFAST_SQS_ENDPOINT"):
            if given.get(variable) != "":
                yield f"{name}: {variable} has to be there, for sam local, and to be empty"


def env_json():
    with open(os.path.join(ROOT, "events", "env.json"), encoding="utf-8") as f:
        return json.load(f)


@rule(prop("DocumentsFunction", "Environment", "Variables", "HOLDFAST_DYNAMODB_ENDPOINT"), attribute("QueryFunction", "Type", to="Custom::Nothing"))
def env_json_fits(t):
    """sam local drops what the template does not declare, without a word."""
    functions = of_type(t, "AWS::Lambda::Function")
    for name, variables in env_json().items():
        declared = functions.get(name, {}).get("Environment", {}).get("Variables", {})
        for variable in set(variables) - set(declared):
            yield f"events/env.json: sam local would drop {variable} of {name}"
    for name in set(functions) - set(env_json()):
        yield f"events/env.json lacks {name}"


def last(resource):
    """A proof: the resource comes after all others."""
    def change(t):
        t["Resources"][resource] = t["Resources"].pop(resource)
    change.__name__ = f"{resource} last"
    return change


@rule(last("HttpApi"))
def sam_local_finds_the_routes(t):
    """It looks at routes that are written out only when it meets an API first."""
    kinds = [r["Type"] for r in t["Resources"].values()]
    if kinds.index("AWS::ApiGatewayV2::Api") > kinds.index("AWS::Lambda::Function"):
        yield "the API comes after a function, so that sam local start-api does not find its routes"


# ------------------------------------------------------------------ access

@rule(prop("DefaultRoute", "AuthorizationType", to="NONE"), prop("QueryRoute", "AuthorizationType"),
      prop("QueryRoute", "AuthorizationType", to={"Fn::If": ["UseJwt", "JWT", "NONE"]}),
      prop("DefaultRoute", "AuthorizerId"), attribute("JwtAuthorizer", "Condition"),
      added("Open", "AWS::Lambda::Url", AuthType="NONE"), prop("HttpApi", "Body", to={"openapi": "3.0.1"}), prop("HttpApi", "Target", to="arn"),
      added("Rest", "AWS::ApiGateway::RestApi"),
      lambda t: t["Conditions"].update(UseJwt={"Fn::Equals": [{"Ref": "JwtIssuer"}, ""]}))
def every_route_is_authorised(t):
    for name, p in of_type(t, "AWS::ApiGatewayV2::Route").items():
        if p.get("AuthorizationType") != {"Fn::If": ["UseJwt", "JWT", "AWS_IAM"]}:
            yield f"{name} is not authorised"
        if p.get("AuthorizerId") != {"Fn::If": ["UseJwt", {"Ref": "JwtAuthorizer"}, {"Ref": "AWS::NoValue"}]}:
            yield f"{name} has no authoriser for tokens"
    if t["Resources"]["JwtAuthorizer"].get("Condition") != "UseJwt":
        yield "JwtAuthorizer is not there exactly when tokens are used"
    if t["Conditions"]["UseJwt"] != {"Fn::Not": [{"Fn::Equals": [{"Ref": "JwtIssuer"}, ""]}]}:
        yield "UseJwt does not follow JwtIssuer"
    for name, p in of_type(t, "AWS::ApiGatewayV2::Api").items():
        if {"Body", "BodyS3Location", "Target", "RouteKey"} & set(p):
            yield f"{name} may have routes besides those written out"
    for name, r in t["Resources"].items():
        if r["Type"] == "AWS::Lambda::Url" or r["Type"].startswith("AWS::ApiGateway::"):
            yield f"{name} is another way in"


@rule(prop("QueryIntegration", "PayloadFormatVersion", to="1.0"),
      prop("QueryRoute", "RouteKey", to="POST /query"), prop("HttpStage", "DefaultRouteSettings"), attribute("DefaultRoute", "Type", to="Custom::Nothing"),
      prop("HttpStage", "AccessLogSettings", "Format", to="$context.path $context.status"))
def the_gateway_is_as_documented(t):
    if {p["RouteKey"] for p in of_type(t, "AWS::ApiGatewayV2::Route").values()} != {
            "$default", "ANY /{proxy+}", "ANY /query", "ANY /status",
            *(f"ANY /{path}{below}" for path in ("collections", "quarantine", "jobs", "dead-letters") for below in ("", "/{proxy+}"))}:
        yield "the routes are not those that shared/local has"
    for name, p in of_type(t, "AWS::ApiGatewayV2::Integration").items():
        if p.get("PayloadFormatVersion") != "2.0" or p["IntegrationType"] != "AWS_PROXY":
            yield f"{name} sends other events"
    for name, p in of_type(t, "AWS::ApiGatewayV2::Stage").items():
        if not {"ThrottlingRateLimit", "ThrottlingBurstLimit"} <= set(p.get("DefaultRouteSettings", {})):
            yield f"{name} takes any number of requests"
        if re.search(r"path|protocol|routeArn|queryString", p["AccessLogSettings"]["Format"], re.IGNORECASE):
            yield f"{name} logs paths, which hold ids"


@rule(statement("QueryRole", Action="dynamodb:PutItem", Resource={"Fn::GetAtt": ["DocumentsTable", "Arn"]}),
      statement("RelayRole", Action=["sqs:*"], Resource={"Fn::GetAtt": ["SignalsQueue", "Arn"]}),
      statement("IndexerRole", NotAction="iam:*", Resource="*", Action=[]),
      statement("DocumentsRole", Action="dynamodb:Scan", Resource="*"),
      lambda t: t["Resources"]["QueryRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"].pop(0),
      prop("IndexerRole", "ManagedPolicyArns", to=["arn:aws:iam::aws:policy/AmazonSQSFullAccess"]),
      added("Extra", "AWS::IAM::ManagedPolicy", Roles=[{"Ref": "QueryRole"}], PolicyDocument={
          "Statement": [{"Effect": "Allow", "Action": "dynamodb:DeleteItem", "Resource": {"Fn::GetAtt": ["StateTable", "Arn"]}}]}),
      prop("QueryFunction", "Role", to={"Fn::GetAtt": ["IndexerRole", "Arn"]}))
def functions_may_do_what_was_reviewed(t):
    with open(os.path.join(ROOT, ".ci", "permissions.json"), encoding="utf-8") as f:
        reviewed = {fn: {place: set(actions) for place, actions in places.items()} for fn, places in json.load(f).items()}
    may = granted(t)
    for fn in sorted(set(may) | set(reviewed)):
        mine, theirs = may.get(fn, {}), reviewed.get(fn, {})
        for at in sorted(set(mine) | set(theirs)):
            for action in sorted(mine.get(at, set()) - theirs.get(at, set())):
                yield f"{fn} may {action} on {at}, which .ci/permissions.json does not have"
            for action in sorted(theirs.get(at, set()) - mine.get(at, set())):
                yield f"{fn} may not {action} on {at}, which .ci/permissions.json has"
    roles = [p["Role"]["Fn::GetAtt"][0] for p in of_type(t, "AWS::Lambda::Function").values()]
    if len(set(roles)) != len(roles):
        yield "functions share a role"
    for name, p in of_type(t, "AWS::IAM::Role").items():
        if p.get("ManagedPolicyArns"):
            yield f"{name} has policies that are not written out"
        for s in role_statements(t, name):
            if s["Effect"] != "Allow" or "NotAction" in s or "NotResource" in s:
                yield f"{name} {s.get('Sid')}: only plain permissions are reviewed"
            if any("*" in a for a in listed(s["Action"])):
                yield f"{name} {s.get('Sid')}: actions are not written out"
            if "*" in listed(s["Resource"]):
                yield f"{name} {s.get('Sid')}: a bare * as resource"


@rule(prop("QueryRole", "AssumeRolePolicyDocument", "Statement", 0, "Principal", to={"AWS": "*"}),
      prop("ApiCallsQuery", "SourceArn"), prop("ApiCallsDocuments", "Principal", to="*"),
      prop("RepairFunctionProvePermission", "SourceArn"), prop("RepairFunctionProvePermission", "SourceArn", to="arn:aws:events:::rule/other"),
      prop("Domain", "AccessPolicies", "Statement", 0, "Principal", to={"AWS": "*"}),
      prop("Domain", "AccessPolicies", "Statement", 0, "Action", to="es:*"))
def nobody_else_gets_in(t):
    for name, p in of_type(t, "AWS::IAM::Role").items():
        if [s["Principal"] for s in p["AssumeRolePolicyDocument"]["Statement"]] != [{"Service": "lambda.amazonaws.com"}]:
            yield f"{name} can be assumed by others than Lambda"
    schedules = [{"Fn::GetAtt": [name, "Arn"]} for name in of_type(t, "AWS::Events::Rule")]
    for name, p in of_type(t, "AWS::Lambda::Permission").items():
        gateway = p["Principal"] == "apigateway.amazonaws.com" and "HttpApi" in str(p.get("SourceArn"))
        schedule = p["Principal"] == "events.amazonaws.com" and p.get("SourceArn") in schedules
        if not gateway and not schedule:
            yield f"{name} lets others than this API and these schedules call a function"
    for name, p in of_type(t, "AWS::OpenSearchService::Domain").items():
        for s in p["AccessPolicies"]["Statement"]:
            if s["Principal"] != {"AWS": [{"Fn::GetAtt": [role, "Arn"]} for role in ("IndexerRole", "QueryRole", "RepairRole")]}:
                yield f"{name} lets others in than the functions that work with the index"
            if any("*" in a for a in listed(s["Action"])):
                yield f"{name}: actions are not written out"


# ------------------------------------------------------------------ being told

@rule(prop("QueryLogs", "RetentionInDays"), added("Forgotten", "AWS::Logs::LogGroup", LogGroupName="x"))
def logs_end(t):
    for name, p in of_type(t, "AWS::Logs::LogGroup").items():
        if p.get("RetentionInDays") != {"Ref": "LogRetentionDays"}:
            yield f"{name} keeps its logs for ever"


@rule(attribute("DeadLettersAlarm", "Type", to="Custom::Nothing"), attribute("RelayBehindAlarm", "Type", to="Custom::Nothing"),
      attribute("QueryErrorsAlarm", "Type", to="Custom::Nothing"), prop("RelayFailuresAlarm", "Dimensions", to=[]),
      prop("SignalsWaitAlarm", "AlarmActions"), attribute("DriftAlarm", "Type", to="Custom::Nothing"),
      prop("QuarantineAlarm", "Dimensions", 0, "Name", to="FunctionName"), prop("IndexerRequeuedAlarm", "Namespace", to="AWS/Lambda"),
      prop("ProofAgeAlarm", "TreatMissingData", to="notBreaching"), prop("IndexLagAlarm", "Threshold", to=300000))
def what_can_go_wrong_is_told(t):
    alarms = of_type(t, "AWS::CloudWatch::Alarm")
    watched = {(p["MetricName"], json.dumps(d["Value"])) for p in alarms.values() for d in p["Dimensions"]}
    wanted = [("ApproximateAgeOfOldestMessage", {"Fn::GetAtt": ["SignalsQueue", "QueueName"]}),
              ("ApproximateNumberOfMessagesVisible", {"Fn::GetAtt": ["SignalsDeadLetters", "QueueName"]}),
              ("ApproximateNumberOfMessagesVisible", {"Fn::GetAtt": ["RelayFailures", "QueueName"]}),
              ("IteratorAge", {"Ref": "RelayFunction"}), ("5xx", {"Ref": "HttpApi"})]
    wanted += [("Errors", {"Ref": fn}) for fn in of_type(t, "AWS::Lambda::Function")]
    for metric, of in wanted:
        if (metric, json.dumps(of)) not in watched:
            yield f"nobody is told about {metric} of {of}"
    # What the functions measure themselves, under the name that they are deployed with.
    measured = {(p["MetricName"], p["Dimensions"][0]["Value"]["Ref"]) for p in alarms.values()
                if p["Namespace"] == "Holdfast" and [d["Name"] for d in p["Dimensions"]] == ["Function"]}
    for metric, fn in OWN_METRICS:
        if (metric, fn) not in measured:
            yield f"nobody is told about {metric} of {fn}"
    if alarms.get("ProofAgeAlarm", {}).get("TreatMissingData") != "breaching":
        yield "nobody is told when nothing measures the age of proofs"
    if alarms.get("IndexLagAlarm", {}).get("Threshold", 0) > 60000:
        yield "IndexLagAlarm waits for a lag that repair does not wait for"
    for name, p in alarms.items():
        if p.get("AlarmActions") != {"Fn::If": ["TellAlarms", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}:
            yield f"{name} tells nobody"


@rule(lambda t: t["Parameters"]["Stage"].pop("Description"), lambda t: t["Parameters"]["JwtIssuer"].pop("AllowedPattern"),
      lambda t: t["Parameters"]["IndexerConcurrency"].pop("MinValue"), lambda t: t["Outputs"]["Url"].pop("Description"),
      lambda t: t["Parameters"]["Stage"].update(AllowedPattern="^dev$"))
def parameters_are_described_and_bounded(t):
    for name, p in t["Parameters"].items():
        if not p.get("Description"):
            yield f"parameter {name} is not described"
        bounded = "AllowedValues" in p or "AllowedPattern" in p or {"MinValue", "MaxValue"} <= set(p)
        if not bounded:
            yield f"parameter {name} takes anything"
        if "AllowedPattern" in p and "ConstraintDescription" not in p:
            yield f"parameter {name} does not say in words what it takes"
        for value in STAGES.get(name, ()):
            if "AllowedPattern" in p and not re.fullmatch(p["AllowedPattern"], value):
                yield f"parameter {name} refuses {value}"
    for name, o in t.get("Outputs", {}).items():
        if not o.get("Description"):
            yield f"output {name} is not described"


def stages():
    """The parameters that samconfig.toml sets, with all their values."""
    import tomllib
    with open(os.path.join(ROOT, "samconfig.toml"), "rb") as f:
        config = tomllib.load(f)
    values = {}
    for environment in config.values():
        if isinstance(environment, dict) and "deploy" in environment:
            for pair in environment["deploy"]["parameters"]["parameter_overrides"].split():
                name, value = pair.split("=", 1)
                values.setdefault(name, []).append(value)
    return values


STAGES = stages()


@rule(lambda t: t["Parameters"].pop("OpenSearchInstances"), lambda t: t["Parameters"]["IndexerConcurrency"].update(MaxValue=10))
def samconfig_fits(t):
    for name, values in STAGES.items():
        p = t["Parameters"].get(name)
        if p is None:
            yield f"samconfig.toml sets {name}, which is no parameter"
            continue
        for value in values:
            if "AllowedValues" in p and value not in map(str, p["AllowedValues"]):
                yield f"samconfig.toml: {name}={value} is not allowed"
            if p["Type"] == "Number" and not p.get("MinValue", float("-inf")) <= float(value) <= p.get("MaxValue", float("inf")):
                yield f"samconfig.toml: {name}={value} is out of bounds"
