"""A wrong verifying key is reported as another key, not as a changed log; a changed log is reported as changed."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from proofgate import _core

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, local_gateway
from e2e.programs import PATIENCE

CHANGED = "the log was changed after it was written"


@dataclass
class Ledger:
    """A ledger with one exchange."""

    folder: Path
    key: str
    id: str

    @property
    def name(self) -> str:
        return self.key.partition("+")[0]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    folder = tmp_path_factory.mktemp("another")
    with local_gateway(folder) as gateway:
        body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
        headers = {"Authorization": f"Bearer {KEYS['acme']}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{gateway.base_url}/chat/completions", body, headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            own_id = answer.headers["x-request-id"]
        key = gateway.verifying_key
        assert gateway.worker is not None and gateway.worker.stop() == 0
        yield Ledger(folder / "ledger", key, own_id)


def run(*arguments: object) -> tuple[int, str]:
    done = proofgate(*arguments)
    return done.returncode, done.stdout + done.stderr


def named(key: str) -> str:
    """The name and the key id of a vkey."""
    return "+".join(key.split("+")[:2])


@pytest.mark.parametrize("same_name", [True, False])
def test_a_wrong_key_is_another_key(ledger: Ledger, tmp_path: Path, same_name: bool) -> None:
    wrong = _core.generate_key(ledger.name if same_name else "proofgate.dev/another")[1]
    code, told = run("ledger", "fsck", ledger.folder, "--key", wrong)
    assert (code, CHANGED in told) == (41, False), told
    assert told.splitlines()[-1].startswith(f"another key: the logs name {named(ledger.key)} as their key, but")
    proofs = tmp_path / "proofs"
    assert run("ledger", "prove", ledger.id, "--ledger", ledger.folder, "--key", ledger.key, "--out", proofs)[0] == 0
    record = proofs / f"{ledger.id}.admission.json"
    commands = (
        ("ledger", "prove", ledger.id, "--ledger", ledger.folder, "--key", wrong, "--out", tmp_path / "none"),
        ("verify", record.with_suffix(".tlog-proof"), "--record", record, "--key", wrong),
        ("ledger", "replay", ledger.folder, "--key", wrong),
    )
    for command in commands:
        code, told = run(*command)
        assert code == 41, (command[:2], told)
        assert "another key: the given key made none of the signatures" in told, (command[:2], told)


def test_a_changed_log_is_told_as_changed_under_its_key(ledger: Ledger, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ledger.folder, copy)
    [segment, *_] = sorted(copy.glob("0/*/*.seg"))
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b'"tenant":"acme"', b'"tenant":"evil"', 1))
    code, told = run("ledger", "fsck", copy, "--key", ledger.key)
    assert code in (30, 40), told
    assert "another key" not in told
    # Under a key that signed nothing in it, the log is not reported as verified. The wrong checksum may be damage or
    # the end of the written data; this depends on the sync state that a later record contains.
    code, told = run("ledger", "fsck", copy, "--key", _core.generate_key(ledger.name)[1])
    assert code in (40, 41), told


def test_an_auditor_and_an_index_do_not_begin_under_a_wrong_key(ledger: Ledger, tmp_path: Path) -> None:
    wrong = _core.generate_key(ledger.name)[1]
    signing = tmp_path / "signing-key"
    signing.write_text(_core.generate_key("audit.example")[0])
    state, index = tmp_path / "state", tmp_path / "index"
    audit = ("--ledger", ledger.folder, "--state", state, "--signing-key", signing, "--new-aggregate", "--once")
    code, told = run("audit", "run", *audit, "--ledger-key", wrong)
    assert (code, CHANGED in told) == (41, False), told
    assert "another key: the given key made none of the signatures" in told
    # No state was created, so the auditor can start with the right key.
    assert not state.exists()
    assert run("audit", "run", *audit, "--ledger-key", ledger.key)[0] == 0
    built = ("--ledger", ledger.folder, "--index", index, "--same-volume")
    assert run("audit", "index", *built, "--ledger-key", wrong)[0] == 41
