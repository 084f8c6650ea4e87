"""A small linear classifier: adds to the score of requests that look like attempts to override instructions.

It denies no request alone: its score is added to that of the rules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from proofgate.policy import Allow, Flag, Policy, PolicyRequest, Verdict

from .features import BUCKETS, features


class Classifier:
    """Flags requests with a text that is an override with at least `probability`; adds at most `score`."""

    def __init__(self, file: Path, probability: float, score: int) -> None:
        self._file = file
        self._probability = probability
        self._score = score
        self._weights: list[float] = []
        self._bias = 0.0

    @property
    def name(self) -> str:
        return "classifier"

    def start(self) -> None:
        """Reads the weights."""
        document = json.loads(self._file.read_text())
        self._weights, self._bias = [float(weight) for weight in document["weights"]], float(document["bias"])
        if len(self._weights) != BUCKETS:
            raise ValueError(f"there are {len(self._weights)} weights, and not {BUCKETS}")

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        return [self._verdict(request) for request in batch]

    def _verdict(self, request: PolicyRequest) -> Verdict:
        # The application's own instructions may contain such sentences.
        texts = (text.text for text in request.texts if text.kind == "text" and not text.is_instructions)
        most = max((self._probability_of(text) for text in texts), default=0.0)
        return Flag("override", round(most * self._score)) if most >= self._probability else Allow()

    def _probability_of(self, text: str) -> float:
        score = self._bias + sum(self._weights[bucket] for bucket in features(text))
        return 1 / (1 + math.exp(-max(min(score, 50.0), -50.0)))


def policy(file: str | None = None, probability: float = 0.8, score: int = 50) -> Policy:
    """The factory: `classifier.classifier_policy:policy`, with the folder `policies` on PYTHONPATH."""
    return Classifier(Path(file) if file else Path(__file__).with_name("weights.json"), probability, score)
