"""Measures the policy engine alone: speed, agreement with a plain reference, precision and recall.

python -m bench.scoring                all of that; writes bench/results/scoring.json and its figures in docs
python -m bench.scoring --soak 30m     half an hour of load with injected panics; writes bench/results/scoring-soak.json

The exit code is 1 if the engine and the reference disagree on any event, or if 1 % of the honest prompts or more are
stopped. Speed does not change the exit code, because it depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import Any

from bench import machine
from bench.report import pages
from bench.scoring import agree, evaluate, kinds, soak, speed
from bench.scoring.engine import EngineError, build, scans, verdicts
from bench.scoring.events import events
from bench.scoring.reference import Reference
from bench.scoring.rules import load_packs


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the speed test, at least 3 (default 7)")
    parser.add_argument("--events", type=int, default=50_000, help="events for the engine in a round (default 50,000)")
    parser.add_argument("--reference-events", type=int, default=200, help="events for the reference (default 200)")
    parser.add_argument("--agree", type=int, default=100_000, help="random events to agree on (default 100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random events (default 1)")
    parser.add_argument("--soak", type=soak.seconds, metavar="DURATION", help="only the soak, for instance 30m")
    options = parser.parse_args()
    about = machine.describe()
    try:
        return _soak(about, options.soak) if options.soak else _all(about, options)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1


def _all(about: dict[str, object], options: argparse.Namespace) -> int:
    scan = partial(verdicts, build("verdicts"))
    measured = speed.compare(build("scoring"), options.rounds, options.events, options.reference_events)
    speed.show(measured)
    by_kind = kinds.measure(build("kinds"))
    print()
    kinds.show(by_kind)
    rules = load_packs()
    allowing = partial(scans, build("verdicts"), allow=agree.ALLOWED)
    agreement = agree.compare(Reference(rules, agree.ALLOWED), allowing, events(rules, options.agree, options.seed))
    print()
    agree.show(agreement, rules, options.seed)
    judged = evaluate.evaluate(scan)
    print()
    evaluate.show(judged["own"], judged["public"])
    print()
    agreed = {
        "events": agreement.events,
        "seed": options.seed,
        "matches": agreement.matches,
        "rules_matched": len(agreement.matched_rules),
        "differences": len(agreement.differences),
    }
    _write(
        "scoring.json",
        {"machine": about, "speed": measured, "kinds": by_kind, "agreement": agreed, "evaluation": judged},
    )
    too_many = judged["own"]["false_positive_rate"] >= evaluate.MOST_FALSE_POSITIVES
    return int(bool(agreement.differences) or too_many)


def _soak(about: dict[str, object], duration: int) -> int:
    result = soak.soak(build("scoring"), duration)
    soak.show(result)
    _write("scoring-soak.json", {"machine": about, "soak": result})
    return 0


def _write(name: str, result: dict[str, Any]) -> None:
    path = pages.RESULTS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
    print("written:", ", ".join(written.name for written in (path, *pages.write())))


if __name__ == "__main__":
    sys.exit(main())
