"""What the auditor says of a real worker's ledger: as it is, and after somebody has had a hand in it."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from proofgate import _core
from proofgate_operator.build import checkpoint, ledger_key
from proofgate_operator.plan.audit_reports import AuditReport
from proofgate_operator.workers.admin_port import AdminPort

from e2e.auditing import AUDITOR, VERIFIER, Audit, ask_and_wait, fetch, following, heads, signed
from e2e.local_gateway import local_gateway, wait_until


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Audit, Path, Path]:
    """A ledger of three logs, one of a killed worker, an older state of it, and one whose end has another successor."""
    folder = tmp_path_factory.mktemp("auditor")
    older, forked = folder / "older", folder / "forked"
    with local_gateway(folder, settings={"ledger": {"segmentBytes": 1 << 20}}) as gateway:
        assert gateway.worker is not None
        ask_and_wait(gateway, 10)
        assert gateway.worker.stop() == 0
        gateway.start_worker()
        ask_and_wait(gateway, 10)
        gateway.worker.stop(signal.SIGKILL)
        shutil.copytree(gateway.ledger, forked)
        gateway.start_worker()
        ask_and_wait(gateway, 5)
        shutil.copytree(gateway.ledger, older)
        ask_and_wait(gateway, 5)
        gateway.worker.stop(signal.SIGKILL)
        kept = folder / "kept"
        gateway.ledger.rename(kept)
        # The same worker on a copy of what it had found.
        shutil.copytree(forked, gateway.ledger)
        gateway.start_worker()
        ask_and_wait(gateway, 2)
        assert gateway.worker.stop() == 0
        shutil.rmtree(forked)
        gateway.ledger.rename(forked)
        kept.rename(gateway.ledger)
        key = gateway.verifying_key
    secret, _ = _core.generate_key(AUDITOR)
    (folder / "auditor-key").write_text(secret)
    home = folder / "audit"
    home.mkdir()
    shutil.copytree(folder / "ledger", home / "ledger")
    shutil.copy(folder / "auditor-key", home / "auditor-key")
    audit = Audit(home, key)
    assert audit.look("--new-aggregate") == (0, [])
    return audit, older, forked


def last_segment(log: Path) -> Path:
    return max(log.glob("*.seg"))


def change(path: Path, edit: Callable[[bytearray], None]) -> None:
    data = bytearray(path.read_bytes())
    edit(data)
    path.write_bytes(data)


def flip_a_byte(audit: Audit, _older: Path, _forked: Path) -> None:
    def flip(data: bytearray) -> None:
        data[data.index(b'"completion"')] ^= 1

    change(last_segment(audit.logs()[0]), flip)


def delete_a_segment(audit: Audit, _older: Path, _forked: Path) -> None:
    last_segment(audit.logs()[1]).unlink()


def truncate_a_log(audit: Audit, _older: Path, _forked: Path) -> None:
    change(last_segment(audit.logs()[2]), lambda data: data.__delitem__(slice(1000, None)))


def roll_back(audit: Audit, older: Path, _forked: Path) -> None:
    shutil.rmtree(audit.ledger)
    shutil.copytree(older, audit.ledger)


def put_back_an_older_checkpoint(audit: Audit, older: Path, _forked: Path) -> None:
    name = audit.logs()[2].name
    shutil.copy(older / "0" / name / "checkpoint", audit.logs()[2] / "checkpoint")


def plant_a_log(audit: Audit, _older: Path, _forked: Path) -> None:
    shutil.copytree(audit.logs()[2], audit.ledger / "0" / ("7" + "Z" * 25))


def plant_a_log_that_nobody_signed(audit: Audit, _older: Path, _forked: Path) -> None:
    planted = audit.ledger / "0" / ("7" + "Z" * 25)
    shutil.copytree(audit.logs()[2], planted)
    (planted / "checkpoint").unlink()


def remove_a_log(audit: Audit, _older: Path, _forked: Path) -> None:
    shutil.rmtree(audit.logs()[0])


def fork(audit: Audit, _older: Path, forked: Path) -> None:
    newest = max(path for path in (forked / "0").iterdir() if path.is_dir())
    shutil.copytree(newest, audit.ledger / "0" / newest.name)


def swap_shards(audit: Audit, _older: Path, _forked: Path) -> None:
    (audit.ledger / "0").rename(audit.ledger / "1")


def remove_a_checkpoint(audit: Audit, _older: Path, _forked: Path) -> None:
    (audit.logs()[2] / "checkpoint").unlink()


@pytest.mark.parametrize(
    ("attack", "code", "exit_code"),
    [
        (flip_a_byte, "records_damaged", 40),
        (delete_a_segment, "truncated", 30),
        (truncate_a_log, "truncated", 30),
        (roll_back, "rollback", 30),
        (put_back_an_older_checkpoint, "rollback", 30),
        (plant_a_log, "checkpoint_foreign", 30),
        (plant_a_log_that_nobody_signed, "planted_log", 40),
        (remove_a_log, "log_missing", 30),
        (fork, "fork", 30),
        (swap_shards, "shard_missing", 30),
        (remove_a_checkpoint, "checkpoint_missing", 40),
    ],
)
def test_the_auditor_names_what_was_done_to_the_volume(
    history: tuple[Audit, Path, Path],
    tmp_path: Path,
    attack: Callable[[Audit, Path, Path], None],
    code: str,
    exit_code: int,
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    attack(audit, *history[1:])
    ended, findings = audit.look()
    assert code in [finding["code"] for finding in findings], findings
    assert ended >= exit_code
    # It is evidence: another look does not forget it, also when all is put back.
    shutil.rmtree(audit.ledger)
    shutil.copytree(history[0].ledger, audit.ledger)
    assert code in [finding["code"] for finding in audit.look()[1]]


def test_a_state_that_lacks_what_is_held_of_it_is_not_begun_anew(
    history: tuple[Audit, Path, Path], tmp_path: Path
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    held = tmp_path / "held"
    assert audit.look("--held", str(held)) == (0, []), "nothing is held yet"
    shutil.copy(audit.state / "checkpoint", held)
    assert audit.look("--held", str(held)) == (0, [])
    shutil.rmtree(audit.state)
    command = [sys.executable, "-m", "proofgate", *audit.arguments, "--once", "--held", str(held)]
    lost = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert lost.returncode == 1 and "[auditor_state_lost]" in lost.stderr
    held.unlink()
    assert audit.look("--held", str(held)) == (0, []), "it begins where nothing is held"


def test_an_auditor_follows_a_worker_survives_a_kill_and_sees_a_deletion_while_it_runs(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        secret, public = _core.generate_key(AUDITOR)
        (folder / "auditor-key").write_text(secret)
        audit = Audit(folder, gateway.verifying_key)
        ask_and_wait(gateway, 3)
        with following(audit, "--new-aggregate") as (program, url):
            wait_until(lambda: heads(url).get(gateway.origin) == signed(gateway), 30, "the head is accepted")
            before = fetch(f"{url}/checkpoint")
            program.stop(signal.SIGKILL)
        ask_and_wait(gateway, 3)
        with following(audit) as (program, url):
            wait_until(lambda: heads(url).get(gateway.origin) == signed(gateway), 30, "the newer head is accepted")
            size = int(before.split("\n")[1])
            wait_until(lambda: int(fetch(f"{url}/checkpoint").split("\n")[1]) > size, 30, "it is in the aggregate")
            after = fetch(f"{url}/checkpoint")
            proof = json.loads(fetch(f"{url}/consistency?old={size}&new={after.split(chr(10))[1]}"))
            notes = [(str(folder / "one"), before), (str(folder / "two"), after)]
            path = [base64.b64decode(text) for text in proof["hashes"]]
            assert json.loads(_core.consistency(notes[0], notes[1], public, None, path))["old"] == size
            checked = subprocess.run(
                ["go", "run", ".", "tiles", "--vkey", public, "--ledger-vkey", gateway.verifying_key, url],
                cwd=VERIFIER,
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
            wait_until(lambda: 'findings{code="shard_missing"}' in fetch(f"{url}/metrics"), 60, "it is told")
            assert program.stop() == 0
        assert secret.split("+")[-1] not in program.log.read_text()


def test_the_operator_reads_what_a_real_auditor_tells_and_signs(
    history: tuple[Audit, Path, Path], tmp_path: Path
) -> None:
    audit = history[0].copy(tmp_path / "audit")
    key = ledger_key.read((audit.folder / "auditor-key").read_text())
    with following(audit, "--held", str(tmp_path / "held")) as (_, url):
        pod = {"metadata": {"name": "demo-auditor-0"}, "status": {"podIP": "127.0.0.1"}}

        def told() -> AuditReport:
            async def ask() -> AuditReport:
                port = AdminPort(auditor_port=int(url.rsplit(":", 1)[1]))
                try:
                    return await port.audit(pod)
                finally:
                    await port.close()

            return asyncio.run(ask())

        wait_until(lambda: told().last_poll, 30, "it has looked")
        before = told()
        assert before.reachable and not before.stale and before.newest_head > 0
        assert (before.by_code, before.findings, before.left_out) == ((), (), 0)
        assert checkpoint.read_aggregate(before.checkpoint, key.verifying_text).size > 0
        remove_a_checkpoint(audit, *history[1:])
        wait_until(lambda: told().findings, 30, "it tells what it found")
        [finding] = told().findings
        assert (finding.code, finding.verdict) == ("checkpoint_missing", "invalid")
        assert told().by_code == (("checkpoint_missing", 1),) and finding.since > 0
