"""Status reports of the auditor, and the parser of its HTTP answer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proofgate_operator.api.crd import MAX_FINDING_CODES, MAX_WITNESSES

#: The maximum number of findings that one answer lists.
MAX_FINDINGS = 50
_MICROSECONDS = 1_000_000
_MAX_TIME = 253_402_300_799.0
#: From this many seconds of waiting for witnesses, each doubling changes the urgent content.
_MIN_REPORTED_WAIT_SECONDS = 16
#: The age in seconds from which the auditor's last poll counts as stale. A poll reads a bounded number of
#: bytes, so an older one means that something blocks the auditor.
_STALE_SECONDS = 60.0


@dataclass(frozen=True)
class Finding:
    """One fault of the ledger. `since` is in microseconds since 1970, by the auditor's clock."""

    code: str
    origin: str
    verdict: str
    since: int
    message: str


@dataclass(frozen=True)
class WitnessStatus:
    """The state of a witness: the outcome of the last request (empty before the first), the number of tree
    heads that it has cosigned, and the time of its last cosignature in seconds since 1970 by its clock (0:
    none)."""

    name: str
    last_outcome: str
    size: int
    time: float


@dataclass(frozen=True)
class IndexStatus:
    """The state of an index of exchanges: the number of accepted records that are not indexed yet, and the
    code of the error that stops it (empty: none)."""

    pending_records: int
    code: str


@dataclass(frozen=True)
class AuditReport:
    """One status answer of the auditor. If the auditor could not be asked, `reachable` is False and the rest
    is empty."""

    reachable: bool = True
    #: The newest checkpoint of its log of tree heads, unparsed; empty before a quorum has cosigned one.
    checkpoint: str = ""
    #: When it accepted the newest head, in seconds since 1970; 0 before the first.
    newest_head_at: float = 0.0
    #: When its last poll ended, in seconds since 1970; 0 before the first.
    last_poll_at: float = 0.0
    #: Whether the last poll is too long ago.
    stale: bool = False
    #: Seconds for which the oldest unverified checkpoint has waited.
    lag: int = 0
    #: The number of findings by code.
    finding_counts: tuple[tuple[str, int], ...] = ()
    #: The number of findings that the auditor no longer lists.
    omitted_findings: int = 0
    #: The newest findings.
    findings: tuple[Finding, ...] = ()
    #: Seconds for which tree heads have waited for a quorum of witnesses.
    cosignature_wait_seconds: int = 0
    witnesses: tuple[WitnessStatus, ...] = ()
    #: None if it has no index.
    index: IndexStatus | None = None

    @property
    def urgent_content(self) -> object:
        """The content whose change causes a reconcile immediately instead of within a minute."""
        begun = bool(self.last_poll_at)
        found = self.stale, self.finding_counts, self.findings
        asked = tuple((witness.name, witness.last_outcome) for witness in self.witnesses)
        waited = (self.cosignature_wait_seconds // _MIN_REPORTED_WAIT_SECONDS).bit_length()
        index = self.index.code if self.index else None
        return self.reachable, bool(self.checkpoint), begun, found, asked, waited, index


UNREACHABLE_AUDITOR = AuditReport(reachable=False)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(name)
    return min(float(value), 2.0**53)


def _time(value: Any, name: str, unit: int = 1) -> float:
    """Return a time as seconds since 1970; a time after the year 9999 is refused, because the API cannot
    express it."""
    return min(_number(value, name) / unit, _MAX_TIME)


def _text(value: Any, most: int) -> str:
    """Return a text of at most `most` characters, without characters that a terminal would interpret."""
    text = str(value)[:most]
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def _finding(item: Any) -> Finding:
    if not isinstance(item, Mapping):
        raise ValueError("finding")
    return Finding(
        code=_text(item.get("code"), 64),
        origin=_text(item.get("origin"), 256),
        verdict=_text(item.get("verdict"), 16),
        since=int(_number(item.get("since"), "since")),
        message=_text(item.get("message"), 512),
    )


def _witness(item: Any) -> WitnessStatus:
    if not isinstance(item, Mapping):
        raise ValueError("witness")
    return WitnessStatus(
        name=_text(item.get("name"), 128),
        last_outcome=_text(item.get("last"), 32),
        size=int(_number(item.get("size"), "size")),
        time=_time(item.get("time"), "time"),
    )


def _index(item: Any) -> IndexStatus | None:
    if item is None:
        return None
    if not isinstance(item, Mapping):
        raise ValueError("index")
    return IndexStatus(int(_number(item.get("behind"), "behind")), _text(item.get("code"), 64))


def parse_audit_report(status: Any) -> AuditReport:
    """Parse the answer of `GET /status`; raises ValueError if it is invalid."""
    if not isinstance(status, Mapping):
        raise ValueError("not an object")
    told = status.get("findings")
    if not isinstance(told, Mapping) or not isinstance(told.get("by_code"), Mapping):
        raise ValueError("findings")
    newest, checkpoint = told.get("newest"), status.get("checkpoint")
    if not isinstance(newest, list) or not isinstance(checkpoint, str):
        raise ValueError("newest")
    # An auditor of an earlier release does not report witnesses.
    witnesses = status.get("witnesses", [])
    if not isinstance(witnesses, list):
        raise ValueError("witnesses")
    counted = sorted(
        (_text(code, 64), int(_number(count, "count"))) for code, count in told["by_code"].items()
    )
    return AuditReport(
        checkpoint=checkpoint,
        newest_head_at=_time(status.get("newest_head"), "newest_head", _MICROSECONDS),
        last_poll_at=_time(status.get("last_poll"), "last_poll"),
        stale=_number(status.get("poll_age_seconds"), "poll_age_seconds") > _STALE_SECONDS,
        lag=int(_number(status.get("lag_seconds"), "lag_seconds")),
        finding_counts=tuple(counted[:MAX_FINDING_CODES]),
        omitted_findings=int(_number(told.get("left_out"), "left_out")),
        findings=tuple(_finding(item) for item in newest[-MAX_FINDINGS:]),
        cosignature_wait_seconds=int(
            _number(status.get("cosigning_lag_seconds", 0), "cosigning_lag_seconds")
        ),
        witnesses=tuple(_witness(item) for item in witnesses[:MAX_WITNESSES]),
        index=_index(status.get("index")),
    )
