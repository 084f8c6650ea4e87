"""What a policy is: a name, and a function from requests to verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class PolicyText:
    """One string of a request's body, one key, or one long number.

    `kind` is what it is there; `is_instructions` whether it lies in a message of the role `system` or
    `developer`.
    """

    text: str
    kind: Literal["text", "key", "number"] = "text"
    is_instructions: bool = False


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """One request, after the built-in rules: what they have redacted is not in it.

    `endpoint` is a path such as `/v1/chat/completions`; `texts` are in the order of the body, as the rules
    see them. Everything in it comes from a client.
    """

    tenant: str
    model: str
    endpoint: str
    texts: tuple[PolicyText, ...]


@dataclass(frozen=True, slots=True)
class Allow:
    """The policy has nothing to say. Nothing is recorded of it."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The request is refused with 403 `policy_blocked`.

    `code` is recorded behind the policy's name: kebab-case, at most 32 characters, not beginning with
    `failed-`. `reason` is one sentence of at most 256 characters that the client reads.
    """

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Flag:
    """The request goes on, and its record has `rule` (as `Deny.code`) and `score`, 0 to 100000.

    The score adds to that of the rules; a policy alone never brings it up to the threshold.
    """

    rule: str
    score: int = 0


@dataclass(frozen=True, slots=True)
class Replacement:
    """A part of a request and what takes its place.

    `text` is the position in `PolicyRequest.texts`; `start` and `end` count characters of it, as slices do.
    `by` has at most 1024 bytes of UTF-8 and no quotation mark, backslash or control character, since a text
    may be JSON itself. A number becomes 0 whatever `by` is.
    """

    text: int
    start: int
    end: int
    by: str


@dataclass(frozen=True, slots=True)
class Replace:
    """The request goes on with parts of it replaced; its record has `rule` (as `Deny.code`).

    1 to 10000 replacements, in order and without overlaps. With `reversible`, what was replaced is put back
    wherever the answer, streamed or not, has what took its place: then each `by` stands for one text,
    of which there are at most 256 of at most 1024 bytes. A text that JSON has to escape stays replaced.
    """

    rule: str
    replacements: Sequence[Replacement]
    reversible: bool = False


Verdict = Allow | Deny | Flag | Replace


class Policy(Protocol):
    """A policy. One thread of its own calls it, so it needs no lock.

    It may also have `start()`, called before the first batch, and `close()`, called after the last one.
    """

    @property
    def name(self) -> str:
        """What it calls itself, in logs."""

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        """One verdict for each request, in their order.

        Whatever it raises is a failure of every request for which it raises: a batch that raised is tried
        again, each request by itself.
        """
