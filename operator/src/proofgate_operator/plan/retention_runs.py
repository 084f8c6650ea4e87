"""Finished runs of the retention job, read from their termination messages, which are untrusted bytes."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proofgate_operator.build import retention
from proofgate_operator.build.naming import KEEPING_PLAN_ANNOTATION, Manifest
from proofgate_operator.plan.rfc3339 import seconds_of

#: The kubelet keeps no longer termination message.
_MAX_REPORT_BYTES = 4096
_VERSION = 1
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NAME = re.compile(r"[a-z0-9#]([-a-z0-9]{0,62})")
_DIGEST = re.compile(r"[0-9a-f]{1,64}")
_MAX_MESSAGE = 512
_MAX_NUMBER = 2**53 - 1
_MAX_ITEMS = 16
#: The result of a run without a readable message.
UNREADABLE = "report_unreadable"
#: Value of `anchor` for a run that waited for no auditor's log: only the retention job confirms its times.
NO_ANCHOR = "none"
_ANCHORS = ("", "auditor", NO_ANCHOR)


@dataclass(frozen=True)
class RetentionRun:
    """A finished run. `started_at` is the creation time of its pod in seconds since 1970, by the API server's
    clock, because the node's clock may be wrong. `result` is `ok` or an error code. `retention_key_name` is
    empty if the run could not read its key. `active_hold_count` and `known_hold_count`: None if the run
    did not report them; `planned_hold_count` is from its plan. `anchor` says whose log the run waited for,
    `auditor` or `none`; empty for a run of an earlier release."""

    started_at: float
    result: str
    message: str = ""
    retention_key_name: str = ""
    plan: str = ""
    active_hold_count: int | None = None
    known_hold_count: int | None = None
    planned_hold_count: int = 0
    holds_outside_manifest: tuple[str, ...] = ()
    holds_outside_count: int = 0
    removed: int = 0
    erased: int = 0
    anchor: str = ""
    retained_counts: Mapping[str, int] = field(default_factory=dict)


class _Unreadable(ValueError):
    pass


def finished_runs(pods: Iterable[Manifest], retention_key_name: str) -> list[RetentionRun]:
    """Return the finished runs of this retention job, the oldest first."""
    runs = (_run(pod) for pod in pods)
    own = (run for run in runs if run is not None and run.retention_key_name in ("", retention_key_name))
    return sorted(own, key=lambda run: run.started_at)


def planned_hold_count(pod: Manifest) -> int:
    """Return the number of holds in a run's plan, which the run adds if they are missing. An unreadable plan
    counts as one hold."""
    text = (pod["metadata"].get("annotations") or {}).get(KEEPING_PLAN_ANNOTATION)
    try:
        return sum("released" not in hold for hold in json.loads(text)["holds"]) if text is not None else 0
    except (ValueError, RecursionError, TypeError, KeyError):
        return 1


def unfinished_pods(pods: Iterable[Manifest]) -> list[Manifest]:
    """Return the pods that run or wait to run."""
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]


def pods_without_report(pods: Iterable[Manifest], since: float) -> list[Manifest]:
    """Return the pods without a report: they run, wait to run, or have ended after `since` without a
    message."""
    unheard = [pod for pod in pods if _run(pod) is None]
    going = unfinished_pods(unheard)
    return [pod for pod in unheard if pod in going or (_started_at(pod) or since) >= since]


def _started_at(pod: Manifest) -> float | None:
    return seconds_of(pod["metadata"].get("creationTimestamp"))


def _run(pod: Manifest) -> RetentionRun | None:
    began = _started_at(pod)
    for container in (pod.get("status") or {}).get("containerStatuses") or []:
        terminated = (container.get("state") or {}).get("terminated")
        if container.get("name") != retention.CONTAINER or began is None or terminated is None:
            continue
        words, planned = str(terminated.get("message") or ""), planned_hold_count(pod)
        try:
            return replace(_read(began, words), planned_hold_count=planned)
        except _Unreadable as error:
            how = f"{terminated.get('reason') or 'Error'}, exit code {terminated.get('exitCode')}"
            message = f"the run ended ({how}) without a usable report: {error}"
            return RetentionRun(began, UNREADABLE, message, planned_hold_count=planned)
    return None


def _read(began: float, words: str) -> RetentionRun:
    if not words:
        raise _Unreadable("the report is missing")
    if len(words.encode()) > _MAX_REPORT_BYTES:
        raise _Unreadable("the report is too long")
    try:
        said = json.loads(words)
    except (ValueError, RecursionError):
        raise _Unreadable("the report is not JSON") from None
    if not isinstance(said, dict) or said.get("v") != _VERSION:
        raise _Unreadable("the report has another version")
    state = "known" in said
    return RetentionRun(
        started_at=began,
        result=_matching(said, "result", _CODE),
        message=_line(said.get("message", "")),
        retention_key_name=_line(said.get("retentionKeyName", "")),
        plan=_matching(said, "plan", _DIGEST) if said.get("plan") else "",
        active_hold_count=_number(said, "holds") if state else None,
        known_hold_count=_number(said, "known") if state else None,
        holds_outside_manifest=tuple(_names(said.get("outside", []))),
        holds_outside_count=_number(said, "outsideCount") if "outsideCount" in said else 0,
        removed=_number(said, "removed"),
        erased=_number(said, "erased"),
        anchor=_anchor(said.get("anchor", "")),
        retained_counts=_counts(said.get("staying", {})),
    )


def _matching(said: Manifest, name: str, pattern: re.Pattern[str]) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _Unreadable(f"the field {name!r} of the report is invalid")
    return value


def _number(said: Manifest, name: str) -> int:
    value = said.get(name)
    if type(value) is not int or not 0 <= value <= _MAX_NUMBER:
        raise _Unreadable(f"the field {name!r} of the report is invalid")
    return value


def _line(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unreadable("the field 'message' of the report is invalid")
    return "".join(char if char.isprintable() else " " for char in value)[:_MAX_MESSAGE]


def _anchor(value: Any) -> str:
    if value not in _ANCHORS:
        raise _Unreadable("the field 'anchor' of the report is invalid")
    return str(value)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _MAX_ITEMS:
        raise _Unreadable("the field 'outside' of the report is invalid")
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in value):
        raise _Unreadable("the field 'outside' of the report is invalid")
    return value


def _counts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or len(value) > 2 * _MAX_ITEMS:
        raise _Unreadable("the field 'staying' of the report is invalid")
    if not all(_CODE.fullmatch(code) for code in value):
        raise _Unreadable("the field 'staying' of the report is invalid")
    return {code: _number(value, code) for code in sorted(value)}
