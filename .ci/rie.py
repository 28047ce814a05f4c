"""Runs the built functions as they are deployed, under the emulator of the Lambda
runtime that comes with SAM, against the local engines.

Usage: rie.py EXPANSION BUILD-DIR [--beside EMPTY OTHER...] [--under EMULATOR]

Every payload of events/ goes to its function (cases.py says what has to come of
it); then one document makes the whole way: put, relayed, indexed, found. What the
functions asked the engines for has to be within .ci/permissions.json. With
--beside a table tells in the end how long each function takes to start, and how
much memory, beside an empty one and others; that is told, not judged, since
machines differ. With an EMULATOR, qemu, the functions are those of another processor; how
long they take there means nothing.
"""

import argparse
import contextlib
import glob
import http.client
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import samcli

from cases import CASES, D, Q, R, X, body, failures
from standins import ROOT, Standins, free_port

RIE = os.path.join(os.path.dirname(samcli.__file__), "local", "rapid",
                   "aws-lambda-rie-" + {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()])
LOCAL = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1", "PATH": "/bin"}
STARTS = 15


class Function:
    """A built function under the emulator of the runtime; command is what runs it."""

    def __init__(self, name, command, variables):
        self.name, self.port, self.log = name, free_port(), tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.child = subprocess.Popen(
            [RIE, "--log-level", "error", "--runtime-interface-emulator-address", f"127.0.0.1:{self.port}",
             "--runtime-api-address", f"127.0.0.1:{free_port()}", *command],
            env={**LOCAL, "AWS_LAMBDA_FUNCTION_NAME": name, "AWS_LAMBDA_FUNCTION_TIMEOUT": "60",
                 "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", **variables},
            stdout=self.log, stderr=self.log)
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise SystemExit(f"{name}: the emulator does not answer")

    def invoke(self, event):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        c.request("POST", "/2015-03-31/functions/function/invocations", json.dumps(event).encode())
        answer = c.getresponse().read()
        c.close()
        try:
            return json.loads(answer)
        except ValueError:
            return answer.decode(errors="replace")

    def said(self):
        """The end of the log of one that is closed."""
        self.log.seek(0)
        return self.log.read()[-3000:]

    def close(self):
        self.child.terminate()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()


def payload(name):
    with open(os.path.join(ROOT, "events", name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def way(functions, standins):
    """One document from the request to the answer of a query; yields what is wrong."""
    saved = functions[D].invoke(payload("http-put"))
    if not isinstance(saved, dict) or saved.get("statusCode") not in (200, 201):
        yield f"the put: {json.dumps(saved)[:500]}"
        return
    token = saved["headers"]["Holdfast-Token"]
    items = standins.dynamodb.get_item(TableName=standins.tables["DocumentsTable"], Key={"pk": {"S": "users/1"}, "sk": {"S": "/"}})
    event = payload("stream")
    record = event["Records"][0]
    record["dynamodb"]["NewImage"] = items["Item"]
    event["Records"] = [record]
    standins.messages()  # what the payloads before have left
    wrong = failures()(functions[R].invoke(event))
    signals = standins.messages()
    if wrong or not signals["Records"]:
        yield f"the relay sent {len(signals['Records'])} messages; {wrong}"
        return
    wrong = failures()(functions[X].invoke(signals))
    if wrong:
        yield f"the indexer: {wrong}"
    ask = payload("http-query")
    ask["body"] = json.dumps({"from": "users", "filter": {"name": "Ada", "born": {"$lt": 1900}}, "count": True, "wait": {"tokens": [token], "timeout": "10s"}})
    answer = functions[Q].invoke(ask)

    def one(text):
        found = json.loads(text)
        return [d["id"] for d in found["documents"]] == ["users/1"] and found["count"]["value"] == 1
    wrong = body(200, one, "not the document and nothing else")(answer)
    if wrong:
        yield f"the query: {wrong}: {json.dumps(answer)[:500]}"


def start(binary, variables):
    """Starts a binary as Lambda does, up to its first request for an event.

    Gives wall and processor milliseconds and resident MiB.
    """
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        s.settimeout(60)
        env = {**LOCAL, "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:%d" % s.getsockname()[1], "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", **variables}
        begun = time.perf_counter()
        child = subprocess.Popen([binary], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            c, _ = s.accept()
            if not c.recv(4096).startswith(b"GET /2018-06-01/runtime/invocation/next"):
                raise SystemExit(f"{binary} asks for something else than an event")
            wall = (time.perf_counter() - begun) * 1000
            with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
                memory = next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024
        finally:
            os.kill(child.pid, signal.SIGKILL)
            _, _, used = os.wait4(child.pid, 0)
            child.returncode = -signal.SIGKILL
        c.close()  # not before: the function would see it and end by itself
    return wall, (used.ru_utime + used.ru_stime) * 1000, memory


def table(binaries, variables):
    """Measures in turns, so that what else the machine does falls on all alike."""
    measured = {name: [] for name in binaries}
    for _ in range(STARTS):
        for name, binary in binaries.items():
            measured[name].append(start(binary, variables.get(name, {})))
    least = {name: min(m[0] for m in all_) for name, all_ in measured.items()}
    first = next(iter(least.values()))
    print(f"{'start, ' + str(STARTS) + ' times':<20}{'least ms':>9}{'median':>9}{'cpu ms':>9}{'MiB':>7}{'bytes':>11}{'ratio':>7}")
    for name, all_ in measured.items():
        wall, cpu, memory = (statistics.median(column) for column in zip(*all_))
        print(f"{name:<20}{least[name]:>9.1f}{wall:>9.1f}{cpu:>9.1f}{memory:>7.1f}{os.path.getsize(binaries[name]):>11}{least[name] / first:>7.2f}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends
    given = argparse.ArgumentParser()
    given.add_argument("expansion")
    given.add_argument("build")
    given.add_argument("--beside", nargs="+", default=[])
    given.add_argument("--under")
    given = given.parse_args()
    with open(given.expansion, encoding="utf-8") as f:
        expansion = json.load(f)
    binaries = {os.path.basename(os.path.dirname(p)): p for p in sorted(glob.glob(os.path.join(given.build, "*", "bootstrap")))}
    wrong = [f"no case for {name}" for name in set(binaries) - {c[0] for c in CASES}]
    unused = {os.path.basename(p).removesuffix(".json") for p in glob.glob(os.path.join(ROOT, "events", "*.json"))} - {c[1] for c in CASES} - {"env"}
    wrong += [f"no case for events/{name}.json" for name in sorted(unused)]
    standins = Standins(expansion)
    functions, variables, failing = {}, {}, set()
    try:
        for name, binary in binaries.items():
            variables[name] = standins.environment(expansion, name, "127.0.0.1", "127.0.0.1")
            functions[name] = Function(name, [given.under, binary] if given.under else [binary], variables[name])
        for function, name, check in CASES:
            answer = functions[function].invoke(payload(name))
            said = check(answer)
            if said:
                wrong.append(f"{function} with {name}: {said}: {json.dumps(answer)[:400]}")
                failing.add(function)
        wrong += [f"the whole way: {w}" for w in way(functions, standins)]
        wrong += list(standins.refused())
    finally:
        for f in functions.values():
            f.close()
        standins.close()
    for w in wrong:
        print("FAIL", w)
    for name in sorted(failing):
        print(f"the end of what {name} said:\n{functions[name].said()}")
    print(f"{len(CASES)} payloads to {len(functions)} functions, and one document's whole way: {'as it should be' if not wrong else f'{len(wrong)} wrong'}")
    if given.beside:
        table({**{os.path.basename(p): p for p in given.beside}, **binaries}, variables)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
