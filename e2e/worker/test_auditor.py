"""The auditor's findings for a real worker's ledger: unchanged, and after attacks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core
from proofgate.reading.files import LedgerFiles, LedgerReadError
from proofgate_operator.build import checkpoint, ledger_key
from proofgate_operator.plan.audit_reports import AuditReport
from proofgate_operator.workers.admin_port import AdminPort

from e2e import go_binaries
from e2e.attacks import ATTACKS, Others, remove_a_checkpoint
from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following, heads, signed
from e2e.commands import proofgate
from e2e.local_gateway import local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.served import look, served

THREAT_MODEL = Path(__file__).parents[2] / "docs" / "concepts" / "threat-model.md"


class Cosigner:
    """A witness at one address, which uses the state of the current audit."""

    def __init__(self) -> None:
        self.witness: _core.Witness | None = None
        self.answers: list[tuple[int, str]] = []
        cosigner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert cosigner.witness is not None
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, code, text = cosigner.witness.add_checkpoint(body, int(time.time()))
                cosigner.answers.append((status, code))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def begin(self, folder: Path, log: str) -> None:
        """Creates the witness's key, and a policy that requires its cosignature of a log."""
        secret, public = _core.generate_witness_key("witness.example/one")
        (folder / "witness-key").write_text(secret)
        (folder / "logs").write_text(f"logs/v0\n\nvkey {log}\n")
        url = f"http://127.0.0.1:{self.server.server_port}"
        (folder / "policy").write_text(f"witness one {public} {url}\nquorum one\n")

    def look(self, audit: Audit, *more: str) -> tuple[list[dict[str, Any]], str]:
        """The auditor's findings, and the witness's answer in the form of the table."""
        key, logs = ((audit.folder / name).read_text() for name in ("witness-key", "logs"))
        self.answers = []
        self.witness = _core.Witness(str(audit.folder / "witness"), key, logs, "--new-aggregate" in more)
        try:
            found = audit.look("--witness-policy", str(audit.folder / "policy"), *more)[1]
            cosigned = self.witness.checkpoint(hashlib.sha256(AUDITOR.encode()).hexdigest())
        finally:
            self.witness = None
        published = (audit.state / "checkpoint").read_text()
        assert cosigned is not None and cosigned.split("\n\n")[0] == published.split("\n\n")[0]
        refused = sorted({code for status, code in self.answers if status != HTTPStatus.OK})
        return found, ", ".join(f"`{code}`" for code in refused) or "—"


@pytest.fixture(scope="module")
def cosigner() -> Iterator[Cosigner]:
    made = Cosigner()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory, cosigner: Cosigner) -> tuple[Audit, Others]:
    """A checked ledger of three logs, one from a killed worker, and other ledgers with its name."""
    folder = tmp_path_factory.mktemp("auditor")
    others = Others(folder / "older", folder / "forked", folder / "rekeyed" / "ledger")
    with local_gateway(folder, settings={"ledger": {"segmentBytes": 1 << 20}}) as gateway:
        assert gateway.worker is not None
        ask_and_wait(gateway, 10)
        assert gateway.worker.stop() == 0
        gateway.start_worker()
        ask_and_wait(gateway, 10)
        gateway.worker.stop(signal.SIGKILL)
        shutil.copytree(gateway.ledger, others.forked)
        gateway.start_worker()
        ask_and_wait(gateway, 5)
        shutil.copytree(gateway.ledger, others.older)
        ask_and_wait(gateway, 5)
        gateway.worker.stop(signal.SIGKILL)
        kept = folder / "kept"
        gateway.ledger.rename(kept)
        # The same worker continues a copy of the earlier state.
        shutil.copytree(others.forked, gateway.ledger)
        gateway.start_worker()
        ask_and_wait(gateway, 2)
        assert gateway.worker.stop() == 0
        shutil.rmtree(others.forked)
        gateway.ledger.rename(others.forked)
        kept.rename(gateway.ledger)
        key = gateway.verifying_key
    others.rekeyed.parent.mkdir()
    with local_gateway(others.rekeyed.parent) as gateway:
        ask_and_wait(gateway, 5)
        assert gateway.worker is not None and gateway.worker.stop() == 0
    secret, public = _core.generate_key(AUDITOR)
    home = folder / "audit"
    home.mkdir()
    (home / "auditor-key").write_text(secret)
    (home / "keeping-key").write_text(_core.generate_key("proofgate.dev/local/keeping")[1])
    shutil.copytree(folder / "ledger", home / "ledger")
    audit = Audit(home, key)
    cosigner.begin(home, public)
    assert cosigner.look(audit, "--new-aggregate") == ([], "—")
    notes = [(log / "checkpoint").read_text() for log in audit.logs()]
    (home / "held").write_text("\n".join(notes))
    assert [judged(audit), judged(audit, "--against", str(home / "held"))] == ["—", "—"]
    return audit, others


def judged(audit: Audit, *more: str) -> str:
    """The verdict of `fsck` in the form of the table."""
    done = proofgate("ledger", "fsck", audit.ledger, "--key", audit.key, *audit.keeping, *more)
    # `fsck` reports a directory without a log as no ledger.
    verdicts = {0: "—", 2: "no ledger", 10: "incomplete", 30: "diverged", 40: "invalid", 41: "another key"}
    return verdicts.get(done.returncode, done.stderr)


def table() -> dict[str, list[str]]:
    """The rows of the attacker's table in the documentation, by their first column."""
    lines = THREAT_MODEL.read_text().split("\n## The attacker's table\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row[1:5] for row in rows[1:]}


def test_the_table_has_every_attack_and_every_attack_is_tried() -> None:
    assert list(table()) == list(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_each_notices_of_an_attack_is_what_the_threat_model_says(
    history: tuple[Audit, Others], cosigner: Cosigner, tmp_path: Path, attack: str
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    ATTACKS[attack](audit, history[1])
    alone, with_held = judged(audit), judged(audit, "--against", str(audit.folder / "held"))
    found, witness = cosigner.look(audit)
    codes = sorted({finding["code"] for finding in found})
    assert [alone, with_held, ", ".join(f"`{code}`" for code in codes) or "—", witness] == table()[attack]
    # Findings are evidence: a later check still reports them, even if the ledger is restored.
    shutil.rmtree(audit.ledger)
    shutil.copytree(history[0].ledger, audit.ledger)
    assert set(codes) <= {finding["code"] for finding in audit.look()[1]}


def test_a_configuration_that_records_name_is_missed_and_its_changes_are_found(
    history: tuple[Audit, Others], tmp_path: Path
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    assert (judged(audit), audit.look()) == ("—", (0, []))
    [file] = (audit.ledger / "configurations").iterdir()
    content = file.read_bytes()
    file.unlink()
    assert judged(audit) == "incomplete"
    code, [found] = audit.look()
    assert (code, found["code"]) == (10, "configuration_missing")
    assert found["origin"].endswith(audit.logs()[0].name) and file.name in found["message"]
    file.write_bytes(content)
    assert (judged(audit), audit.look()) == ("—", (0, []))
    file.write_bytes(content + b"\n")
    assert judged(audit) == "invalid"
    code, [found] = audit.look()
    assert (code, found["code"]) == (40, "configuration_changed")
    file.write_bytes(content)
    assert audit.look() == (40, [found]), "it is evidence"


@pytest.fixture(scope="module")
def worker_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Audit], str]]:
    """A stand-in for the worker of an audit's ledger; gives its URL."""
    folder = tmp_path_factory.mktemp("served") / "ledger"
    with served(folder) as url:

        def serve(audit: Audit) -> str:
            folder.unlink(missing_ok=True)
            folder.symlink_to(audit.ledger)
            return url

        yield serve


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_auditor_notices_the_same_where_the_worker_serves_its_folder(
    history: tuple[Audit, Others], worker_of: Callable[[Audit], str], tmp_path: Path, attack: str
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    url = worker_of(audit)
    assert look(audit, url) == [], "it is the ledger that was seen on its volume"
    ATTACKS[attack](audit, history[1])
    codes = sorted({finding["code"] for finding in look(audit, url)})
    assert (", ".join(f"`{code}`" for code in codes) or "—") == table()[attack][2]


def test_a_file_that_its_worker_cannot_read_hides_nothing_else(
    history: tuple[Audit, Others],
    worker_of: Callable[[Audit], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    url = worker_of(audit)
    oldest, _, newest = (log.name for log in audit.logs())
    read = LedgerFiles.read

    def fail(self: LedgerFiles, path: str, offset: int, most: int) -> tuple[int, bytes]:
        if oldest in path:
            raise LedgerReadError("ledger_io", "it cannot be read: Permission denied")
        return read(self, path, offset, most)

    monkeypatch.setattr(LedgerFiles, "read", fail)
    remove_a_checkpoint(audit, history[1])
    found = {(finding["code"], finding["origin"].split("/")[-1]) for finding in look(audit, url)}
    assert found == {("unreadable", oldest), ("checkpoint_missing", newest)}


def test_a_state_that_lacks_what_is_held_of_it_is_not_begun_anew(history: tuple[Audit, Others], tmp_path: Path) -> None:
    audit = history[0].copy(tmp_path / "audit")
    held = tmp_path / "held"
    assert audit.look("--held", str(held)) == (0, []), "nothing is held yet"
    shutil.copy(audit.state / "checkpoint", held)
    assert audit.look("--held", str(held)) == (0, [])
    shutil.rmtree(audit.state)
    command = [sys.executable, "-m", "proofgate", *audit.arguments, "--once", "--held", str(held)]
    lost = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert lost.returncode == 1 and "[auditor_state_lost]" in lost.stderr
    held.unlink()
    assert audit.look("--held", str(held)) == (0, []), "it begins where nothing is held"


@pytest.mark.parametrize(
    ("name", "code", "found"),
    # The tree is computed from the records again.
    [("checkpoint", 10, ["unreadable"]), ("00000000000000000000.seg", 10, ["unreadable"]), ("tree", 0, [])],
)
def test_a_pipe_in_the_place_of_a_file_is_told_and_no_look_waits_for_who_writes_it(
    history: tuple[Audit, Others], tmp_path: Path, name: str, code: int, found: list[str]
) -> None:
    audit = history[0].copy(tmp_path / "copy")
    path = audit.logs()[-1] / name
    path.unlink()
    os.mkfifo(path)
    told, findings = audit.look()
    assert (told, [finding["code"] for finding in findings]) == (code, found)
    assert all("it is not a regular file" in finding["message"] for finding in findings)


def test_an_auditor_follows_a_worker_survives_a_kill_and_sees_a_deletion_while_it_runs(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        secret, public = _core.generate_key(AUDITOR)
        (folder / "auditor-key").write_text(secret)
        audit = Audit(folder, gateway.verifying_key)
        ask_and_wait(gateway, 3)
        with following(audit, "--new-aggregate") as (program, url):
            wait_until(lambda: heads(url).get(gateway.origin) == signed(gateway), PATIENCE, "the head is accepted")
            before = fetch(f"{url}/checkpoint")
            program.stop(signal.SIGKILL)
        ask_and_wait(gateway, 3)
        with following(audit) as (program, url):
            wait_until(
                lambda: heads(url).get(gateway.origin) == signed(gateway), PATIENCE, "the newer head is accepted"
            )
            size = int(before.split("\n")[1])
            wait_until(
                lambda: int(fetch(f"{url}/checkpoint").split("\n")[1]) > size, PATIENCE, "it is in the aggregate"
            )
            after = fetch(f"{url}/checkpoint")
            proof = json.loads(fetch(f"{url}/consistency?old={size}&new={after.split(chr(10))[1]}"))
            notes = [(str(folder / "one"), before), (str(folder / "two"), after)]
            path = [base64.b64decode(text) for text in proof["hashes"]]
            assert json.loads(_core.consistency(notes[0], notes[1], public, None, path))["old"] == size
            checked = subprocess.run(
                [str(go_binaries.verifier()), "tiles", "--vkey", public, "--ledger-vkey", gateway.verifying_key, url],
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert checked.returncode == 0, checked.stderr
            assert checked.stdout.endswith(f"heads in {AUDITOR}\n")
            metrics = fetch(f"{url}/metrics")
            assert "proofgate_auditor_findings{" not in metrics, "a ledger as it should be has none"
            assert json.loads(fetch(f"{url}/findings"))["findings"] == []
            assert gateway.worker is not None and gateway.worker.stop() == 0
            shutil.rmtree(gateway.ledger / "0" / gateway.origin.split("/")[-1])
            wait_until(
                lambda: 'findings{code="shard_missing",verdict="diverged"}' in fetch(f"{url}/metrics"),
                PATIENCE,
                "it is reported",
            )
            assert program.stop() == 0
        assert secret.strip().split("+", 4)[4] not in program.log.read_text()


def test_the_operator_reads_what_a_real_auditor_tells_and_signs(history: tuple[Audit, Others], tmp_path: Path) -> None:
    audit = history[0].copy(tmp_path / "audit")
    key = ledger_key.read((audit.folder / "auditor-key").read_text())
    with following(audit, "--held", str(tmp_path / "held")) as (_, url):
        pod = {"metadata": {"name": "demo-auditor-0"}, "status": {"podIP": "127.0.0.1"}}

        def told() -> AuditReport:
            async def ask() -> AuditReport:
                port = AdminPort(auditor_port=int(url.rsplit(":", 1)[1]))
                try:
                    return await port.fetch_audit_report(pod)
                finally:
                    await port.close()

            return asyncio.run(ask())

        def report_that(tells: Callable[[AuditReport], object], what: str) -> AuditReport:
            """Waits for a matching report; a report requested later could be empty if the auditor is slow."""
            reports: list[AuditReport] = []

            def is_told() -> bool:
                reports.append(told())
                return bool(tells(reports[-1]))

            wait_until(is_told, PATIENCE, what)
            return reports[-1]

        before = report_that(lambda report: report.last_poll_at, "it has polled")
        assert before.reachable and not before.stale and before.newest_head_at > 0
        assert (before.finding_counts, before.findings, before.omitted_findings) == ((), (), 0)
        assert checkpoint.read_aggregate_checkpoint(before.checkpoint, key.verifying_text).size > 0
        remove_a_checkpoint(audit, history[1])
        after = report_that(lambda report: report.findings, "it reports its findings")
        [finding] = after.findings
        assert (finding.code, finding.verdict) == ("checkpoint_missing", "invalid")
        assert after.finding_counts == (("checkpoint_missing", 1),) and finding.since > 0
