"""The interface of a policy: a name, and a function from requests to verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class PolicyText:
    """One string of a request's body, one key, or one long number.

    `kind` says which of these it is. `is_instructions` says whether it is in a message of the role `system`
    or `developer`.
    """

    text: str
    kind: Literal["text", "key", "number"] = "text"
    is_instructions: bool = False


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """One request, after the built-in rules, without the text that they have redacted.

    `endpoint` is a path such as `/v1/chat/completions`; `texts` are in the order of the body, as the rules
    see them. Everything in it comes from a client.
    """

    tenant: str
    model: str
    endpoint: str
    texts: tuple[PolicyText, ...]


@dataclass(frozen=True, slots=True)
class Allow:
    """The policy has no objection. Nothing is recorded."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The request is refused with 403 `policy_blocked`.

    `code` is recorded after the policy's name: kebab-case, at most 32 characters, not starting with
    `failed-`. `reason` is one sentence of at most 256 characters for the client.
    """

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Flag:
    """The request continues, and its record has `rule` (same format as `Deny.code`) and `score`, 0 to 100000.

    The score is added to the score of the rules. Policies alone never reach the threshold.
    """

    rule: str
    score: int = 0


@dataclass(frozen=True, slots=True)
class Replacement:
    """A part of a request and its replacement.

    `text` is the position in `PolicyRequest.texts`. `start` and `end` are character positions in it, as in
    slices. `by` has at most 1024 bytes of UTF-8, and no quotation mark, backslash or control character,
    because a text may itself be JSON. A number is always replaced by 0.
    """

    text: int
    start: int
    end: int
    by: str


@dataclass(frozen=True, slots=True)
class Replace:
    """The request continues with parts of it replaced. Its record has `rule` (same format as `Deny.code`).

    1 to 10000 replacements, in order and without overlaps. With `reversible`, each `by` in the response,
    streamed or not, is replaced by the original text. Each `by` must then have exactly one original text,
    with at most 256 texts of at most 1024 bytes. A text that JSON must escape is not restored.
    """

    rule: str
    replacements: Sequence[Replacement]
    reversible: bool = False


Verdict = Allow | Deny | Flag | Replace


class Policy(Protocol):
    """A policy. A single thread calls it, so it needs no lock.

    It may also have `start()`, called before the first batch, and `close()`, called after the last one.
    """

    @property
    def name(self) -> str:
        """The policy's name in logs."""

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        """Returns one verdict for each request, in their order.

        If a batch raises an exception, each of its requests is tried again separately. A request that raises
        an exception then has failed.
        """
