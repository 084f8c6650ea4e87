"""A worker changes to another key of its ledger; the oldest and the newest key both verify everything."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import pytest
from proofgate import _core

from e2e import go_binaries
from e2e.auditing import AUDITOR, Audit, fetch, following
from e2e.backup import copy_volume
from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until

VERIFY = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"
AUTHORIZED = {"Authorization": f"Bearer {KEYS['acme']}", "Content-Type": "application/json"}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return proofgate(*arguments)


def ask(gateway: LocalGateway) -> str:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    asked = urllib.request.Request(f"{gateway.base_url}/chat/completions", body, AUTHORIZED)
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        answer.read()
        return str(answer.headers["x-request-id"])


def receipt(gateway: LocalGateway, exchange: str, file: Path) -> Path:
    """The receipt of an exchange, once a checkpoint covers it."""

    def fetched() -> bool:
        asked = urllib.request.Request(f"{gateway.base_url}/receipts/{exchange}", headers=AUTHORIZED)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                file.write_bytes(answer.read())
        except HTTPError as error:
            assert error.code in (404, 409), error.read()
            return False
        return True

    wait_until(fetched, PATIENCE, "the receipt is there")
    return file


@dataclass
class Rotated:
    """A ledger with logs of two keys, and a receipt of one exchange under each key, both fetched under the new key."""

    folder: Path
    ledger: Path
    old: str
    new: str
    exchanges: tuple[str, str]

    @property
    def receipts(self) -> list[Path]:
        return [self.folder / "before", self.folder / "after"]

    @property
    def statements(self) -> str:
        return (self.folder / "new" / "key-successions").read_text()


def rotate(gateway: LocalGateway) -> Path:
    """Creates the next key, and writes it together with the current key into the worker's key file."""
    made = gateway.folder / "new"
    done = run("keys", "rotate", gateway.folder / "signing-key", "--out", made)
    assert done.returncode == 0, done.stderr
    for secret in (gateway.folder / "signing-key", made / "signing-key"):
        assert secret.read_text().split("\n")[0].split("+", 4)[4] not in done.stdout
    (gateway.folder / "signing-key").write_text((made / "signing-key-with-former").read_text())
    return made


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> Rotated:
    folder = tmp_path_factory.mktemp("rotated")
    with local_gateway(folder) as gateway:
        old, before = gateway.verifying_key, ask(gateway)
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGKILL)
        made = rotate(gateway)
        gateway.start_worker()
        after = ask(gateway)
        receipt(gateway, before, folder / "before")
        receipt(gateway, after, folder / "after")
        new = gateway.verifying_key
        assert new != old and gateway.worker.stop() == 0
        # The key file no longer contains the old key.
        (folder / "signing-key").write_text((made / "signing-key").read_text())
        gateway.start_worker()
        assert gateway.verifying_key == new
        receipt(gateway, before, folder / "before")
        assert gateway.worker.stop() == 0
        return Rotated(folder, gateway.ledger, old, new, (before, after))


def test_the_ledger_verifies_under_the_oldest_and_under_the_newest_key(rotated: Rotated) -> None:
    for key in (rotated.old, rotated.new):
        done = run("ledger", "fsck", rotated.ledger, "--key", key, "--json")
        report = json.loads(done.stdout)
        assert (done.returncode, report["findings"]) == (0, []), report
        assert [known["vkey"] for known in report["keys"]] == [rotated.old, rotated.new]
        assert [log["key"] for log in report["incarnations"]] == [rotated.old, rotated.new, rotated.new]


def test_a_copy_of_the_volume_verifies_under_the_oldest_and_under_the_newest_key(rotated: Rotated) -> None:
    copy = rotated.folder / "copy"
    copy_volume(rotated.ledger, copy)
    for key in (rotated.old, rotated.new):
        done = run("ledger", "fsck", copy, "--key", key)
        assert done.returncode == 0, done.stdout


def test_receipts_from_before_and_after_verify_under_both_keys_by_both_implementations(rotated: Rotated) -> None:
    for file in rotated.receipts:
        for key in (rotated.old, rotated.new):
            done = run("verify", file, "--key", key)
            assert done.returncode == 0, done.stderr
            second = subprocess.run(
                [sys.executable, "-I", "-S", str(VERIFY), str(file), "--key", key], capture_output=True, text=True
            )
            assert second.returncode == 0, second.stderr
    # Without the succession statements, only the statements of the key itself verify.
    document = json.loads(rotated.receipts[1].read_text())
    bare = rotated.folder / "bare"
    bare.write_text(json.dumps({name: value for name, value in document.items() if name != "key_successions"}))
    assert run("verify", bare, "--key", rotated.old).returncode == 41
    assert run("verify", bare, "--key", rotated.new).returncode == 0
    known = rotated.folder / "known"
    known.write_text(f"{rotated.old}\n\n{rotated.statements}")
    assert run("verify", bare, "--key", known).returncode == 0


def test_a_statement_of_one_signature_in_a_receipt_is_refused_by_both(rotated: Rotated) -> None:
    document = json.loads(rotated.receipts[1].read_text())
    [statement] = document["key_successions"]
    lines = statement.splitlines(keepends=True)
    forged = rotated.folder / "forged"
    for missing in (6, 7):
        document["key_successions"] = ["".join(line for at, line in enumerate(lines) if at != missing)]
        forged.write_text(json.dumps(document))
        assert run("verify", forged, "--key", rotated.old).returncode == 41
        second = [sys.executable, "-I", "-S", str(VERIFY), str(forged), "--key", rotated.old]
        assert subprocess.run(second, capture_output=True, timeout=PATIENCE).returncode != 0


def test_the_go_verifier_follows_the_line(rotated: Rotated) -> None:
    out = rotated.folder / "evidence"
    for exchange in rotated.exchanges:
        done = run("ledger", "prove", exchange, "--ledger", rotated.ledger, "--key", rotated.old, "--out", out)
        assert done.returncode == 0, done.stderr
        proof, record = out / f"{exchange}.admission.tlog-proof", out / f"{exchange}.admission.json"
        for key in (rotated.old, rotated.new):
            known = f"{key}\n\n{rotated.statements}"
            command = [str(go_binaries.verifier()), "proof", "--vkey", known, "--record", str(record), str(proof)]
            checked = subprocess.run(command, capture_output=True, text=True, timeout=300)
            assert checked.returncode == 0, checked.stderr


def test_an_auditor_goes_on_under_either_key_and_under_a_new_one_of_its_own(rotated: Rotated) -> None:
    home = rotated.folder / "audit"
    home.mkdir()
    (home / "ledger").symlink_to(rotated.ledger)
    secret, _ = _core.generate_key(AUDITOR)
    (home / "auditor-key").write_text(secret)
    (home / "keeping-key").write_text(_core.generate_key("proofgate.dev/local/keeping")[1])
    assert Audit(home, rotated.old).look("--new-aggregate") == (0, [])
    assert Audit(home, rotated.new).look() == (0, [])
    assert run("keys", "rotate", home / "auditor-key", "--out", home / "new").returncode == 0
    (home / "auditor-key").write_text((home / "new" / "signing-key").read_text())
    assert Audit(home, rotated.new).look() == (0, [])


def test_a_mirror_verifies_under_either_key_and_takes_no_statement_that_is_none(
    rotated: Rotated, tmp_path: Path
) -> None:
    shutil.copytree(rotated.ledger, tmp_path / "ledger")
    (tmp_path / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
    statements = tmp_path / "ledger" / "key-successions"
    [true] = statements.iterdir()
    # A succession between two keys of an attacker, and one with a single key's signature.
    name = rotated.old.split("+")[0]
    his = _core.sign_key_succession(_core.generate_key(name)[0], _core.generate_key(name)[0], 1, 1 << 50)
    half = "\n".join(true.read_text().split("\n")[:-2]) + "\n"
    for note in (his, half):
        (statements / f"{hashlib.sha256(note.encode()).hexdigest()[:32]}.note").write_text(note)
    (tmp_path / "mirror").mkdir()
    with following(Audit(tmp_path, rotated.old), "--new-aggregate", "--mirror", str(tmp_path / "mirror")) as (_, url):
        wait_until(lambda: "mirror_lag_seconds{" in fetch(f"{url}/metrics"), PATIENCE, "it mirrors")
        copied = tmp_path / "mirror" / "ledger"
        wait_until(lambda: len(list(copied.glob("0/*/checkpoint"))) == 3, PATIENCE, "the logs are mirrored")
        wait_until(lambda: (copied / "key-successions" / true.name).exists(), PATIENCE, "and the statement")
        assert json.loads(fetch(f"{url}/explorer/keys"))["statements"] == [true.read_text()]

        def found() -> set[str]:
            return {finding["code"] for finding in json.loads(fetch(f"{url}/findings"))["findings"]}

        wait_until(lambda: found() == {"key_succession_refused"}, PATIENCE, "the others are refused, and nothing else")
    assert [path.name for path in (copied / "key-successions").iterdir()] == [true.name]
    assert run("audit", "fetch", tmp_path / "mirror", tmp_path / "back").returncode == 0
    for key in (rotated.old, rotated.new):
        done = run("ledger", "fsck", tmp_path / "back", "--mirror", "--key", key, "--json")
        assert done.returncode == 0, done.stdout
        assert [known["vkey"] for known in json.loads(done.stdout)["keys"]] == [rotated.old, rotated.new]


def test_an_index_goes_on_under_another_key_and_its_exports_verify_under_either(
    rotated: Rotated, tmp_path: Path
) -> None:
    begin = [
        "audit",
        "index",
        "--ledger",
        rotated.ledger,
        "--index",
        tmp_path / "index",
        "--same-volume",
        "--ledger-key",
    ]
    assert not run(*begin, rotated.old).stdout.startswith("0 records")
    again = run(*begin, rotated.new)
    assert (again.returncode, again.stdout) == (0, f"0 records read into {tmp_path / 'index'}\n"), again.stderr
    other = _core.generate_key(rotated.old.split("+")[0])[1]
    assert "[index_foreign]" in run(*begin, other).stderr
    out = tmp_path / "out"
    done = run("audit", "export", "--index", tmp_path / "index", "--ledger", rotated.ledger, "--out", out)
    assert done.returncode == 0, done.stderr
    for key in (rotated.old, rotated.new):
        assert run("audit", "verify-export", out, "--key", key).returncode == 0
    manifest = json.loads((out / "manifest.json").read_text())
    [statement] = manifest["key_successions"]
    manifest["key_successions"] = ["\n".join(statement.split("\n")[:-2]) + "\n"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert run("audit", "verify-export", out, "--key", rotated.new).returncode == 41


def test_a_worker_with_the_old_key_does_not_start_behind_the_new_one(rotated: Rotated, tmp_path: Path) -> None:
    gateway = LocalGateway(tmp_path)
    gateway.start_upstream()
    try:
        gateway.write_configuration()
        gateway.ledger.rmdir()
        gateway.ledger.symlink_to(rotated.ledger)
        secrets = (rotated.folder / "new" / "signing-key-with-former").read_text().split("\n")
        (tmp_path / "signing-key").write_text(secrets[1])
        with pytest.raises(RuntimeError, match=r"not signed by|signing key"):
            gateway.start_worker(attempts=1)
    finally:
        gateway.stop()
