"""Measures the time from the deadline to the denial of a request whose Python policy gives no verdict.

    make bench-policies              does this too; writes bench/results/policy-deadline.json
    python -m bench.policy_deadline  about 20 seconds

One client sends one request at a time. The policy sleeps past its deadline, or computes past it and holds the
interpreter. Between two such requests it allows one immediately, so that the breaker never opens.
"""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofgate.policy import Allow, Policy, PolicyRequest, Verdict

from bench import machine, proofgate_worker, request
from bench.load import tools, upstream
from bench.summary import spread
from bench.system import System

RESULT = Path(__file__).parent / "results" / "policy-deadline.json"
REQUESTS = 40
DEADLINE_MS = 100
#: Seconds that the policy takes, which exceed its deadline.
TAKES_SECONDS = 0.15
SLEEP, COMPUTE, PASS = "sleep", "compute", "pass"


class TakesTooLong:
    """A policy that does what the request's text says."""

    name = "takes-too-long"

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        """Allows every request, most of them too late."""
        for asked in batch:
            texts = [found.text for found in asked.texts]
            if SLEEP in texts:
                time.sleep(TAKES_SECONDS)
            elif COMPUTE in texts:
                until = time.monotonic() + TAKES_SECONDS
                while time.monotonic() < until:
                    pass
        return [Allow()] * len(batch)


def takes_too_long() -> Policy:
    """The factory in the worker's configuration."""
    return TakesTooLong()


def with_policy(document: dict[str, Any]) -> None:
    """Adds the policy to a worker's configuration, and has the tenant ask for it."""
    factory = "bench.policy_deadline:takes_too_long"
    policy = {"name": "takes-too-long", "factory": factory, "deadlineMilliseconds": DEADLINE_MS}
    document["policies"] = [policy]
    document["tenants"][0]["policies"] = [policy["name"]]


def main() -> int:
    """Returns the exit code."""
    about = machine.describe()
    with (
        tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch,
        upstream.run(tools.stream_load(), Path(scratch), paced=False) as source,
        proofgate_worker.start(Path(scratch), source.address, change=with_policy) as worker,
    ):
        late = {what: spread(late_ms(worker, what)) for what in (SLEEP, COMPUTE)}
    result = {"machine": about, "requests": REQUESTS, "deadline_ms": DEADLINE_MS, "denied_after_deadline_ms": late}
    print(json.dumps(result, indent=2))
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def late_ms(worker: System, what: str) -> list[float]:
    """Milliseconds from the deadline to the client's refusal, for each request."""
    found = []
    ask(worker, PASS, 200)
    for _ in range(REQUESTS):
        found.append(ask(worker, what, 403) - DEADLINE_MS)
        time.sleep(TAKES_SECONDS)
        ask(worker, PASS, 200)
    return found


def ask(worker: System, text: str, status: int) -> float:
    """Milliseconds from sending one request to the end of its answer. Raises SystemExit at another answer."""
    connection = http.client.HTTPConnection(worker.address, timeout=10)
    connection.connect()
    body, headers = request.chat(text), {**worker.headers, "Content-Type": "application/json"}
    began = time.perf_counter()
    connection.request("POST", worker.path, body, headers)
    answer = connection.getresponse()
    told = answer.read()
    took = (time.perf_counter() - began) * 1000
    connection.close()
    if answer.status != status:
        raise SystemExit(f"{text}: {answer.status} instead of {status}: {told.decode(errors='replace')}")
    return took


if __name__ == "__main__":
    sys.exit(main())
