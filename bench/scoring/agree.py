"""Compares the Rust engine with the plain reference on random events: every match and its replaced text must be equal.

python -m bench.scoring.agree --events 100000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from bench.scoring.engine import EngineError, Event, build, scans
from bench.scoring.events import events
from bench.scoring.reference import Match, Reference, Scanned
from bench.scoring.rules import Rule, load_packs
from bench.scoring.spared import Allow

BATCH = 2000
SHOWN = 20
#: The values that both must allow: some of each kind from the examples of rules.
ALLOWED = Allow(
    ("q7Zt3LmP9xKv2RbN", "4539 5787 6362 1486", "Robin@acme.com"),
    ("acme.co.uk", "firma.de"),
    ("*@mail.*", "https://acme.*"),
)

Engine = Callable[[Sequence[Event]], list[Scanned]]


@dataclass(frozen=True)
class Difference:
    """One event on which the engine and the reference differ."""

    event: Event
    only_engine: frozenset[Match]
    only_reference: frozenset[Match]


@dataclass
class Agreement:
    """The counts of a comparison."""

    events: int = 0
    matches: int = 0
    #: Number of matches whose replaced text is longer than the match.
    replaced: int = 0
    matched_rules: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)


def compare(reference: Reference, engine: Engine, stream: Iterable[Event]) -> Agreement:
    """Passes every event to both. Raises EngineError if the engine answers fewer events than it got."""
    agreement = Agreement()
    source = iter(stream)
    while batch := list(islice(source, BATCH)):
        answers = engine(batch)
        if len(answers) != len(batch):
            raise EngineError(f"{len(batch)} events were given and {len(answers)} answered")
        for event, answer in zip(batch, answers, strict=True):
            expected = reference.scan_with_replaced(event.text, event.direction)
            agreement.events += 1
            agreement.matches += len(expected.matches)
            agreement.replaced += len(expected.replaced)
            agreement.matched_rules |= {match.rule for match in expected.matches}
            for ours, theirs in zip(expected, answer, strict=True):
                if ours != theirs:
                    agreement.differences.append(Difference(event, frozenset(theirs - ours), frozenset(ours - theirs)))
    return agreement


def show(agreement: Agreement, rules: Sequence[Rule], seed: int) -> None:
    """Prints a comparison, with the first differences."""
    for difference in agreement.differences[:SHOWN]:
        print(f"differs: {difference.event.direction} {difference.event.text!r}")
        print(f"  engine only: {sorted(difference.only_engine)}, reference only: {sorted(difference.only_reference)}")
    unmatched = sorted({rule.id for rule in rules} - agreement.matched_rules)
    print(f"rules that never matched: {', '.join(unmatched) or 'none'}")
    print(
        f"{agreement.events} events (seed {seed}), {len(rules)} rules, {agreement.matches} matches,"
        f" {agreement.replaced} of them cut off,"
        f" {len(agreement.differences)} differences"
    )


def main() -> int:
    """Returns the exit code: 0 if all events agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", type=Path, help="the example `verdicts`, if it is not to be built")
    options = parser.parse_args()
    rules = load_packs()
    engine = partial(scans, options.engine or build("verdicts"), allow=ALLOWED)
    agreement = compare(Reference(rules, ALLOWED), engine, events(rules, options.events, options.seed))
    show(agreement, rules, options.seed)
    return int(bool(agreement.differences))


if __name__ == "__main__":
    sys.exit(main())
