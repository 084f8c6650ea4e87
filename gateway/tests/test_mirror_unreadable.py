"""Logs that cannot be read for a mirror: some are retried, some become findings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from failures import failure
from test_mirror import LOGS, Auditor, auditor, bring, codes, ledger, not_readable

from proofgate import _core
from proofgate.mirror.mirror import Mirror
from proofgate.mirror.target import MirrorError

pytestmark = pytest.mark.usefixtures("fake_pinned")

__all__ = ["auditor", "bring", "ledger"]


def not_a_file(directory: str, *_: object) -> Any:
    raise failure(
        _core.LedgerError, f"open {directory}/checkpoint: it is not a regular file", "ledger_corrupt"
    )


def cannot(fail: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Returns a verification that fails for the named logs."""
    verified = _core.fsck_pinned
    return lambda place, *more: (fail if place.endswith(names) else verified)(place, *more)


@pytest.mark.parametrize(("fail", "give_up"), [(not_a_file, 3600.0), (not_readable, 0.0)])
def test_a_log_that_stays_unreadable_where_others_are_read_is_found_and_waited_for_no_longer(
    auditor: Auditor,
    bring: Callable[..., Mirror],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fail: Callable[..., Any],
    give_up: float,
) -> None:
    monkeypatch.setattr(_core, "fsck_pinned", cannot(fail, LOGS[0]))
    auditor.end(LOGS[0])
    auditor.end(LOGS[1])
    mirror = bring(give_up_seconds=give_up)
    mirror.run_once()
    assert codes(mirror) == ["mirror_unverified"]
    assert LOGS[0] in mirror.findings()[0]["message"]
    assert os.listdir(tmp_path / "mirror" / "ledger" / "0") == [LOGS[1]]  # noqa: PTH208
    assert (mirror.lag_seconds(), mirror.totals.failures) == (0, {})
    # The finding is evidence, so a restarted mirror still has it.
    assert codes(bring()) == ["mirror_unverified"]


def test_a_log_that_cannot_be_read_is_no_evidence_where_no_other_is_read(
    auditor: Auditor, bring: Callable[..., Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "fsck_pinned", not_readable)
    auditor.end(LOGS[0])
    auditor.end(LOGS[1])
    mirror = bring(give_up_seconds=0.0)
    for _ in range(2):
        with pytest.raises(MirrorError, match=LOGS[0]):
            mirror.run_once()
    assert codes(mirror) == []


def test_what_a_volume_was_away_counts_for_no_log_that_cannot_be_read(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(_core, "fsck_pinned", not_readable)
    auditor.end(LOGS[0])
    auditor.end(LOGS[1])
    mirror = bring(give_up_seconds=10.0)

    def round_at(moment: float) -> None:
        clock[0] = moment
        with pytest.raises(MirrorError):
            mirror.run_once()

    round_at(1000.0)
    away = (ledger / "0").rename(ledger.parent / "away")
    round_at(1005.0)
    away.rename(ledger / "0")
    monkeypatch.setattr(_core, "fsck_pinned", cannot(not_readable, LOGS[0]))
    round_at(1020.0)
    assert codes(mirror) == []


def test_behind_logs_that_cannot_be_read_any_number_of_others_is_mirrored(
    auditor: Auditor, bring: Callable[..., Mirror], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verified = _core.fsck_pinned
    monkeypatch.setattr("proofgate.mirror.mirror.MAX_BATCH", 2)
    monkeypatch.setattr(_core, "fsck_pinned", cannot(not_readable, LOGS[0]))
    for name in LOGS:
        auditor.end(name)
    mirror = bring()
    for _ in LOGS[1:]:
        with pytest.raises(MirrorError, match=LOGS[0]):
            mirror.run_once()
    there = tmp_path / "mirror" / "ledger" / "0"
    assert sorted(os.listdir(there)) == LOGS[1:]  # noqa: PTH208
    monkeypatch.setattr(_core, "fsck_pinned", verified)
    mirror.run_once()
    assert sorted(os.listdir(there)) == LOGS  # noqa: PTH208
    assert (mirror.findings(), mirror.lag_seconds(), mirror.lag_bytes) == ([], 0, 0)


@pytest.mark.parametrize("place", [f"0/{LOGS[0]}", "0"])
def test_a_file_in_the_place_of_a_folder_is_a_log_that_is_gone(
    auditor: Auditor,
    bring: Callable[..., Mirror],
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    monkeypatch.setattr(_core, "fsck_pinned", not_readable)
    (ledger / "1").mkdir()
    (ledger / place).rename(ledger.parent / "stolen")
    (ledger / place).write_text("a file")
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    assert codes(mirror) == ["mirror_log_missing"]
