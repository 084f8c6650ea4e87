"""`make garden`: sends every request that the gateway accepts to every parser.

A request passes if each parser reads the same method, target, Host, framing and body as the guard, and then reads the
request that follows on the connection. Requests that the gateway writes are judged in the same way. Exits with 1 on any
difference, with 2 if an oracle is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import uvloop

from e2e.garden.exceptions import EXEMPTIONS, leaves_http
from e2e.garden.guard import sort
from e2e.garden.judge import Outcome, judge, unaccounted
from e2e.garden.oracles import MissingTool, Oracle, build, running
from e2e.garden.reading import Message
from e2e.garden.sender import ask
from e2e.garden.sources import everything

SHOWN_DIFFERENCES = 10  # of each oracle


def consult(oracle: Oracle, messages: Sequence[Message]) -> bool:
    """Sends all messages to one oracle and prints the results; returns whether there was no difference."""
    messages = [message for message in messages if not leaves_http(oracle.name, message)]
    started = time.monotonic()
    asked = 0

    def progress() -> None:
        nonlocal asked
        asked += 1
        if sys.stdout.isatty() and asked % 100 == 0:
            print(f"\r   {oracle.name}: {asked} of {len(messages)}", end="", flush=True)

    answers = uvloop.run(ask(oracle, messages, progress))
    outcomes = [judge(oracle, message, answer) for message, answer in zip(messages, answers, strict=True)]
    differences = [outcome for outcome in outcomes if outcome.difference]
    excused = Counter(outcome.exemption for outcome in outcomes if outcome.exemption)
    agreed = len(outcomes) - len(differences) - excused.total()
    start = "\r" if sys.stdout.isatty() else ""
    print(f"{start}   {oracle.name:10} {agreed} read the same, {len(differences)} otherwise", end="")
    print("".join(f", {count} exempt ({name})" for name, count in excused.items()), end="")
    print(f", {time.monotonic() - started:.0f} s")
    for outcome in differences[:SHOWN_DIFFERENCES]:
        show(outcome)
    extra = unaccounted(oracle, outcomes, answers)
    if extra:
        print(f"      {extra} requests reached the server behind it that nobody sent")
    return not differences and not extra


def show(outcome: Outcome) -> None:
    raw = outcome.message.raw
    shown = repr(raw if len(raw) <= 600 else raw[:600] + b"...")
    print(f"      {outcome.message.origin}: {outcome.difference}\n         {shown}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--generated", type=int, default=8000, help="requests to generate, before the guard sorts them")
    parser.add_argument("--seed", default="garden", help="another seed, other requests")
    parser.add_argument("--grown", action="store_true", help="also what `make fuzz` has grown on this machine")
    parser.add_argument("--only", help="ask only the oracle of this name")
    arguments = parser.parse_args()
    started = time.monotonic()
    cache = Path(os.environ.get("PROOFGATE_CACHE", Path.home() / ".cache" / "proofgate"))
    try:
        print("== building the guard and its oracles (about 1 minute when cold)", flush=True)
        built = build(cache)
        grown = cache / "fuzz" if arguments.grown else None
        candidates = list(everything(arguments.generated, arguments.seed, grown))
        requests = sort(built.guard, built.upstream, candidates)
        messages = requests.accepted + requests.rewritten + requests.upstream
        print(
            f"== {len(candidates)} candidates: {len(requests.accepted)} accepted, {len(requests.rewritten)} of them "
            f"written anew, {len(requests.upstream)} as they go upstream",
            flush=True,
        )
        with tempfile.TemporaryDirectory() as folder, running(built, Path(folder)) as oracles:
            asked = [oracle for oracle in oracles if arguments.only in (None, oracle.name)]
            agreed = [consult(oracle, messages) for oracle in asked]
    except MissingTool as missing:
        print(missing, file=sys.stderr)
        return 2
    print(f"== {time.monotonic() - started:.0f} s, {len(EXEMPTIONS)} exemptions")
    print(f"{sum(agreed)} passed, {len(agreed) - sum(agreed)} failed")
    return 0 if agreed and all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
