"""The training of the weights: a linear classifier of windows, in plain Python.

Only sums, products, quotients and square roots of IEEE 754 doubles in a fixed order, which every machine computes
alike: the same texts give the same bytes.
"""

from __future__ import annotations

import hashlib
import math
import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from bench.linear.sources import Text
from bench.linear.weights import Weights
from bench.linear.words import BUCKETS, halves

#: The number of weight units that equal 1.0, the margin.
SCALE = 128
EPOCHS = 4
RATE = 0.05
SEED = 31
#: Maximum number of windows of one text that are learned from.
MOST_OF_ATTACK, MOST_OF_HONEST = 3, 12
#: All windows of one set of attacks count as much as so many, or as themselves if there are fewer.
MOST_OF_SET = 600
#: Minimum number of attack sets that must contain a bucket so that it indicates an attack.
LEAST_SETS = 2
#: Texts of which one is left out: this many of their sixteen smallest hashes are the same.
SHINGLES, ALIKE = 16, 9


@dataclass(frozen=True)
class Sample:
    """A text with the buckets of its half windows."""

    text: Text
    is_attack: bool

    @cached_property
    def parts(self) -> list[array[int]]:
        """The buckets of its half windows."""
        return [array("I", part) for part in halves(self.text.content)]

    @cached_property
    def windows(self) -> list[array[int]]:
        """The buckets of its windows."""
        parts = self.parts
        return parts if len(parts) < 2 else [one + two for one, two in pairwise(parts)]

    def score(self, values: Sequence[float]) -> float:
        """The highest score of a window, without the bias; the lowest there is for a text without words."""
        get = values.__getitem__
        sums = [sum(map(get, part)) for part in self.parts]
        if len(sums) > 1:
            sums = [one + two for one, two in pairwise(sums)]
        return max(sums, default=-math.inf)


class NearCopies:
    """A collection of texts that detects near copies."""

    def __init__(self) -> None:
        self._holders: dict[int, list[int]] = {}
        self._count = 0

    def add(self, sample: Sample) -> None:
        """Adds a text."""
        for shingle in self._shingles(sample):
            self._holders.setdefault(shingle, []).append(self._count)
        self._count += 1

    def has(self, sample: Sample) -> bool:
        """Whether a text is nearly equal to this one: most of the smallest hashes are the same."""
        shingles = self._shingles(sample)
        shared: dict[int, int] = {}
        for shingle in shingles:
            for number in self._holders.get(shingle, ()):
                shared[number] = shared.get(number, 0) + 1
        return bool(shared) and max(shared.values()) * SHINGLES >= ALIKE * len(shingles)

    @staticmethod
    def _shingles(sample: Sample) -> list[int]:
        # The hashes are mixed again, so that the smallest ones are random.
        mixed = {(number * 0x2C1B_3C6D) & 0xFFFF_FFFF for part in sample.parts for number in part}
        return sorted(mixed)[:SHINGLES]


def without_near_copies(samples: Iterable[Sample]) -> list[Sample]:
    """The texts in order, with only the first of nearly equal texts."""
    known = NearCopies()
    kept = []
    for sample in samples:
        if not known.has(sample):
            known.add(sample)
            kept.append(sample)
    return kept


def _spread(windows: list[array[int]], most: int) -> list[array[int]]:
    step = max(1, -(-len(windows) // most))
    return windows[::step]


def learn(samples: Sequence[Sample]) -> list[float]:
    """The weights of all buckets, and the bias behind them."""
    examples = _examples(samples)
    values, squares = [0.0] * (BUCKETS + 1), [1.0] * (BUCKETS + 1)
    get = values.__getitem__
    order = list(range(len(examples)))
    for epoch in range(EPOCHS):
        random.Random(SEED + epoch).shuffle(order)
        for number in order:
            buckets, sign, weight = examples[number]
            missing = 1.0 - sign * sum(map(get, buckets))
            if missing <= 0.0:
                continue
            # The slope of a squared hinge that becomes a line.
            slope = sign * weight * min(missing, 1.0)
            square = slope * slope
            for bucket in buckets:
                squares[bucket] += square
                values[bucket] += RATE * slope / math.sqrt(squares[bucket])
    return values


def _examples(samples: Sequence[Sample]) -> list[tuple[array[int], float, float]]:
    """The buckets, the sign and the weight of each window."""
    bias = array("I", [BUCKETS])
    counts: dict[str, int] = {}
    chosen = []
    for sample in samples:
        windows = _spread(sample.windows, MOST_OF_ATTACK if sample.is_attack else MOST_OF_HONEST)
        counts[sample.text.source] = counts.get(sample.text.source, 0) + len(windows)
        chosen.append((sample, windows))
    examples = []
    for sample, windows in chosen:
        share = min(1.0, MOST_OF_SET / counts[sample.text.source]) if sample.is_attack else 1.0
        sign = 1.0 if sample.is_attack else -1.0
        examples += [(window + bias, sign, share) for window in windows]
    return examples


def without_topics(values: Sequence[float], samples: Iterable[Sample]) -> list[float]:
    """Weights without those that speak for an attack and come from too few sets.

    What is in one set is what that set is about. It is learned all the same: otherwise other weights would have to
    explain it.
    """
    sets: dict[int, set[str]] = {}
    for sample in samples:
        if sample.is_attack:
            for number in {number for part in sample.parts for number in part}:
                sets.setdefault(number, set()).add(sample.text.source)
    kept = [
        value if value <= 0.0 or len(sets.get(number, ())) >= LEAST_SETS else 0.0 for number, value in enumerate(values)
    ]
    kept[BUCKETS] = values[BUCKETS]
    return kept


def quantised(values: Sequence[float]) -> tuple[array[int], int]:
    """Weights in a signed byte each, and the bias."""
    rounded = [math.floor(value * SCALE + 0.5) for value in values]
    return array("b", [max(-127, min(127, value)) for value in rounded[:BUCKETS]]), rounded[BUCKETS]


def thresholds(scores: Iterable[float]) -> tuple[int, int]:
    """The lowest scores that at most half a percent and one percent of honest texts reach."""
    ordered = sorted(scores, reverse=True)
    half, one = (math.floor(len(ordered) * share) for share in (0.005, 0.01))
    return int(ordered[half]) + 1, int(ordered[one]) + 1


def trained(samples: Sequence[Sample], threshold: Sequence[Sample]) -> Weights:
    """Weights learned from `samples`, with the thresholds that honest texts give."""
    values, bias = quantised(without_topics(learn(samples), samples))
    half, one = thresholds(sample.score(values) + bias for sample in threshold)
    digest = hashlib.sha256()
    for sample in [*samples, *threshold]:
        digest.update(hashlib.sha256(sample.text.content).digest())
    return Weights(values, bias, half, one, SCALE, digest.digest())
