"""A replay's counts, and the rules that it uses. The core computes the verdicts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from replay_double import RecordedExchange, Replayer

from proofgate import _core
from proofgate.replay.engines import load_archived_policies
from proofgate.replay.replay_exchange import ReplayExchange
from proofgate.replay.report import ReplayReport
from proofgate.replay.run import excuse_version_differences, replay
from proofgate.replay.sources import BodyFolder, BodySource, FallbackSource, StoredBodies

pytestmark = pytest.mark.usefixtures("fake_replay")

ALLOW = {"verdict": "allow", "score": 0, "rules": []}
FLAG = {"verdict": "flag", "score": 60, "rules": ["weak"]}
SAME = {"result": "same", "recorded": ALLOW, "replayed": ALLOW}
OTHER = {"result": "differs", "recorded": ALLOW, "replayed": FLAG}


def admission(number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "kind": "admission",
        "id": f"req_{number}",
        "ts": number,
        "tenant": "acme",
        "model": "m",
        "bytes": 2,
    } | more


def archive(ledger: Path, said: dict[str, Any]) -> str:
    content = json.dumps(said).encode()
    digest = hashlib.sha256(content).hexdigest()
    (ledger / "configurations").mkdir(exist_ok=True)
    (ledger / "configurations" / f"{digest}.json").write_bytes(content)
    return digest


def recorded(exchange: Any) -> ReplayExchange:
    return ReplayExchange.from_core(exchange)


def report(exchanges: list[RecordedExchange], ledger: Path, source: BodySource | None = None) -> ReplayReport:
    found = map(recorded, exchanges)
    counted = ReplayReport(max_examples=2)
    for replayed in excuse_version_differences(
        replay(found, source or StoredBodies(), load_archived_policies(ledger))
    ):
        counted.add(replayed)
    return counted


def test_each_configuration_is_compiled_once_and_judges_what_names_it(tmp_path: Path) -> None:
    first = archive(tmp_path, {"request": SAME, "response": SAME})
    second = archive(tmp_path, {"request": OTHER})
    before = Replayer.compiled
    exchanges = [
        RecordedExchange(admission(1), {"bytes": 2}, configuration, request=b"{}", response=b"{}")
        for configuration in (first, second, first, second)
    ]
    counted = report(exchanges, tmp_path)
    assert Replayer.compiled - before == 2
    assert counted.results == {("request", "same"): 2, ("response", "same"): 2, ("request", "differs"): 2}
    assert counted.changes == {("request", "acme", "m", "allow", "flag"): 2}
    assert counted.rules == {("request", "weak", "more"): 2}
    assert (counted.exchanges, counted.compared_count, counted.difference_count) == (4, 6, 2)


def test_why_nothing_was_compared_is_counted(tmp_path: Path) -> None:
    known = archive(tmp_path, {"request": SAME})
    changed = archive(tmp_path, {"request": OTHER})
    (tmp_path / "configurations" / f"{changed}.json").write_text("{}")
    counted = report(
        [
            RecordedExchange(admission(), None, None, request=b"{}"),
            RecordedExchange(admission(), None, "0" * 64, request=b"{}"),
            RecordedExchange(admission(), None, changed, request=b"{}"),
            RecordedExchange(admission(), None, known, request="shred_key_missing"),
            RecordedExchange(admission(), None, known),
        ],
        tmp_path,
    )
    assert {reason: count for (_, _, reason), count in counted.reasons.items()} == {
        "configuration_unknown": 2,
        "configuration_changed": 1,
        "shred_key_missing": 1,
        "not_stored": 1,
    }
    assert counted.compared_count == 0


def test_bodies_that_cannot_be_read_are_a_problem_of_their_log(tmp_path: Path) -> None:
    known = archive(tmp_path, {"request": SAME})
    found: list[tuple[str, bytes | str]] = [
        ("a/0/X", "ledger_io"),
        ("a/0/X", "ledger_io"),
        ("a/0/Y", "erased"),
        ("a/0/Z", b"{}"),
        ("a/0/W", "ledger_corrupt"),
    ]
    exchanges = [
        RecordedExchange(admission(), None, known, origin=origin, request=body) for origin, body in found
    ]
    counted = report(exchanges, tmp_path)
    assert counted.problems == [
        "a/0/W: cannot read 1 body [ledger_corrupt]: run fsck",
        "a/0/X: cannot read 2 bodies [ledger_io]: run fsck",
    ]
    assert counted.compared_count == 1


def test_what_another_version_decided_otherwise_is_no_contradiction(tmp_path: Path) -> None:
    configuration = archive(tmp_path, {"request": OTHER})
    older = RecordedExchange(admission(), None, configuration, version="0.0.9", request=b"{}")
    same = RecordedExchange(admission(), None, configuration, version=_core.__version__, request=b"{}")
    counted = report([older, same], tmp_path)
    assert counted.reasons == {("request", "not_replayable", "other_version"): 1}
    assert counted.difference_count == 1


def test_examples_are_as_many_as_wanted_and_hold_no_text(tmp_path: Path) -> None:
    configuration = archive(tmp_path, {"request": OTHER})
    exchanges = [
        RecordedExchange(admission(number), None, configuration, request=b"hunter2") for number in range(5)
    ]
    counted = report(exchanges, tmp_path)
    assert [example["id"] for example in counted.examples] == ["req_0", "req_1"]
    assert "hunter2" not in counted.text() + json.dumps(counted.document())


def test_names_cannot_leave_their_line(tmp_path: Path) -> None:
    configuration = archive(tmp_path, {"request": OTHER})
    hostile = admission(model="m\n\x1b[31mforged")
    told = report([RecordedExchange(hostile, None, configuration, request=b"{}")], tmp_path).text()
    assert "\x1b" not in told
    assert "\\u001b[31mforged" in told


def test_a_body_that_was_not_stored_is_looked_for_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "req_1.request").write_bytes(b"{}")
    (tmp_path / "req_2.request").write_bytes(b"[]")
    (tmp_path / "req_3.request").write_bytes(b"{} ")
    source = FallbackSource([StoredBodies(), BodyFolder(tmp_path)])

    def found(number: int, **bodies: Any) -> bytes | str:
        exchange = RecordedExchange(admission(number), **bodies)
        exchange.committed["request"] = b"{}"
        return source.body(recorded(exchange), answer=False)

    assert found(1) == b"{}"
    assert found(1, request=b"stored") == b"stored"
    assert found(1, request="shred_key_missing") == b"{}"
    assert found(2) == "other_body"
    assert found(3) == "other_body"
    assert found(4) == "not_stored"
    assert found(4, request="shred_key_missing") == "shred_key_missing"


def test_an_id_leads_to_no_file_outside_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.request").write_bytes(b"{}")
    folder = tmp_path / "bodies"
    folder.mkdir()
    exchange = RecordedExchange(admission(id="../secret"))
    exchange.committed["request"] = b"{}"
    assert BodyFolder(folder).body(recorded(exchange), answer=False) == "not_stored"
