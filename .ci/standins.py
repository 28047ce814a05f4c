"""What stands in for AWS around the built functions: the local engines, with the
tables and queues of the template in them, behind proxies that keep a record of
what each function asked for.
"""

import atexit
import contextlib
import fnmatch
import http.client
import http.server
import json
import os
import secrets
import socket
import subprocess
import tempfile
import threading
import urllib.parse

import boto3
from botocore.config import Config

from expansion import of_type

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.update(AWS_ACCESS_KEY_ID="local", AWS_SECRET_ACCESS_KEY="local", AWS_DEFAULT_REGION="us-east-1")
os.environ.pop("AWS_PROFILE", None)
os.environ.pop("AWS_SESSION_TOKEN", None)


def free_port(address="127.0.0.1"):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def engines():
    """URLs of running engines: those that HOLDFAST_TEST_… name, or new ones, which end with this program."""
    named = {n: os.environ.get("HOLDFAST_TEST_" + n.upper()) for n in ("dynamodb", "sqs", "opensearch")}
    if all(named.values()):
        return named
    folder = tempfile.TemporaryDirectory(prefix="holdfast-ci-")
    program = os.path.join(folder.name, "engines")
    subprocess.run(["go", "build", "-o", program, "./.ci/engines"], cwd=ROOT, check=True,
                   env={k: v for k, v in os.environ.items() if k not in ("GOOS", "GOARCH", "CGO_ENABLED", "GOFLAGS")} | {"GOFLAGS": "-buildvcs=false"})
    log = open(os.path.join(folder.name, "log"), "w+", encoding="utf-8")
    child = subprocess.Popen([program, os.path.join(folder.name, "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def end():
        child.stdin.close()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
        folder.cleanup()
    atexit.register(end)
    line = child.stdout.readline()
    if not line:
        log.seek(0)
        raise SystemExit("the engines did not start:\n" + log.read())
    return json.loads(line)


class Standins:
    """Tables, queues and an index of their own, deleted in the end."""

    def __init__(self, expansion):
        self.urls = engines()
        self.stage = "ci" + secrets.token_hex(4)
        self.prefix = "holdfast-" + self.stage
        self.asked = {}  # function: {(place, action)}
        self._servers = []
        self._lock = threading.Lock()
        quick = Config(retries={"max_attempts": 2}, read_timeout=20)
        self.dynamodb = boto3.client("dynamodb", endpoint_url=self.urls["dynamodb"], config=quick)
        self.sqs = boto3.client("sqs", endpoint_url=self.urls["sqs"], config=quick)
        self.tables, self.queues = {}, {}
        for name, p in of_type(expansion, "AWS::DynamoDB::Table").items():
            self.tables[name] = self._table(name, p)
        for name in of_type(expansion, "AWS::SQS::Queue"):
            self.queues[name] = self.sqs.create_queue(QueueName=f"{self.prefix}-{name}")["QueueUrl"]

    def _table(self, name, p):
        """Makes a table of the template, as far as the engine knows its properties."""
        wanted = {k: p[k] for k in ("AttributeDefinitions", "KeySchema", "BillingMode")}
        if "GlobalSecondaryIndexes" in p:
            wanted["GlobalSecondaryIndexes"] = [{k: v for k, v in i.items() if k != "WarmThroughput"} for i in p["GlobalSecondaryIndexes"]]
        if "StreamSpecification" in p:
            wanted["StreamSpecification"] = {"StreamEnabled": True, **p["StreamSpecification"]}
        table = f"{self.prefix}-{name}"
        self.dynamodb.create_table(TableName=table, **wanted)
        self.dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})
        return table

    def close(self):
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for table in self.tables.values():
            self.dynamodb.delete_table(TableName=table)
        for url in self.queues.values():
            self.sqs.delete_queue(QueueUrl=url)
        where = urllib.parse.urlsplit(self.urls["opensearch"])
        c = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
        c.request("GET", f"/_cat/indices/{self.prefix}-*?h=index&format=json")
        for index in json.loads(c.getresponse().read() or "[]"):
            c.request("DELETE", "/" + index["index"])
            c.getresponse().read()

    # -------------------------------------------------------------- environment

    def environment(self, expansion, function, listen, host):
        """The variables of a function: those of the template, with what
        events/env.json puts in their place, led to proxies that listen at one
        address and are reached at host."""
        given = {}
        for name, value in expansion["Resources"][function]["Properties"]["Environment"]["Variables"].items():
            if isinstance(value, str):
                given[name] = value
            elif "Ref" in value and value["Ref"] in expansion["Parameters"]:
                given[name] = str(expansion["Parameters"][value["Ref"]]["Default"])
        with open(os.path.join(ROOT, "events", "env.json"), encoding="utf-8") as f:
            given.update(json.load(f)[function])
        given.update(HOLDFAST_DOCUMENTS_TABLE=self.tables["DocumentsTable"], HOLDFAST_STATE_TABLE=self.tables["StateTable"])
        for engine, variable in (("dynamodb", "HOLDFAST_DYNAMODB_ENDPOINT"), ("sqs", "HOLDFAST_SQS_ENDPOINT"), ("opensearch", "HOLDFAST_OPENSEARCH_URL")):
            if given.get(variable):
                given[variable] = f"http://{host}:{self.proxy(function, engine, listen)}"
        for variable, queue in (("SIGNALS_QUEUE", "SignalsQueue"), ("DEAD_LETTERS", "SignalsDeadLetters"), ("RELAY_FAILURES", "RelayFailures")):
            if f"HOLDFAST_{variable}_URL" in given:
                given[f"HOLDFAST_{variable}_URL"] = given["HOLDFAST_SQS_ENDPOINT"] + urllib.parse.urlsplit(self.queues[queue]).path
        if "HOLDFAST_INDEX_PREFIX" in given:
            given["HOLDFAST_INDEX_PREFIX"] = self.prefix
        return given

    def proxy(self, function, engine, listen):
        """Starts a proxy for one function and one engine; gives its port."""
        target = urllib.parse.urlsplit(self.urls[engine])
        standins = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self):
                with contextlib.suppress(ConnectionResetError):  # a function that was ended
                    super().handle()

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                standins.note(function, engine, self.command, self.path, self.headers, body)
                status, answered, content = standins.ask(target, self.command, self.path, body, self.headers)
                with contextlib.suppress(OSError):  # a function that went away, its time being up
                    self.send_response(status)
                    for k, v in answered:
                        self.send_header(k, v)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = pass_on

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer((listen, 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._servers.append(server)
        return server.server_address[1]

    @staticmethod
    def ask(target, method, path, body, headers):
        """Passes a request on to an engine; gives status, headers and body of its answer."""
        own = ("host", "connection", "content-length", "transfer-encoding", "date", "server")
        c = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
        try:
            c.request(method, path, body, {k: v for k, v in headers.items() if k.lower() not in ("host", "connection")})
            answer = c.getresponse()
            return answer.status, [(k, v) for k, v in answer.getheaders() if k.lower() not in own], answer.read()
        except OSError as e:
            return 502, [], str(e).encode()
        finally:
            c.close()

    # -------------------------------------------------------------- permissions

    def note(self, function, engine, method, path, headers, body):
        """Keeps what a request needs permission for, in the words of permissions.json."""
        needs = set()
        operation = headers.get("X-Amz-Target", "").rpartition(".")[2]
        names = {t: n for n, t in self.tables.items()} | {q.rpartition("/")[2]: n for n, q in self.queues.items()}
        if engine == "opensearch":
            needs.add((path.partition("?")[0], "es:ESHttp" + method.capitalize()))
        elif engine == "sqs":
            queue = json.loads(body)["QueueUrl"].rpartition("/")[2]
            needs.add((names.get(queue, queue), "sqs:" + operation.removesuffix("Batch")))
        else:
            request = json.loads(body)
            for item in request.get("TransactItems", []):
                (kind, what), = item.items()
                needs.add((names.get(what["TableName"], what["TableName"]), f"dynamodb:{kind}Item"))
            index = "/index/" + request["IndexName"] if "IndexName" in request else ""
            for table in [*request.get("RequestItems", {}), *([request["TableName"]] if "TableName" in request else [])]:
                needs.add((names.get(table, table) + index, "dynamodb:" + operation))
        with self._lock:
            self.asked.setdefault(function, set()).update(needs)

    def refused(self):
        """What functions asked for that permissions.json does not have: IAM would refuse it."""
        with open(os.path.join(ROOT, ".ci", "permissions.json"), encoding="utf-8") as f:
            reviewed = json.load(f)
        domain = "domain/${Domain}"
        for function, needs in sorted(self.asked.items()):
            for place, action in sorted(needs):
                may = any(action in actions and (
                    fnmatch.fnmatchcase(place, at.removeprefix(domain).replace("${Stage}", self.stage)) if at.startswith(domain) else at == place)
                    for at, actions in reviewed[function].items())
                if not may:
                    yield f"{function} asks for {action} on {place}, which .ci/permissions.json does not have"

    # -------------------------------------------------------------- queue

    def messages(self):
        """Takes the waiting signals and gives them as an event of the mapping does."""
        records = []
        for _ in range(5):
            got = self.sqs.receive_message(QueueUrl=self.queues["SignalsQueue"], MaxNumberOfMessages=10, WaitTimeSeconds=1, AttributeNames=["All"])
            for m in got.get("Messages", []):
                records.append({"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"],
                                "attributes": {k: v for k, v in m.get("Attributes", {}).items()}, "messageAttributes": {}, "md5OfBody": m["MD5OfBody"],
                                "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:signals", "awsRegion": "us-east-1"})
                self.sqs.delete_message(QueueUrl=self.queues["SignalsQueue"], ReceiptHandle=m["ReceiptHandle"])
            if records and not got.get("Messages"):
                break
        return {"Records": records}
