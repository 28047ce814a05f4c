"""Drives `sam local` and prints a line for each thing that was tried.

Usage: samlocal.py EXPANSION BUILD-DIR ARCH BRIDGE-ADDRESS   (see .ci/samlocal)
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from cases import CASES, X, failures
from expansion import of_type
from standins import ROOT, Standins, free_port

SAM = os.path.join(os.path.dirname(sys.executable), "sam")
INVOKED = ("http-put", "http-get", "http-odd-path", "http-rest-get", "stream", "stream-types", "signals", "http-query", "http-collections", "http-status", "schedule-prove")
ODD = ["users/a b", "users/a+b", "users/50%", "users/%41", "users/%2F", "users/a?b", "users/a#b", "users/a&b=c", "users/é/ü/日本", "users/1/account/3", "users/a;b,c", 'users/"q"']

failed = 0
began = time.monotonic()


def told(what, wrong):
    global failed
    failed += bool(wrong)
    print(f"{'FAIL' if wrong else 'PASS'} {time.monotonic() - began:6.1f}s  sam local {what}{': ' + str(wrong)[:600] if wrong else ''}", flush=True)


class Local:
    """The options that all of `sam local` takes here."""

    def __init__(self, build, arch, env):
        self.options = ["-t", os.path.join(build, "template.yaml"), "-n", env, "--skip-pull-image", "--region", "us-east-1",
                        "--parameter-overrides", f"Architecture={arch} AllowedOrigins=https://app.example.com"]

    def invoke(self, function, event):
        done = subprocess.run([SAM, "local", "invoke", function, "-e", "-", *self.options], input=json.dumps(event),
                              capture_output=True, text=True, timeout=180, cwd=ROOT)
        lines = done.stdout.strip().splitlines()
        try:
            return json.loads(lines[-1])
        except (ValueError, IndexError):
            return done.stdout[-500:] + done.stderr[-1500:]

    @contextlib.contextmanager
    def api(self, log):
        port = free_port()
        child = subprocess.Popen([SAM, "local", "start-api", "--port", str(port), "--warm-containers", "LAZY", "--disable-authorizer", *self.options], stdout=log, stderr=log, cwd=ROOT)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if child.poll() is not None:
                    raise RuntimeError("start-api ended")
                time.sleep(0.2)
            yield port
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()


class Api:
    def __init__(self, port):
        self.port = port

    def ask(self, method, target, body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        if body is not None:
            headers.setdefault("content-type", "application/json")
        c.request(method, target, body.encode() if isinstance(body, str) else body, headers)
        r = c.getresponse()
        content = r.read()
        c.close()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, content


def through_the_gateway(api):
    """Requests as clients make them; yields (what, what is wrong)."""
    for id in ODD:
        data = json.dumps({"is": id})
        path = "/docs/" + urllib.parse.quote(id, safe="/")
        by_id = "/docs?id=" + urllib.parse.quote(id, safe="")
        wrong = []
        answers = [api.ask("PUT", by_id, data), api.ask("GET", by_id), api.ask("GET", path)]
        if answers[0][0] not in (200, 201) or json.loads(answers[0][2])["id"] != id:
            wrong.append(f"PUT {by_id}: {answers[0]}")
        for (status, _, content), target in zip(answers[1:], (by_id, path)):
            if status != 200 or json.loads(content) != {"is": id}:
                wrong.append(f"GET {target}: {status} {content}")
        yield f"start-api, id {id}, by ?id= and by path", wrong
    status, headers, content = api.ask("HEAD", "/docs/users/1/account/3")
    yield "start-api, HEAD", (status, headers) if status != 200 or content or not headers.get("etag") else None
    status, headers, content = api.ask("POST", "/docs/users/1/account/", "{}")
    yield "start-api, POST to a collection", (status, headers, content) if status != 201 or not headers.get("location", "").startswith("/docs/users/1/account/") else None
    status, _, content = api.ask("POST", "/bulk", b'{"id":"users/b","data":{"x":1}}\n{"id":"users/c","data":{"x":2}}\n', content_type="application/x-ndjson")
    yield "start-api, bulk", (status, content) if status != 200 or len(content.splitlines()) != 3 else None
    status, headers, _ = api.ask("PUT", "/docs/users/b", "{}", if_match='"1"')
    yield "start-api, a conflict", (status, headers) if status != 412 else None
    status, headers, _ = api.ask("DELETE", "/docs/users/c")
    yield "start-api, DELETE", (status, headers) if status != 204 else None
    status, headers, _ = api.ask("OPTIONS", "/docs/users/b", origin="https://app.example.com", access_control_request_method="PUT", access_control_request_headers="if-match")
    yield "start-api, preflight", (status, headers) if status not in (200, 204) or headers.get("access-control-allow-origin") != "https://app.example.com" else None
    status, headers, content = api.ask("GET", "/openapi.json", accept_encoding="gzip")
    yield "start-api, compressed", (status, headers) if status != 200 or headers.get("content-encoding") != "gzip" or content[:2] != b"\x1f\x8b" else None
    for target in ("/", "/nothing/here"):
        status, headers, content = api.ask("GET", target)
        yield f"start-api, {target} is refused by the function", (status, headers, content) if status != 404 or b"no-such-route" not in content else None
    status, _, content = api.ask("POST", "/query", json.dumps({"from": "users", "filter": {"name": "Ada"}}))
    yield "start-api, a query", (status, content) if status != 200 or b"staleness" not in content else None
    status, _, content = api.ask("GET", "/collections")
    yield "start-api, the collections", (status, content) if status != 200 or b'"users"' not in content else None
    status, _, content = api.ask("GET", "/collections/users/none")
    yield "start-api, a definition that is not there", (status, content) if status != 404 or b"not-found" not in content else None
    status, _, content = api.ask("GET", "/status")
    yield "start-api, the status", (status, content) if status != 200 or b'"healthy"' not in content else None
    status, _, content = api.ask("POST", "/jobs/repair", json.dumps({"mode": "retry"}))
    yield "start-api, a job that is asked for", (status, content) if status != 202 else None
    status, headers, content = api.ask("GET", "/query")
    yield "start-api, a query by GET", (status, headers, content) if status != 405 else None


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends
    with open(sys.argv[1], encoding="utf-8") as f:
        expansion = json.load(f)
    build, arch, bridge = sys.argv[2:5]
    standins = Standins(expansion)
    with tempfile.TemporaryDirectory() as folder:
        env = os.path.join(folder, "env.json")
        try:
            with open(env, "w", encoding="utf-8") as f:
                json.dump({name: standins.environment(expansion, name, bridge, bridge) for name in of_type(expansion, "AWS::Lambda::Function")}, f)
            local = Local(os.path.abspath(build), arch, env)
            for function, name, check in CASES:
                if name not in INVOKED:
                    continue
                with open(os.path.join(ROOT, "events", name + ".json"), encoding="utf-8") as f:
                    answer = local.invoke(function, json.load(f))
                said = check(answer)
                told(f"invoke {function} with {name}", said and f"{said}: {answer}")
            signals = standins.messages()
            answer = local.invoke(X, signals)
            said = failures()(answer) if signals["Records"] else "the relay sent nothing"
            told("invoke IndexerFunction with what the relay sent", said and f"{said}: {answer}")
            with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
                try:
                    with local.api(log) as port:
                        for what, wrong in through_the_gateway(Api(port)):
                            told(what, wrong)
                except Exception as e:  # told like any other, with the server's log below
                    told("start-api", repr(e))
                if failed:
                    log.seek(0)
                    print(log.read()[-6000:])
            told("asked for nothing but what was reviewed", list(standins.refused()))
        finally:
            standins.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
