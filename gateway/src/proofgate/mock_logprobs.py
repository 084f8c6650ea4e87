"""Token distributions of the mock upstream, derived from a prompt and a profile."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Literal

#: The simulated model. `b` gives its tokens lower probabilities, and considers other alternatives.
LogprobProfile = Literal["a", "b"]
LOGPROB_PROFILES: tuple[LogprobProfile, ...] = ("a", "b")

#: Minimum probability of the chosen token.
_MIN_PROBABILITY = {"a": 0.7, "b": 0.4}


def token_logprobs(
    pieces: list[str], prompt: str, count: int, character: LogprobProfile
) -> list[dict[str, Any]]:
    """Returns the log probabilities of each token: the token itself, and the `count` most likely tokens."""
    return [
        _token(piece, f"{character}:{number}:{prompt}", count, character)
        for number, piece in enumerate(pieces)
    ]


def _token(piece: str, seed: str, count: int, character: LogprobProfile) -> dict[str, Any]:
    digest = hashlib.sha256(seed.encode()).digest()
    chosen = _MIN_PROBABILITY[character] + 0.25 * digest[0] / 255
    # Each further token gets half of the remaining probability.
    others = [(1 - chosen) * 0.5**rank for rank in range(1, count)]
    tokens = [(piece, chosen), *((f" {character}{digest[1] % 4 + rank}", p) for rank, p in enumerate(others))]
    told = [_logprob_entry(token, probability) for token, probability in tokens]
    return {**told[0], "top_logprobs": told[:count]}


def _logprob_entry(token: str, probability: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(probability), "bytes": list(token.encode())}
