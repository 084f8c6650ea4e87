"""Exports: what they prove to somebody with only the verifying key, and changes that they cannot hide."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_SECONDS
from failures import failure
from index_ledger import DAY, FIRST, NAME, NOON, SECOND, Log, bring_up, own_id
from signing import VKEY, Key
from written_log import records_of

from proofgate import _core
from proofgate.cli import main
from proofgate.exit_codes import ExitCode

Capture = pytest.CaptureFixture[str]
EXPORTS = Key("proofgate.dev/ns/exports")
SIGNER = EXPORTS.verifying
VERIFY = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"
#: The columns that versions before 5 lack.
NAMES = ("key_name", "end_user_name", "client_address")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with a ledger of two logs and its index."""
    ledger = tmp_path / "ledger"
    first = Log(ledger)
    for number in range(1, 9):
        first.exchange(number, NOON + number, tenant="globex" if number % 4 == 0 else "acme")
    moved = first.admit(20, NOON + 20)
    first.refuse(21, NOON + 21)
    first.sign()
    second = Log(ledger, SECOND, predecessor={"incarnation": FIRST, "size": len(first.records)})
    second.add(
        "attempt",
        NOON,
        id=own_id(20, NOON + 20),
        admission=moved,
        attempt=2,
        provider="azure",
        incarnation=FIRST,
    )
    second.complete(20, moved, NOON + 20, incarnation=FIRST, attempts=2)
    second.exchange(
        22, NOON + DAY, end={"policy": {"rules": ["a", "b"], "redacted": True, "would_block": False}}
    )
    second.sign()
    bring_up(tmp_path / "index", ledger, 100)
    return tmp_path


def export(made: Path, *asked: str, out: str = "out") -> int:
    paths = ["--index", str(made / "index"), "--ledger", str(made / "ledger"), "--out", str(made / out)]
    return main(["audit", "export", *paths, *asked])


def check(made: Path, capsys: Capture, *more: str, out: str = "out") -> tuple[int, str]:
    capsys.readouterr()
    code = main(["audit", "verify-export", str(made / out), "--key", VKEY, *more])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_an_export_of_a_tenant_shows_that_none_of_its_admissions_is_left_out(
    made: Path, capsys: Capture
) -> None:
    assert export(made, "--tenant", "acme") == 0
    assert "9 exchanges" in capsys.readouterr().out
    code, told = check(made, capsys)
    assert code == 0
    for line in (
        "asked for: tenant acme",
        f"shown: requests 1 to 7 of acme in {NAME}/0/{FIRST}, with none missing between",
        f"shown: requests 1 to 1 of acme in {NAME}/0/{SECOND}, with none missing between",
        "not shown: that request 1 is the last request",
        "verified",
    ):
        assert line in told.splitlines()
    manifest = json.loads((made / "out" / "manifest.json").read_text())
    assert {log["origin"]: log["records"] for log in manifest["logs"]} == {
        f"{NAME}/0/{FIRST}": 14,
        f"{NAME}/0/{SECOND}": 4,
    }
    lines = [json.loads(line) for line in (made / "out" / "exchanges.jsonl").read_text().splitlines()]
    ledger = records_of(made / "ledger" / "0" / FIRST)
    assert lines[0]["records"][0]["record"].encode() == ledger[1], "the export has the stored bytes"
    assert not list(made.glob(".out*")), "no temporary file remains"


def test_neighbours_show_that_the_edges_of_a_time_are_whole(made: Path, capsys: Capture) -> None:
    asked = ("--since", "2026-11-25T12:00:00.000002Z", "--until", "2026-11-25T12:00:00.000006Z")
    assert export(made, "--tenant", "acme", *asked) == 0
    code, told = check(made, capsys)
    assert code == 0
    assert "since 2026-11-25T12:00:00.000002Z, until 2026-11-25T12:00:00.000006Z" in told
    assert f"shown: requests 2 to 4 of acme in {NAME}/0/{FIRST}, with none missing between" in told
    assert "does not match" not in told
    assert "is the last request" not in told
    manifest = json.loads((made / "out" / "manifest.json").read_text())
    assert (manifest["exchanges"], manifest["neighbours"]) == (3, 2)


def test_an_export_of_anything_else_claims_nothing_about_what_is_left_out(
    made: Path, capsys: Capture
) -> None:
    assert export(made, "--rule", "a") == 0
    code, told = check(made, capsys)
    assert (code, "not shown: that nothing is left out" in told) == (0, True)
    assert "1 exchange, 2 records" in told


@pytest.mark.parametrize("name", ["out.tar", "out.tar.gz"])
def test_an_archive_is_checked_without_being_unpacked(made: Path, capsys: Capture, name: str) -> None:
    assert export(made, out=name) == 0
    assert check(made, capsys, out=name)[0] == 0
    with tarfile.open(made / name) as tar:
        assert tar.getnames() == ["manifest.json", "exchanges.jsonl", "exchanges.csv"]
    (made / name).write_bytes((made / name).read_bytes()[:700])
    assert check(made, capsys, out=name)[0] in (2, 40)


def test_who_made_an_export_is_shown_by_a_signature_over_the_manifest(made: Path, capsys: Capture) -> None:
    (made / "key").write_text(EXPORTS.signing)
    assert export(made, "--signing-key", str(made / "key")) == 0
    code, told = check(made, capsys, "--signer", SIGNER)
    assert (code, "shown: proofgate.dev/ns/exports signed the manifest" in told) == (0, True)
    another = Key("proofgate.dev/ns/others").verifying
    assert check(made, capsys, "--signer", another)[0] == ExitCode.ANOTHER_KEY
    manifest = made / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"made"', '"made" '))
    assert check(made, capsys)[0] == 0
    assert check(made, capsys, "--signer", SIGNER)[0] == 40
    (made / "key").write_text("a secret that is no key")
    assert export(made, "--signing-key", str(made / "key"), out="other") == 2
    told = capsys.readouterr().err
    assert "secret" not in told


def test_an_export_is_never_written_over(made: Path, capsys: Capture) -> None:
    assert export(made) == 0
    assert export(made) == 1
    assert "[export_exists]" in capsys.readouterr().err
    assert check(made, capsys)[0] == 0


Lines = list[dict[str, Any]]


def record_of(lines: Lines, line: int, at: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = lines[line]["records"][at]
    return found


def changed(lines: Lines) -> None:
    record = record_of(lines, 1)
    record["record"] = record["record"].replace("gpt", "gpx")


def elsewhere(lines: Lines) -> None:
    record_of(lines, 1)["index"] += 1


def unsigned(lines: Lines) -> None:
    record_of(lines, 1)["origin"] = f"{NAME}/9/{FIRST}"


def twice(lines: Lines) -> None:
    lines.insert(1, lines[0])


def mixed(lines: Lines) -> None:
    lines[0]["records"][1] = lines[1]["records"][1]


def renamed(lines: Lines) -> None:
    lines[0]["id"] = lines[1]["id"]


def repeated_record(lines: Lines) -> None:
    lines[0]["records"].append(lines[0]["records"][-1])


def repeated_refusal(lines: Lines) -> None:
    lines.append(next(line for line in lines if "rejection" in line["records"][0]["record"]))


def foreign(lines: Lines) -> None:
    lines[0]["records"] = lines[0]["records"][1:]


def hidden(lines: Lines) -> None:
    lines[2]["neighbour"] = True


def empty(lines: Lines) -> None:
    lines[2]["records"] = []


def formless(lines: Lines) -> None:
    record_of(lines, 0)["record"] = None


def rewrite(folder: Path, change: Callable[[Lines], object]) -> None:
    """Changes lines, and then updates everything unsigned to match, as the export's author could."""
    path = folder / "exchanges.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    table = (folder / "exchanges.csv").read_bytes().splitlines(keepends=True)
    before = [line["id"] for line in lines]
    change(lines)
    ids = [line.get("id") for line in lines]
    if sorted(map(str, ids)) != sorted(before):
        rows = {line.split(b",")[1].decode(): line for line in table[1:]}
        table = [table[0], *(rows[str(name)] for name in ids)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "exchanges.csv").write_bytes(b"".join(table))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["exchanges"] = len(lines) - sum("neighbour" in line for line in lines)
    manifest["neighbours"] = sum("neighbour" in line for line in lines)
    manifest["records"] = sum(len(line["records"]) for line in lines)
    for name in ("exchanges.jsonl", "exchanges.csv"):
        content = (folder / name).read_bytes()
        fits = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        manifest["files"][name] = fits
    (folder / "manifest.json").write_text(json.dumps(manifest))


def without_names(folder: Path) -> None:
    """Removes the columns that versions before 5 lack from the table."""
    path = folder / "exchanges.csv"
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    kept = [at for at, name in enumerate(rows[0]) if name not in NAMES]
    path.write_bytes("".join(",".join(row[at] for at in kept) + "\r\n" for row in rows).encode())
    rewrite(folder, lambda _: None)


@pytest.mark.parametrize(
    "change",
    [changed, elsewhere, unsigned, twice, repeated_record, mixed, renamed, foreign, hidden, empty, formless],
)
def test_what_was_changed_does_not_verify_though_all_digests_fit(
    made: Path, capsys: Capture, change: Callable[[Lines], None]
) -> None:
    assert export(made, "--tenant", "acme") == 0
    rewrite(made / "out", change)
    code, told = check(made, capsys)
    assert (code, told.startswith("proofgate: not verified: ")) == (40, True), told


def second_verifier(made: Path) -> subprocess.CompletedProcess[str]:
    """Runs the single-file verifier on the same export."""
    archive = made / "again.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("manifest.json", "exchanges.jsonl", "exchanges.csv"):
            tar.add(made / "out" / name, name)
    command = [sys.executable, "-I", "-S", str(VERIFY), str(archive), "--key", VKEY]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "change",
    [changed, elsewhere, unsigned, twice, repeated_record, repeated_refusal, mixed, renamed, foreign, empty],
)
def test_what_was_changed_is_not_verified_by_the_second_verifier_either(
    made: Path, change: Callable[[Lines], None]
) -> None:
    assert export(made) == 0
    done = second_verifier(made)
    assert done.stdout.startswith("verified"), done.stderr
    rewrite(made / "out", change)
    done = second_verifier(made)
    assert (done.returncode, done.stdout) == (1, ""), done.stdout
    assert done.stderr.startswith("NOT VERIFIED: "), done.stderr


def test_an_attempt_that_was_left_out_is_missed_though_another_one_is_there_twice(
    tmp_path: Path, capsys: Capture
) -> None:
    log = Log(tmp_path / "ledger")
    moved = log.admit(1, NOON)
    for attempt, provider in ((2, "azure"), (3, "elsewhere")):
        log.add("attempt", NOON, id=own_id(1, NOON), admission=moved, attempt=attempt, provider=provider)
    log.complete(1, moved, NOON, attempts=3)
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    assert export(tmp_path, "--tenant", "acme") == 0
    assert check(tmp_path, capsys)[0] == 0

    def hide(lines: Lines) -> None:
        records = lines[0]["records"]
        records[2] = records[1]

    rewrite(tmp_path / "out", hide)
    table = tmp_path / "out" / "exchanges.csv"
    table.write_bytes(table.read_bytes().replace(b" elsewhere", b""))
    rewrite(tmp_path / "out", lambda _: None)
    code, told = check(tmp_path, capsys)
    assert (code, "twice" in told) == (40, True), told
    assert "has a record twice" in second_verifier(tmp_path).stderr

    def leave_out(lines: Lines) -> None:
        del lines[0]["records"][2]

    rewrite(tmp_path / "out", leave_out)
    assert check(tmp_path, capsys)[0] == 10
    assert "not shown: an attempt, or the end, of 1 exchanges" in second_verifier(tmp_path).stdout


def without_the_third(lines: Lines) -> None:
    lines.pop(2)


def test_an_admission_that_was_left_out_is_missed(made: Path, capsys: Capture) -> None:
    assert export(made, "--tenant", "acme") == 0
    rewrite(made / "out", without_the_third)
    code, told = check(made, capsys)
    assert code == 10
    assert f"missing: requests 3 of acme in {NAME}/0/{FIRST}" in told
    assert told.splitlines()[-1] == "incomplete"


def test_a_denied_request_that_was_left_out_is_missed(tmp_path: Path, capsys: Capture) -> None:
    log = Log(tmp_path / "ledger")
    for number in range(1, 5):
        begun = log.deny if number % 2 == 0 else log.exchange
        begun(number, NOON + number)
    log.refuse(9, NOON + 9)
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    assert export(tmp_path, "--tenant", "acme") == 0
    code, told = check(tmp_path, capsys)
    assert (code, told.splitlines()[-1]) == (0, "verified")
    assert f"shown: requests 1 to 4 of acme in {NAME}/0/{FIRST}, with none missing between" in told
    rewrite(tmp_path / "out", lambda lines: lines.pop(1))
    code, told = check(tmp_path, capsys)
    assert code == 10
    assert f"missing: requests 2 of acme in {NAME}/0/{FIRST}" in told


def test_a_table_that_says_something_else_and_a_file_that_was_replaced_do_not_verify(
    made: Path, capsys: Capture
) -> None:
    assert export(made) == 0
    table = made / "out" / "exchanges.csv"
    table.write_bytes(table.read_bytes().replace(b"globex", b"acme"))
    assert "does not match the manifest" in check(made, capsys)[1]
    rewrite(made / "out", lambda _: None)
    code, told = check(made, capsys)
    assert (code, "but the records have" in told) == (40, True)


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "{}",
        '{"v":1,"kind":"proofgate-export"}',
        '{"v":1,"kind":"proofgate-export","filter":{"since":"x"}}',
    ],
)
def test_what_is_no_export_is_told(tmp_path: Path, capsys: Capture, manifest: str) -> None:
    assert check(tmp_path, capsys, out="nothing")[0] == 2
    (tmp_path / "out").mkdir()
    assert check(tmp_path, capsys)[0] == 2
    (tmp_path / "out" / "manifest.json").write_text(manifest)
    assert "[bad_export]" in check(tmp_path, capsys)[1]
    (tmp_path / "file").write_text(manifest)
    assert "[bad_export]" in check(tmp_path, capsys, out="file")[1]


def test_an_index_that_the_ledger_does_not_bear_out_is_not_exported(made: Path, capsys: Capture) -> None:
    old, new = (bytes.fromhex(own_id(number, NOON + number)[4:]) for number in (2, 3))
    with closing(sqlite3.connect(made / "index" / "2026-11-25.sqlite")) as day, day:
        assert day.execute("UPDATE exchange SET id = ? WHERE id = ?", (new, old)).rowcount == 1
    assert export(made) == 1
    assert "[index_damaged]" in capsys.readouterr().err
    assert not (made / "out").exists()
    assert not list(made.glob(".out*"))


def test_an_export_of_version_1_has_fewer_columns_and_verifies(made: Path, capsys: Capture) -> None:
    assert export(made) == 0
    table = made / "out" / "exchanges.csv"
    lines = table.read_bytes().decode().split("\r\n")
    former = [",".join((cells := line.split(","))[:4] + cells[5:-7]) for line in lines]
    assert lines[0].split(",")[4] == "key_name"
    assert lines[0].split(",")[-7:] == [
        *("session", "end_user", "end_user_name", "agent", "parent_agent", "trace_id", "client_address")
    ]
    # Version 1 reports denied requests as refused.
    content = "\r\n".join(former).encode().replace(b",denied,,", b",refused,,")
    table.write_bytes(content)
    path = made / "out" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    assert manifest["v"] == 5
    manifest["files"]["exchanges.csv"] |= {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    path.write_text(json.dumps(manifest))
    assert check(made, capsys)[0] == 40
    for name in ("counts", "left_out"):
        del manifest[name]
    path.write_text(json.dumps(manifest | {"v": 1}))
    code, told = check(made, capsys)
    assert (code, "this export does not count them" in told) == (0, True)
    path.write_text(json.dumps(manifest | {"v": 6}))
    assert "cannot read the export" in check(made, capsys)[1]


def test_an_export_of_version_2_verifies_with_its_formulas(tmp_path: Path, capsys: Capture) -> None:
    log = Log(tmp_path / "ledger")
    log.exchange(1, NOON, model="gpt;=1+2")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    assert export(tmp_path) == 0
    table, path = tmp_path / "out" / "exchanges.csv", tmp_path / "out" / "manifest.json"
    assert b";'=1+2" in table.read_bytes()
    table.write_bytes(table.read_bytes().replace(b";'=1+2", b";=1+2"))
    rewrite(tmp_path / "out", lambda _: None)
    assert check(tmp_path, capsys)[0] == 40
    without_names(tmp_path / "out")
    manifest = json.loads(path.read_bytes())
    for name in ("counts", "left_out"):
        del manifest[name]
    path.write_text(json.dumps(manifest | {"v": 2}))
    assert check(tmp_path, capsys)[0] == 0


def test_an_export_of_version_3_calls_what_a_rule_denied_refused_and_verifies(
    tmp_path: Path, capsys: Capture
) -> None:
    log = Log(tmp_path / "ledger")
    log.refuse(1, NOON)
    log.refuse(2, NOON + 1, code="rate_limited")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    assert export(tmp_path) == 0
    assert check(tmp_path, capsys)[0] == 0
    table, path = tmp_path / "out" / "exchanges.csv", tmp_path / "out" / "manifest.json"
    assert b",denied,,policy_blocked," in table.read_bytes()
    table.write_bytes(table.read_bytes().replace(b",denied,,", b",refused,,"))
    rewrite(tmp_path / "out", lambda _: None)
    assert check(tmp_path, capsys)[0] == 40
    without_names(tmp_path / "out")
    manifest = json.loads(path.read_bytes())
    assert (manifest["counts"].pop("verdict denied"), manifest["counts"]["verdict refused"]) == (1, 1)
    manifest["counts"]["verdict refused"] = 2
    path.write_text(json.dumps(manifest | {"v": 3}))
    assert check(tmp_path, capsys)[0] == 0


def test_an_export_says_who_asked_and_one_of_version_4_has_no_names(tmp_path: Path, capsys: Capture) -> None:
    log = Log(tmp_path / "ledger")
    said = {"end_user": "1d" * 16, "end_user_name": "alice", "session": "s-1"}
    log.exchange(1, NOON, key_name="ci", attribution=said, client_address="192.0.2.7")
    log.refuse(2, NOON + 1, key_name="batch")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    assert export(tmp_path) == 0
    assert check(tmp_path, capsys)[0] == 0
    table, path = tmp_path / "out" / "exchanges.csv", tmp_path / "out" / "manifest.json"
    rows = list(csv.DictReader(io.StringIO(table.read_bytes().decode(), newline="")))
    assert [[row[name] for name in (*NAMES, "session")] for row in rows] == [
        ["ci", "alice", "192.0.2.7", "s-1"],
        ["batch", "", "", ""],
    ]
    content = table.read_bytes()
    table.write_bytes(content.replace(b",ci,", b",cd,"))
    rewrite(tmp_path / "out", lambda _: None)
    assert check(tmp_path, capsys)[0] == 40
    table.write_bytes(content)
    without_names(tmp_path / "out")
    assert check(tmp_path, capsys)[0] == 40
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"v": 4}))
    assert check(tmp_path, capsys)[0] == 0


def without_an_end(lines: Lines) -> None:
    del lines[2]["records"][1:]


def without_refusals(lines: Lines) -> None:
    lines[:] = [line for line in lines if json.loads(line["records"][0]["record"])["kind"] != "rejection"]


def without_the_newest(lines: Lines) -> None:
    del lines[-1]


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (without_an_end, "ends"),
        (without_refusals, "1 of 1 refusals"),
        (without_the_newest, "1 of 1 exchanges with the verdict redacted"),
    ],
)
def test_what_the_manifest_claims_and_is_not_there_is_missing(
    made: Path, capsys: Capture, change: Callable[[Lines], None], missing: str
) -> None:
    assert export(made) == 0
    before = (made / "out" / "exchanges.csv").read_bytes().split(b"\r\n")
    rewrite(made / "out", change)
    if change is without_an_end:
        row = before[3].split(b",")
        row[10:15] = [b"open", b"", b"", b"", b""]
        row[16:18] = [b"", b""]
        before[3] = b",".join(row)
        (made / "out" / "exchanges.csv").write_bytes(b"\r\n".join(before))
        rewrite(made / "out", lambda _: None)
    code, told = check(made, capsys)
    assert (code, told.splitlines()[-1]) == (10, "incomplete"), told
    assert missing in told


def test_the_end_of_an_exchange_is_missing_also_where_the_maker_says_that_it_had_none(
    tmp_path: Path, capsys: Capture
) -> None:
    log = Log(tmp_path / "ledger")
    log.exchange(1, NOON)
    log.admit(2, NOON + 1)
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    assert export(tmp_path) == 0
    code, told = check(tmp_path, capsys)
    assert (code, "according to the manifest, 1 had not ended when the export was created" in told) == (
        10,
        True,
    )


Manifest = dict[str, Any]


def invent_admissions(manifest: Manifest) -> None:
    manifest["tenants"].append(
        {"tenant": "initech", "origin": "nowhere", "first": 1, "last": 9, "exchanges": 9}
    )


def invent_records(manifest: Manifest) -> None:
    manifest["logs"][0]["records"] += 10


def hide_records(manifest: Manifest) -> None:
    manifest["logs"][0]["records"] -= 1


def hide_a_tenant(manifest: Manifest) -> None:
    del manifest["tenants"][0]


def shift_a_tenant(manifest: Manifest) -> None:
    manifest["tenants"][0]["last"] += 1


def hide_what_was_left_out(manifest: Manifest) -> None:
    manifest["left_out"] = []


def another_length(manifest: Manifest) -> None:
    manifest["files"]["exchanges.csv"]["bytes"] = 1


def another_ledger(manifest: Manifest) -> None:
    manifest["ledger"] = "proofgate.dev/other+00000000+AAAA"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (invent_admissions, 10),
        (invent_records, 10),
        (hide_records, 40),
        (hide_a_tenant, 40),
        (shift_a_tenant, 40),
        (hide_what_was_left_out, 40),
        (another_length, 40),
        (another_ledger, 40),
    ],
)
def test_a_manifest_that_says_something_else_of_the_records_does_not_verify(
    made: Path, capsys: Capture, change: Callable[[Manifest], None], expected: int
) -> None:
    assert export(made, "--tenant", "acme") == 0
    path = made / "out" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    assert manifest["left_out"] == ["tenant"]
    assert check(made, capsys)[0] == 0
    change(manifest)
    path.write_text(json.dumps(manifest))
    assert check(made, capsys)[0] == expected


def test_an_archive_whose_manifest_is_a_link_is_no_export(tmp_path: Path, capsys: Capture) -> None:
    for target in ("manifest.json", "other"):
        link = tarfile.TarInfo("manifest.json")
        link.type, link.linkname = tarfile.SYMTYPE, target
        with tarfile.open(tmp_path / "out.tar", "w") as tar:
            tar.addfile(link)
        assert "[bad_export]" in check(tmp_path, capsys, out="out.tar")[1]


@pytest.mark.parametrize("asked", [{"since": 10**30}, {"until": -1}, {"tenant": ["a"]}, {"newest": "x"}])
def test_a_filter_of_another_form_is_no_export(made: Path, capsys: Capture, asked: Manifest) -> None:
    assert export(made) == 0
    path = made / "out" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"filter": asked}))
    assert "[bad_export]" in check(made, capsys)[1]


def test_exchanges_of_a_log_that_cannot_be_read_are_left_out_and_the_export_says_so(
    made: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = _core.log_records

    def fail(directory: str, *more: Any) -> Any:
        if directory.endswith(SECOND):
            raise failure(_core.LedgerError, f"read {directory}: Input/output error", "ledger_io")
        return read(directory, *more)

    monkeypatch.setattr(_core, "log_records", fail)
    assert export(made, "--tenant", "acme") == 10
    told = capsys.readouterr()
    assert "7 exchanges" in told.out
    assert f"left out, because it cannot be read: {NAME}/0/{SECOND}: read " in told.err
    manifest = json.loads((made / "out" / "manifest.json").read_text())
    assert manifest["unreadable"] == [f"{NAME}/0/{SECOND}"]
    code, told_then = check(made, capsys)
    assert code == 10
    missing = f"missing: exchanges of {NAME}/0/{SECOND}, which could not be read when the export was created"
    assert missing in told_then.splitlines()
    assert told_then.splitlines()[-1] == "incomplete"


def test_a_list_of_unreadable_logs_that_is_none_is_refused(made: Path, capsys: Capture) -> None:
    assert export(made, "--rule", "a") == 0
    path = made / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    for wrong in ([1], 1):
        path.write_text(json.dumps(manifest | {"unreadable": wrong}))
        code, told = check(made, capsys)
        assert code == 2
        assert "[bad_export]" in told
