"""An index has each exchange once, in any order of records and after a kill at any point."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from index_ledger import (
    DAY,
    FIRST,
    NOON,
    SECOND,
    Log,
    abandon,
    bring_up,
    own_id,
    rows,
    sums_of_rows,
    sums_told,
)
from signing import VKEY
from written_log import change

from proofgate import _core
from proofgate.cli import main
from proofgate.index import schema
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.indexer import Indexer
from proofgate.index.query import IndexSnapshot
from proofgate.index.writer import IndexWriter

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two logs; exchanges of the first end in the first log, in the second log, or never."""
    ledger = tmp_path / "ledger"
    first = Log(ledger)
    first.exchange(1)
    orphan, moved = first.admit(2, NOON + 1), first.admit(3, NOON + 2)
    retried = first.admit(4, NOON + DAY, tenant="globex")
    first.add("attempt", NOON + DAY, id=own_id(4, NOON + DAY), admission=retried, attempt=2, provider="azure")
    first.complete(4, retried, NOON + DAY, policy={"rules": ["pii"], "redacted": True, "would_block": False})
    first.refuse(5, NOON + 4, policy={"rules": ["injection"], "redacted": False, "would_block": True})
    first.admit(6, NOON + 5)
    first.sign()
    size = len(first.records)
    second = Log(ledger, SECOND, predecessor={"incarnation": FIRST, "size": size})
    named = {"incarnation": FIRST}
    second.add("aborted", NOON + 9, id=own_id(2, NOON + 1), admission=orphan, **named)
    second.add("attempt", NOON, id=own_id(3, NOON + 2), admission=moved, attempt=2, provider="azure", **named)
    second.complete(3, moved, NOON + 2, **named)
    # An exchange that has ended gets no second end.
    second.add("aborted", NOON + 9, id=own_id(3, NOON + 2), admission=moved, **named)
    second.exchange(7, NOON + 7)
    second.add("seal", NOON + 9)
    second.sign()
    return ledger


def told(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("id", "tenant", "providers", "verdict", "rules", "outcome", "status")
    return [(*(row[name] for name in names), len(row["records"])) for row in found]


EXPECTED = [
    (own_id(1), "acme", ["openai"], "allowed", [], "complete", 200, 2),
    (own_id(2, NOON + 1), "acme", ["openai"], "allowed", [], "aborted", None, 2),
    (own_id(3, NOON + 2), "acme", ["openai", "azure"], "allowed", [], "complete", 200, 3),
    (own_id(5, NOON + 4), "acme", [], "denied", ["injection"], "policy_blocked", 403, 1),
    (own_id(6, NOON + 5), "acme", ["openai"], "allowed", [], "open", None, 1),
    (own_id(7, NOON + 7), "acme", ["openai"], "allowed", [], "complete", 200, 2),
    (own_id(4, NOON + DAY), "globex", ["openai", "azure"], "redacted", ["pii"], "complete", 200, 3),
]


@pytest.mark.parametrize("most_records", [1, 2, 3, 5, 100])
def test_each_exchange_is_one_row_however_its_records_are_cut(
    ledger: Path, tmp_path: Path, most_records: int
) -> None:
    bring_up(tmp_path / "index", ledger, most_records)
    assert told(rows(tmp_path / "index")) == EXPECTED
    # Records are not read twice, and a log that has ended is not read again.
    assert bring_up(tmp_path / "index", ledger, most_records).records == 0


def test_an_end_that_is_read_before_its_admission_is_kept_for_it(ledger: Path, tmp_path: Path) -> None:
    first = ledger / "0" / FIRST / "checkpoint"
    note = first.read_text()
    first.unlink()
    bring_up(tmp_path / "index", ledger)
    assert [row["id"] for row in rows(tmp_path / "index")] == [own_id(7, NOON + 7)]
    first.write_text(note)
    bring_up(tmp_path / "index", ledger)
    assert told(rows(tmp_path / "index")) == EXPECTED


class Killed(BaseException):
    """The process was killed."""


class Mortal:
    """A database connection of a process that is killed at one of its calls."""

    calls = 0
    last: int | None = None

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _call(self) -> sqlite3.Connection:
        Mortal.calls += 1
        if Mortal.last is not None and Mortal.calls >= Mortal.last:
            raise Killed
        return self._connection

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        return self._call().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        return self._call().executemany(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> type[Mortal]:
    for name in ("connect", "create"):
        real: Callable[..., sqlite3.Connection] = getattr(schema, name)
        monkeypatch.setattr(schema, name, lambda *args, real=real, **named: Mortal(real(*args, **named)))
    # The process is killed, not the machine, so completed writes survive without fsync.
    monkeypatch.setattr(schema, "SQLITE_SYNCHRONOUS", "OFF")
    monkeypatch.setattr("proofgate.index.writer.sync_folder", lambda _: None)
    Mortal.calls, Mortal.last = 0, None
    return Mortal


def make(index: Path, ledger: Path) -> None:
    """Builds an index until the process is killed; the system then closes its files."""
    writer = IndexWriter.open(index, VKEY)
    try:
        logs, _ = _core.ledger_logs(str(ledger), VKEY, writer.indexed_sizes())
        Indexer(writer, VKEY, 8).read(logs)
    finally:
        abandon(writer)


def test_a_process_that_is_killed_at_any_call_leaves_each_exchange_once(
    ledger: Path, tmp_path: Path, mortal: type[Mortal]
) -> None:
    bring_up(tmp_path / "whole", ledger, 8)
    calls = mortal.calls
    assert calls > 40
    for last in range(1, calls):
        index = tmp_path / f"killed-{last}"
        mortal.calls, mortal.last = 0, last
        with pytest.raises(Killed):
            make(index, ledger)
        mortal.last = None
        # A partial index shows the exchanges read so far, each once.
        if (index / schema.CATALOGUE).exists():
            before = [row["id"] for row in rows(index)]
            assert len(before) == len(set(before))
        bring_up(index, ledger, 3)
        assert told(rows(index)) == EXPECTED, f"killed at call {last} of {calls}"
        assert sums_told(index, Filter()) == sums_of_rows(index, Filter()), (
            f"killed at call {last} of {calls}"
        )


def test_a_log_that_contradicts_its_checkpoint_is_told_and_others_are_read(
    ledger: Path, tmp_path: Path
) -> None:
    log = ledger / "0" / FIRST
    origin = f"proofgate.dev/ns/demo/0/{FIRST}"
    change(log, own_id(5, NOON + 4), own_id(8, NOON + 4))
    index = tmp_path / "index"
    assert bring_up(index, ledger).problems == {
        origin: f"{origin}: its records do not hash to the root that was signed at 10"
        " [records_contradict_checkpoint]"
    }
    assert {row["id"] for row in rows(index)} == {own_id(7, NOON + 7)}
    arguments = ["audit", "index", "--ledger", str(ledger), "--ledger-key", VKEY, "--index", str(index)]
    assert main(arguments) == 40
    change(log, own_id(8, NOON + 4), own_id(5, NOON + 4))
    assert main(arguments) == 0
    assert told(rows(index)) == EXPECTED


def test_an_index_is_made_anew_by_name_and_never_guessed(ledger: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    bring_up(index, ledger)
    catalogue = sqlite3.connect(index / schema.CATALOGUE)
    catalogue.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    catalogue.commit()
    catalogue.close()
    for ask in (lambda: rows(index), lambda: bring_up(index, ledger)):
        with pytest.raises(IndexUnusableError) as caught:
            ask()
        assert caught.value.code == "index_schema"
        assert "--rebuild" in str(caught.value)
    bring_up(index, ledger, rebuild=True)
    assert told(rows(index)) == EXPECTED


def test_an_index_is_of_one_ledger_and_written_by_one_process(ledger: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    bring_up(index, ledger)
    writer = IndexWriter.open(index, VKEY)
    try:
        with pytest.raises(IndexUnusableError) as caught:
            IndexWriter.open(index, VKEY)
        assert caught.value.code == "index_busy"
    finally:
        writer.close()
    with pytest.raises(IndexUnusableError) as caught:
        IndexWriter.open(index, VKEY.replace("demo", "other"))
    assert caught.value.code == "index_foreign"


def test_a_day_that_is_gone_is_told_and_one_that_was_removed_on_purpose_stays_so(
    ledger: Path, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    bring_up(index, ledger)
    days = sorted(path.name for path in index.glob("2*.sqlite"))
    assert days == ["2026-11-25.sqlite", "2026-11-26.sqlite"]
    (index / days[0]).unlink()
    with pytest.raises(IndexUnusableError) as caught:
        rows(index)
    assert caught.value.code == "index_damaged"
    writer = IndexWriter.open(index, VKEY, rebuild=True)
    assert writer.prune(NOON // DAY + 1) == 0
    writer.close()
    for rebuild in (False, True):
        bring_up(index, ledger, rebuild=rebuild)
        assert told(rows(index)) == EXPECTED[-1:]
        assert [path.name for path in index.glob("2*.sqlite")] == days[1:]
    with IndexSnapshot(index) as questions, pytest.raises(IndexUnusableError) as caught:
        questions.page(Filter(since=NOON), 1)
    assert caught.value.code == "day_pruned"


def test_the_command_refuses_what_cannot_be_an_index(ledger: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["audit", "index", "--ledger", str(ledger), "--ledger-key", VKEY, "--index"]
    assert main([*arguments, str(ledger / "index")]) == 2
    assert "--index is inside the ledger" in capsys.readouterr().err
    (tmp_path / "file").write_text("no directory")
    assert main([*arguments, str(tmp_path / "file")]) == 1
    assert "[index_io]" in capsys.readouterr().err
    assert main(["audit", "exchanges", "--index", str(tmp_path / "none")]) == 2
    assert "[index_missing]" in capsys.readouterr().err
    assert main([*arguments, str(tmp_path / "index"), "--prune-before", "2026-11-26"]) == 0
    assert told(rows(tmp_path / "index")) == EXPECTED[-1:]
