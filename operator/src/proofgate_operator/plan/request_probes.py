"""Results of probe requests: each agent next to HAProxy sends one through HAProxy to a worker every few
seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proofgate_operator.plan.problems import Problem

#: The reasons that agents may report; other reasons are not copied into a status.
_REASONS = frozenset({"NoWorkerUp", "NotAnswered", "NotReached", "TLSFails", "WorkerFails"})
_UNKNOWN_REASON = "NotAnswered"


@dataclass(frozen=True)
class RequestProbeReport:
    """The report of an agent: `reason` is empty if its last request was answered."""

    reason: str = ""
    message: str = ""


def parse_request_probe(found: Any) -> RequestProbeReport | None:
    """Parse the answer of `GET /answers`; None if there is no result yet. Raises ValueError if it is
    invalid."""
    if not isinstance(found, dict) or not isinstance(found.get("answered"), bool | None):
        raise ValueError("no HAProxy sidecar has answered")
    if found.get("answered") is None:
        return None
    if found["answered"]:
        return RequestProbeReport()
    reason = found.get("reason")
    known = reason if isinstance(reason, str) and reason in _REASONS else _UNKNOWN_REASON
    return RequestProbeReport(known, str(found.get("message") or "no response arrived")[:256])


def request_probe_failure(answers: Mapping[str, RequestProbeReport]) -> Problem | None:
    """Return why requests are answered through none of the HAProxy pods; None if some are answered, or
    nothing is known. `answers` are keyed by pod name."""
    if not answers or not all(answer.reason for answer in answers.values()):
        return None
    name, first = min(answers.items())
    several = f" (all {len(answers)} HAProxy pods fail)" if len(answers) > 1 else ""
    return Problem(first.reason, f"requests are not answered: {name}: {first.message}{several}")


def request_probe_note(answers: Mapping[str, RequestProbeReport]) -> str | None:
    """Return a note about HAProxy pods without answers, if requests through others are answered; None
    otherwise."""
    failing = sorted(name for name, answer in answers.items() if answer.reason)
    if not answers:
        return None
    if not failing:
        return "requests are answered"
    return f"requests through {', '.join(failing)} are not answered: {answers[failing[0]].message}"
