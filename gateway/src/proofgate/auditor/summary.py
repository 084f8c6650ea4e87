"""The auditor's status for its operator, in one response of limited size: its progress and its findings."""

from __future__ import annotations

from collections import Counter
from typing import Any

from proofgate.auditor.watch import LedgerWatcher
from proofgate.index.audited_index import AuditedIndex
from proofgate.terminal import one_line

#: Maximum number of findings that are listed, newest first. All findings are counted.
MAX_FINDINGS = 50
_MAX_MESSAGE_LENGTH = 512
_MICROSECONDS = 1_000_000
_WITNESS_FIELDS = ("name", "last", "size", "time")


def summary(watch: LedgerWatcher, index: AuditedIndex | None = None) -> dict[str, Any]:
    """Returns the response to `GET /status`."""
    told = watch.findings_report()
    findings = told["findings"]
    newest = sorted(findings, key=lambda finding: finding["since"])[-MAX_FINDINGS:]
    heads = watch.heads()
    return {
        # Empty until a quorum of witnesses has cosigned one.
        "checkpoint": (watch.auditor.checkpoint() or (0, ""))[1],
        "newest_head": max((head["time"] for head in heads), default=0),
        "last_poll": watch.last_poll,
        "poll_age_seconds": watch.poll_age() or 0.0,
        "poll_failures": watch.totals.failures,
        "records_verified": watch.totals.records,
        "records_behind": watch.totals.records_behind,
        "lag_seconds": max((head["lag"] for head in heads), default=0) / _MICROSECONDS,
        "cosigning_lag_seconds": watch.cosigning_lag(),
        "witnesses": [{field: of[field] for field in _WITNESS_FIELDS} for of in watch.witnesses()],
        # Null if the auditor has no index.
        "index": None if index is None else _index(index),
        "findings": {
            "by_code": dict(sorted(Counter(finding["code"] for finding in findings).items())),
            "left_out": told["left_out"],
            "newest": [
                # The message becomes an Event and a condition, which people read on a terminal.
                {**finding, "message": one_line(finding["message"])[:_MAX_MESSAGE_LENGTH]}
                for finding in newest
            ],
        },
    }


def _index(index: AuditedIndex) -> dict[str, Any]:
    """The state of the index. It contains no paths, because anybody may read it."""
    standing = index.status()
    return {"records": standing.records, "behind": standing.records_behind, "code": standing.code}
