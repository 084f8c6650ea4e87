"""Measures the cost of a Python policy, for tenants with it (by the size of its batches) and without it.

    make bench-policies                        about three minutes; writes bench/results/python-policies.json
    python -m bench.python_policies --turns 1  prints, and writes nothing

Four workers are measured in turns: without policies, with a policy that the tenant does not use, and with a policy that
it uses, in batches of up to 32 requests and of one. The policy allows everything, so only the calls are measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from proofgate.policy import Allow, Policy, PolicyRequest, Verdict

from bench import machine, proofgate_worker, scenarios
from bench.load import tools, upstream
from bench.scenarios import Scenario
from bench.summary import Record, paired, spread
from bench.system import Candidate
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "python-policies.json"
TURNS = 7
SECONDS = 3
CONNECTIONS = (1, 64)
#: The name of the worker with the policy engine and limits, but without Python policies.
NONE = "no-policies"
FIGURES = ("requests_per_second", "p50_us", "p99_us", "cpu_us_per_request")
#: By the worker's name, the batch size of its policy, and whether the tenant uses it.
POLICIES = {"not-asked": (32, False), "batch-32": (32, True), "batch-1": (1, True)}


class AllowsAll:
    """A policy without findings."""

    name = "allows-all"

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        """Allows every request."""
        return [Allow()] * len(batch)


def allows_all() -> Policy:
    """The factory in the workers' configuration."""
    return AllowsAll()


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help=f"turns (default {TURNS}); with them nothing is written")
    options = parser.parse_args()
    record, about = Record(), machine.describe()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        folder = Path(scratch)
        with upstream.run(tools.stream_load(), folder, paced=False) as source:
            take_turns(options.turns or TURNS, candidates(), source.address, folder, plan, record, paced=False)
    result = {"machine": about, **summarise(record)}
    print(json.dumps(result, indent=2))
    if options.turns is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if record.voided else 0


def candidates() -> list[Candidate]:
    """The four workers."""
    found = [Candidate(NONE, "no policies in Python", lambda: "", proofgate_worker.start)]
    for name, (batch, asked) in POLICIES.items():
        start = partial(proofgate_worker.start, change=partial(with_policy, batch=batch, asked=asked))
        found.append(Candidate(name, f"a policy in batches of {batch}, asked: {asked}", lambda: "", start))
    return found


def with_policy(document: dict[str, Any], *, batch: int, asked: bool) -> None:
    """Adds the policy to a worker's configuration."""
    document["policies"] = [
        {
            "name": "allows-all",
            "factory": "bench.python_policies:allows_all",
            "deadlineMilliseconds": 10_000,
            "batch": batch,
        }
    ]
    if asked:
        document["tenants"][0]["policies"] = ["allows-all"]


def plan(_candidate: Candidate) -> Iterator[Scenario]:
    """The plan: one client, and many concurrent clients."""
    for connections in CONNECTIONS:
        yield Scenario("policies", f"c{connections}", scenarios.closed(connections, scenarios.PROMPT_BYTES, SECONDS))


def summarise(record: Record) -> dict[str, Any]:
    """All figures of all workers, and the ratio of their rates to that of the worker without policies."""
    result: dict[str, Any] = {"voided": record.voided}
    for connections in CONNECTIONS:
        point = f"c{connections}"
        workers = result[point] = {}
        bare = record.series("policies", point, NONE, "requests_per_second")
        for name in (NONE, *POLICIES):
            series = {figure: record.series("policies", point, name, figure) for figure in FIGURES}
            if not series["requests_per_second"]:
                continue
            workers[name] = {figure: spread(found.values()) for figure, found in series.items()}
            workers[name]["rate_to_none"] = paired(series["requests_per_second"], bare, ratio=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
