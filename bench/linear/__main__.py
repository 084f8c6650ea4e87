"""python -m bench.linear SETS [--write]

How many texts of each set of attacks the linear score finds if it has learned from all other sets, and how many honest
texts it takes for attacks. With --write also learns from all sets that it may learn from, and writes the weights.
`bench/linear/__init__.py` says how to get the sets.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.linear import examples
from bench.linear.sources import ATTACKS, HONEST, ordinary
from bench.linear.training import NearCopies, Sample, trained, without_near_copies
from bench.linear.weights import PATH, Weights


@dataclass(frozen=True)
class Sets:
    """All sets of attacks and all honest texts, without near copies."""

    attacks: dict[str, list[Sample]]
    honest: list[Sample]

    @classmethod
    def read(cls, root: Path) -> Sets:
        """Reads the sets below a folder."""
        attacks = {
            source.name: without_near_copies(Sample(text, is_attack=True) for text in source.texts(root))
            for source in ATTACKS
        }
        sources = (*HONEST, *ordinary(root))
        honest = (Sample(text, is_attack=False) for source in sources for text in source.texts(root))
        return cls(attacks, without_near_copies(honest))

    def part(self, part: str) -> list[Sample]:
        """The honest texts for a part."""
        return [sample for sample in self.honest if sample.text.part == part]

    def learned(self, without: str | None = None) -> Weights:
        """The weights from all sets, or from all except one and the near copies of its texts."""
        left_out = NearCopies()
        for sample in self.attacks.get(without or "", ()):
            left_out.add(sample)
        licensed = [source.name for source in ATTACKS if source.licence and source.name != without]
        attacks = without_near_copies(
            sample for name in licensed for sample in self.attacks[name] if not left_out.has(sample)
        )
        return trained([*attacks, *self.part("learn")], self.part("threshold"))


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, help="the folder that holds the sets")
    parser.add_argument("--write", action="store_true", help="write the weights, and the scores that tests expect")
    options = parser.parse_args()
    sets = Sets.read(options.sets)
    weights = sets.learned()
    if options.write:
        weights.write(PATH)
        examples.write(weights)
    _show_attacks(sets)
    _show_honest(sets, weights)
    return 0


def _show_attacks(sets: Sets) -> None:
    print("| left out | texts | licence | found at 0.5 % | at 1 % | AUC |\n|---|---|---|---|---|---|")
    areas = []
    for source in ATTACKS:
        weights = sets.learned(without=source.name)
        scores = _scores(weights, sets.attacks[source.name])
        areas.append(_area(scores, sorted(_scores(weights, sets.part("report")))))
        row = (source.name, str(len(scores)), source.licence or "none", _shares(weights, scores), f"{areas[-1]:.2f}")
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"\nMacro AUC: {sum(areas) / len(areas):.2f}\n")


def _show_honest(sets: Sets, weights: Weights) -> None:
    print("| honest texts | texts | flagged at 0.5 % | at 1 % |\n|---|---|---|---|")
    groups: dict[str, list[float]] = defaultdict(list)
    report = sets.part("report")
    for sample, score in zip(report, _scores(weights, report), strict=True):
        groups[_group(sample.text.source)].append(score)
    for name, scores in groups.items():
        print(f"| {name} | {len(scores)} | {_shares(weights, scores)} |")
    count = {part: len(sets.part(part)) for part in ("learn", "threshold", "report")}
    print(
        f"\nOf {len(sets.honest)} honest texts {count['learn']} are learned from, {count['threshold']} set thresholds."
    )


def _group(source: str) -> str:
    if source.startswith("files of "):
        return "files of repositories"
    kind = source.partition(":")[0]
    return source if source.startswith("prompts: products") else kind


def _scores(weights: Weights, samples: Sequence[Sample]) -> list[float]:
    return [sample.score(weights.values) + weights.bias for sample in samples]


def _shares(weights: Weights, scores: Sequence[float]) -> str:
    thresholds = (weights.half_percent, weights.one_percent)
    shares = [sum(score >= threshold for score in scores) / len(scores) for threshold in thresholds]
    return " | ".join(f"{share:.1%}" for share in shares)


def _area(scores: Sequence[float], honest: Sequence[float]) -> float:
    """The share of pairs of an attack and an honest text in which the attack has the higher score."""
    below = sum(bisect_left(honest, score) + bisect_right(honest, score) for score in scores)
    return below / 2 / len(scores) / len(honest)


if __name__ == "__main__":
    sys.exit(main())
