"""An index of a real worker's ledger, and an export of it that verifies with the key alone."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from proofgate import _core
from proofgate.index.facts import exchange_facts

from e2e import go_binaries
from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following, signed
from e2e.commands import proofgate
from e2e.evidence import records
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request

#: `proofgate` in a process that exits before the SQLite statement with this number, or else prints the number of
#: statements.
DYING = """
import os, sqlite3, sys
from proofgate.cli import main
count, last, connect = 0, int(sys.argv[1]), sqlite3.connect
def told(_):
    global count
    count += 1
    if count == last:
        os._exit(9)
def connected(*given, **named):
    connection = connect(*given, **named)
    connection.set_trace_callback(told)
    return connection
sqlite3.connect = connected
code = main(sys.argv[2:])
print(count, file=sys.stderr)
sys.exit(code)
"""


def run(*arguments: str | Path) -> tuple[int, str]:
    done = proofgate(*arguments)
    return done.returncode, done.stdout + done.stderr


def asked(index: Path, *more: str) -> list[dict[str, Any]]:
    done = proofgate("audit", "exchanges", "--index", index, "--limit", "1000", "--json", *more)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["exchanges"]
    return found


def refuse(gateway: LocalGateway) -> None:
    headers = {"Authorization": f"Bearer {KEYS['globex']}"}
    with httpx.Client(base_url=gateway.base_url, headers=headers, timeout=PATIENCE) as client:
        assert client.post("/chat/completions", json={"model": "nothing", "messages": []}).status_code >= 400


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A ledger of two logs; the first worker was killed during an answer."""
    folder = tmp_path_factory.mktemp("index")
    with local_gateway(folder) as gateway:
        assert gateway.worker is not None
        ask_and_wait(gateway, 3)
        refuse(gateway)
        before = signed(gateway)
        body = {"model": MODEL, "messages": [{"role": "user", "content": "mock:hang"}]}
        host, port = gateway.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(chat_request(json.dumps(body).encode(), KEYS["acme"]))
            wait_until(lambda: signed(gateway) > before, PATIENCE, "the admission is under a checkpoint")
            gateway.worker.stop(signal.SIGKILL)
        gateway.start_worker()
        ask_and_wait(gateway, 2)
        assert gateway.worker.stop() == 0
        return gateway.ledger, gateway.verifying_key


def test_each_exchange_of_a_ledger_is_one_row_and_says_what_its_records_say(
    ledger: tuple[Path, str], tmp_path: Path
) -> None:
    index = tmp_path / "index"
    command: list[str | Path] = ["audit", "index", "--ledger", ledger[0], "--ledger-key", ledger[1], "--index", index]
    assert run(*command)[0] == 0
    rows = asked(index)
    stored = records(ledger[0])
    begun = [record["id"] for record in stored if record["kind"] in ("admission", "rejection")]
    assert sorted(row["id"] for row in rows) == sorted(begun)
    assert len(begun) >= 7
    for row in rows:
        own = [record for record in stored if record.get("id") == row["id"]]
        places = {(record["log"], record["seq"]) for record in own}
        assert {(place["origin"].split("/")[-1], place["index"]) for place in row.pop("records")} == places
        assert row == exchange_facts(own)
    assert run(*command) == (0, f"0 records read into {index}\n")
    assert run(*command, "--rebuild")[0] == 0
    assert [row["id"] for row in asked(index)] == [row["id"] for row in rows]


def test_an_index_whose_making_is_killed_again_and_again_has_each_exchange_once(
    ledger: tuple[Path, str], tmp_path: Path
) -> None:
    index = tmp_path / "index"
    command: list[str | Path] = ["audit", "index", "--ledger", ledger[0], "--ledger-key", ledger[1], "--index", index]

    def rebuild(statements: int) -> subprocess.CompletedProcess[str]:
        """Rebuilds the index in a process that exits before the statement with this number."""
        dying = [sys.executable, "-c", DYING, str(statements), *map(str, command), "--rebuild"]
        return subprocess.run(dying, capture_output=True, text=True, timeout=PATIENCE)

    whole = rebuild(0)
    assert whole.returncode == 0, whole.stderr
    statements, rows = int(whole.stderr.splitlines()[-1]), asked(index)
    for part in range(1, 7):
        assert rebuild(statements * part // 7).returncode == 9
        assert run(*command)[0] == 0
        assert asked(index) == rows


def test_an_export_verifies_with_the_key_alone_and_not_when_a_byte_is_changed(
    ledger: tuple[Path, str], tmp_path: Path
) -> None:
    index, out = tmp_path / "index", tmp_path / "out"
    assert run("audit", "index", "--ledger", ledger[0], "--ledger-key", ledger[1], "--index", index)[0] == 0
    signing, signer = _core.generate_key("proofgate.dev/local/exports")
    (tmp_path / "key").write_text(signing)
    paths: list[str | Path] = ["--index", index, "--ledger", ledger[0]]
    assert run("audit", "export", *paths, "--tenant", "acme", "--out", out, "--signing-key", tmp_path / "key")[0] == 0
    code, told = run("audit", "verify-export", out, "--key", ledger[1], "--signer", signer)
    assert (code, told.splitlines()[-1]) == (0, "verified"), told
    assert told.count("with none missing between") == 2
    _, other = _core.generate_key("proofgate.dev/local/demo")
    assert run("audit", "verify-export", out, "--key", other)[0] == 41
    lines = (out / "exchanges.jsonl").read_text().splitlines()
    note = json.loads((out / "manifest.json").read_text())["logs"]
    notes = {log["origin"]: log["checkpoint"] for log in note}
    # A record with its path and its checkpoint is a tlog-proof.
    for record in (record for line in lines for record in json.loads(line)["records"]):
        head = ["c2sp.org/tlog-proof@v1", f"index {record['index']}", *record["path"]]
        proof = "\n".join(head) + "\n\n" + notes[record["origin"]]
        assert json.loads(_core.verify_proof(record["record"].encode(), proof, ledger[1]))["index"] == record["index"]
    archive = tmp_path / "all.tar.gz"
    assert run("audit", "export", *paths, "--out", archive)[0] == 0
    assert run("audit", "verify-export", archive, "--key", ledger[1])[0] == 0
    (out / "exchanges.jsonl").write_text("\n".join(lines).replace("acme", "acmf", 1) + "\n")
    assert run("audit", "verify-export", out, "--key", ledger[1])[0] == 40


def test_an_auditor_answers_readers_of_what_it_has_accepted(tmp_path: Path) -> None:
    with local_gateway(tmp_path) as gateway:
        ask_and_wait(gateway, 2)
        secret, public = _core.generate_key(AUDITOR)
        (tmp_path / "auditor-key").write_text(secret)
        readers = {
            _core.hash_api_key("of-acme"): {"name": "a", "tenant": "acme"},
            _core.hash_api_key("of-all"): {"name": "b", "all": True},
        }
        (tmp_path / "readers").write_text(json.dumps(readers))
        more = ["--new-aggregate", "--index", str(tmp_path / "index"), "--readers", str(tmp_path / "readers")]
        check: list[str | Path] = ["audit", "access-log", tmp_path / "state", "--key", public]
        with following(Audit(tmp_path, gateway.verifying_key), *more) as (_, url):

            def found(key: str) -> list[dict[str, Any]]:
                answer = httpx.get(f"{url}/v1/exchanges", headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE)
                rows: list[dict[str, Any]] = answer.raise_for_status().json()["exchanges"]
                return rows

            wait_until(lambda: len(found("of-all")) == 2, PATIENCE, "the exchanges are indexed")
            refuse(gateway)
            ask_and_wait(gateway, 1)
            wait_until(lambda: len(found("of-all")) == 4, PATIENCE, "what came later is, too")
            assert {row["tenant"] for row in found("of-acme")} == {"acme"}
            with pytest.raises(httpx.HTTPStatusError, match="401"):
                found(KEYS["acme"])
            # Reads with the local command are in the same access log, which the auditor continues.
            assert run("audit", "exchanges", "--index", tmp_path / "index")[0] == 0
            assert {row["tenant"] for row in found("of-acme")} == {"acme"}
            wait_until(
                lambda: "; not covered by a tree head yet: 0 lines" in run(*check)[1],
                PATIENCE,
                "the reads are reported",
            )
            verifier = [
                str(go_binaries.verifier()),
                "tiles",
                "--vkey",
                public,
                "--ledger-vkey",
                gateway.verifying_key,
                url,
            ]
            done = subprocess.run(verifier, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
        [file] = (tmp_path / "state").glob("access-*.jsonl")
        log = [json.loads(line) for line in file.read_text().splitlines()[1:]]
        assert {entry["reader"] for entry in log if "reader" in entry} == {"a", "b"}
        assert [entry["by_hand"] for entry in log if "by_hand" in entry] == ["exchanges"]
        assert {entry["peer"] for entry in log if "sign_in" in entry} == {"127.0.0.1"}
        assert run(*check)[0] == 0
        file.write_text(file.read_text().replace('"reader":"a"', '"reader":"c"', 1))
        assert run(*check)[0] == 30
        with following(Audit(tmp_path, gateway.verifying_key), *more[1:]) as (_, url):
            wait_until(lambda: '"access_log_changed"' in fetch(f"{url}/findings"), PATIENCE, "it is found")
            wait_until(lambda: len(found("of-all")) == 4, PATIENCE, "readers are answered all the same")


def test_an_auditor_starts_with_an_index_that_it_cannot_use_and_goes_on_with_one_that_is_made_anew(
    ledger: tuple[Path, str], tmp_path: Path
) -> None:
    index, readers = tmp_path / "index", tmp_path / "readers"
    index.mkdir()
    (index / "catalogue.sqlite").write_bytes(b"no database" * 100)
    shutil.copytree(ledger[0], tmp_path / "ledger")
    (tmp_path / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
    readers.write_text(json.dumps({_core.hash_api_key("of-all"): {"name": "b", "all": True}}))
    more = ["--new-aggregate", "--index", str(index), "--readers", str(readers), "--index-days", "36500"]
    with following(Audit(tmp_path, ledger[1]), *more) as (program, url):

        def ask() -> httpx.Response:
            return httpx.get(f"{url}/v1/exchanges", headers={"Authorization": "Bearer of-all"}, timeout=PATIENCE)

        wait_until(
            lambda: "[index_io]" in httpx.get(f"{url}/readyz", timeout=PATIENCE).text,
            PATIENCE,
            "it audits, and says so",
        )
        assert json.loads(fetch(f"{url}/status"))["index"]["code"] == "index_io"
        assert (ask().status_code, ask().json()["error"]["code"]) == (503, "index_io")
        assert (
            run("audit", "index", "--rebuild", "--ledger", ledger[0], "--ledger-key", ledger[1], "--index", index)[0]
            == 0
        )
        assert len(ask().raise_for_status().json()["exchanges"]) >= 7
        assert program.process.poll() is None
