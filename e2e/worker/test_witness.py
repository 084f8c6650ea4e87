"""Witnesses of an auditor's log of tree heads: ours and a stock one, for our auditor and for a stock log."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from proofgate import _core
from proofgate_operator.build import checkpoint
from proofgate_operator.plan.audit_reports import parse_audit_report

from e2e import go_binaries
from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following
from e2e.local_gateway import local_gateway
from e2e.ports import free_port
from e2e.programs import PATIENCE, Program, start_ready, wait_until


@pytest.fixture(scope="module")
def binaries() -> Path:
    """The folder of the verifier, a stock witness and a stock log, built from the modules that go.sum pins."""
    return go_binaries.witnesses()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A ledger of one ended log, and its verifying key."""
    folder = tmp_path_factory.mktemp("witnessed")
    with local_gateway(folder) as gateway:
        ask_and_wait(gateway, 3)
        assert gateway.worker is not None and gateway.worker.stop() == 0
        return gateway.ledger, gateway.verifying_key


def audit_of(ledger: tuple[Path, str], folder: Path) -> tuple[Audit, str]:
    """An auditor of a copy of the ledger, and the auditor's verifying key."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(ledger[0], folder / "ledger")
    secret, public = _core.generate_key(AUDITOR)
    (folder / "auditor-key").touch(0o600)
    (folder / "auditor-key").write_text(secret)
    return Audit(folder, ledger[1]), public


class Ours:
    """`proofgate audit witness` for one log."""

    def __init__(self, folder: Path, log_vkey: str) -> None:
        folder.mkdir()
        self.folder = folder
        secret, self.vkey = _core.generate_witness_key("witness.example/ours")
        (folder / "witness-key").write_text(secret)
        (folder / "logs").write_text(f"logs/v0\n\nvkey {log_vkey}\n")

    @contextmanager
    def running(self, *more: str, listen: str = "127.0.0.1:0") -> Iterator[tuple[Program, str]]:
        paths = ["--logs", str(self.folder / "logs"), "--signing-key", str(self.folder / "witness-key")]
        arguments = ["audit", "witness", *paths, "--state", str(self.folder / "state"), "--listen", listen, *more]
        program, ready = start_ready(
            lambda: Program.start("witness", self.folder, arguments),
            lambda program: program.wait_for_line(r"proofgate witness: (http://\S+) verifying-key="),
        )
        try:
            yield program, ready[1]
        finally:
            program.stop(signal.SIGKILL)


@contextmanager
def litewitness(binaries: Path, folder: Path, log_vkey: str) -> Iterator[tuple[str, str]]:
    """A stock witness for one log: its vkey and URL."""
    folder.mkdir()
    origin = log_vkey.split("+")[0]
    database = sqlite3.connect(folder / "litewitness.db")
    # The same as its witnessctl, which would need another module.
    database.executescript(
        "CREATE TABLE log (origin TEXT PRIMARY KEY, tree_size INTEGER NOT NULL, tree_hash TEXT NOT NULL);"
        "CREATE TABLE key (origin TEXT NOT NULL, key TEXT NOT NULL, FOREIGN KEY(origin) REFERENCES log(origin));"
    )
    empty = base64.b64encode(hashlib.sha256(b"").digest()).decode()
    database.execute("INSERT INTO log VALUES (?, 0, ?)", (origin, empty))
    database.execute("INSERT INTO key VALUES (?, ?)", (origin, log_vkey))
    database.commit()
    database.close()
    addresses: list[tuple[str, int]] = []

    def start_agent() -> Program:
        (folder / "agent.sock").unlink(missing_ok=True)
        executable = [str(binaries / "verifier")]
        return Program.start("agent", folder, ["agent", "agent.sock"], executable, cwd=folder, stdin=subprocess.PIPE)

    def start_witness() -> Program:
        # It reports that it listens before it does, and does not report its port.
        addresses.append(("127.0.0.1", free_port()))
        options = ["-name", "witness.example/stock", "-key", key[1], "-ssh-agent", "agent.sock"]
        options += ["-listen", "{}:{}".format(*addresses[-1])]
        return Program.start("litewitness", folder, options, [str(binaries / "litewitness")], cwd=folder)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(addresses[-1]) == 0

    with ExitStack() as stack:
        agent, key = start_ready(start_agent, lambda agent: agent.wait_for_line(r"^(\S+)\n"))
        stack.callback(agent.stop, signal.SIGKILL)
        stock, _ = start_ready(start_witness, lambda stock: stock.wait_until(listens, "it listens"))
        stack.callback(stock.stop, signal.SIGKILL)
        found = stock.wait_for_line(r'vkey="?(witness\.example/stock\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+)')
        yield found[1], "http://{}:{}".format(*addresses[-1])


def published(url: str) -> str | None:
    """The auditor's checkpoint; None if there is none."""
    try:
        return fetch(f"{url}/checkpoint")
    except urllib.error.HTTPError as error:
        assert error.code == 503 and json.load(error)["error"]["code"] == "not_cosigned"
        return None


def first_entry(url: str, size: int) -> bytes:
    with urllib.request.urlopen(f"{url}/tile/entries/000.p/{size}", timeout=PATIENCE) as answer:
        bundle: bytes = answer.read()
    return bundle[2 : 2 + int.from_bytes(bundle[:2], "big")]


def believed(binaries: Path, policy: str, entry: Path, proof: Path) -> bool:
    """Whether a stock client accepts a proof under a policy."""
    (entry.parent / "checked-policy").write_text(policy)
    files = ["--policy", "checked-policy", "--entry", entry.name, proof.name]
    done = subprocess.run([binaries / "verifier", "witnessed", *files], cwd=entry.parent, capture_output=True)
    return done.returncode == 0


def test_a_stock_witness_and_ours_cosign_and_a_stock_client_believes_the_proof_under_the_policy(
    ledger: tuple[Path, str], binaries: Path, tmp_path: Path
) -> None:
    audit, auditor_vkey = audit_of(ledger, tmp_path / "audit")
    ours = Ours(tmp_path / "ours", auditor_vkey)
    with litewitness(binaries, tmp_path / "stock", auditor_vkey) as (stock_vkey, stock_url):
        address = f"127.0.0.1:{free_port()}"
        with ours.running("--new-state", listen=address) as (_, our_url):
            policy = tmp_path / "policy"
            policy.write_text(
                f"log {auditor_vkey}\nwitness ours {ours.vkey} {our_url}\nwitness stock {stock_vkey} {stock_url}\n"
                "group both all ours stock\nquorum both\n"
            )
            with following(audit, "--new-aggregate", "--witness-policy", str(policy)) as (program, url):
                wait_until(lambda: published(url) is not None, PATIENCE, "both have cosigned")
                note = published(url)
                assert note is not None and note.count("\n— ") == 3
                size = int(note.split("\n")[1])
                proof, entry = tmp_path / "head.tlog-proof", tmp_path / "entry"
                proof.write_text(fetch(f"{url}/proof?index=0"))
                entry.write_bytes(first_entry(url, size))
                assert believed(binaries, policy.read_text(), entry, proof)
                _, stranger = _core.generate_witness_key("witness.example/ours")
                wanting = policy.read_text().replace(ours.vkey, stranger)
                assert not believed(binaries, wanting, entry, proof), "a quorum is wanting"
                entry.write_bytes(entry.read_bytes() + b" ")
                assert not believed(binaries, policy.read_text(), entry, proof), "it is another entry"
                command = [str(binaries / "verifier"), "tiles", "--vkey", auditor_vkey, "--ledger-vkey", ledger[1], url]
                assert subprocess.run(command, capture_output=True).returncode == 0
                metrics = fetch(f"{url}/metrics")
                assert f'proofgate_auditor_witness_cosigned_heads{{witness="stock"}} {size}' in metrics
                assert f"proofgate_auditor_published_heads {size}" in metrics
                assert program.stop() == 0
        # A killed witness remembers its state, and cosigns the same checkpoint again.
        audit.state.joinpath("cosignatures").unlink()
        with (
            ours.running(listen=address) as (_, _),
            following(audit, "--witness-policy", str(policy)) as (program, url),
        ):
            assert published(url) is not None
            wait_until(lambda: 'result="cosigned"} 1' in fetch(f"{url}/metrics"), PATIENCE, "it is cosigned again")
            assert json.loads(fetch(f"{url}/findings"))["findings"] == []


def test_a_log_of_heads_that_is_begun_anew_under_its_key_is_refused_by_its_witness_and_found(
    ledger: tuple[Path, str], tmp_path: Path
) -> None:
    audit, auditor_vkey = audit_of(ledger, tmp_path / "audit")
    ours = Ours(tmp_path / "ours", auditor_vkey)
    with ours.running("--new-state") as (witness, url):
        policy = tmp_path / "policy"
        policy.write_text(f"witness ours {ours.vkey} {url}\nquorum ours\n")
        assert audit.look("--new-aggregate", "--witness-policy", str(policy)) == (0, [])
        assert (audit.state / "checkpoint").exists()
        shutil.rmtree(audit.state)
        ended, findings = audit.look("--new-aggregate", "--witness-policy", str(policy))
        assert (ended, [finding["code"] for finding in findings]) == (30, ["aggregate_fork"])
        assert "ours" in findings[0]["message"]
        assert not (audit.state / "checkpoint").exists(), "nothing of the other history is published"
        digest = hashlib.sha256(AUDITOR.encode()).hexdigest()
        assert "— witness.example/ours " in fetch(f"{url}/{digest}/checkpoint"), "the proof of the first"
        assert witness.stop() == 0


def test_the_operator_reads_how_witnesses_stand_and_why_a_policy_is_refused(
    ledger: tuple[Path, str], tmp_path: Path
) -> None:
    audit, auditor_vkey = audit_of(ledger, tmp_path / "audit")
    ours = Ours(tmp_path / "ours", auditor_vkey)
    policy, begun = tmp_path / "policy", int(time.time())
    with ours.running("--new-state") as (_, url):
        policy.write_text(f"witness ours {ours.vkey} {url}\nquorum ours\n")
        with following(audit, "--new-aggregate", "--witness-policy", str(policy)) as (_, auditor):
            wait_until(lambda: published(auditor) is not None, PATIENCE, "it is cosigned")
            report = parse_audit_report(json.loads(fetch(f"{auditor}/status")))
            size = checkpoint.read_aggregate_checkpoint(report.checkpoint, auditor_vkey).size
            assert [(one.name, one.last_outcome, one.size) for one in report.witnesses] == [("ours", "cosigned", size)]
            assert report.cosignature_wait_seconds == 0 and begun <= report.witnesses[0].time <= time.time()
        # The operator stores the checkpoint with its cosignatures, and the next start must be consistent with it.
        held, options = tmp_path / "held", ("--held", str(tmp_path / "held"), "--witness-policy", str(policy))
        held.write_text(report.checkpoint)
        assert held.read_text().count("\n— ") == 2 and audit.look(*options) == (0, [])
        audit.state.rename(tmp_path / "lost")
        lost = subprocess.run(
            [sys.executable, "-m", "proofgate", *audit.arguments, "--once", *options], capture_output=True, text=True
        )
        assert lost.returncode == 1 and lost.stderr.endswith("[auditor_state_lost]\n")
    policy.write_text(f"witness ours {ours.vkey}\nquorum theirs\n")
    command = [sys.executable, "-m", "proofgate", *audit.arguments, "--once", "--witness-policy", str(policy)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 1
    assert (
        refused.stderr
        == "proofgate: the trust policy is not valid: line 2: no line above defines theirs [auditor_policy]\n"
    )


def test_our_witness_cosigns_a_stock_log_also_after_it_was_killed(binaries: Path, tmp_path: Path) -> None:
    secret, public = _core.generate_key("log.example/stock")
    (tmp_path / "log-key").write_text(secret)
    ours = Ours(tmp_path / "ours", public)
    for start, more in ((1, ["--new-state"]), (4, []), (20, [])):
        with ours.running(*more) as (witness, url):
            (tmp_path / "policy").write_text(f"witness ours {ours.vkey} {url}\nquorum ours\n")
            for number in range(start, start + 3):
                (tmp_path / f"entry-{number}").write_text(f"entry {number}")
            paths = [f"--storage_dir={tmp_path / 'log'}", f"--entries={tmp_path}/entry-*"]
            keys = [f"--private_key={tmp_path / 'log-key'}", f"--witness_policy_file={tmp_path / 'policy'}"]
            command = [str(binaries / "posix-oneshot"), *paths, *keys]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0, done.stderr
            note = (tmp_path / "log" / "checkpoint").read_text()
            assert "— witness.example/ours " in note
            size = note.split("\n")[1]
            assert f'cosigned_entries{{origin="log.example/stock"}} {size}\n' in fetch(f"{url}/metrics")
            witness.stop(signal.SIGKILL)
        for path in tmp_path.glob("entry-*"):
            path.unlink()
