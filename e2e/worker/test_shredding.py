"""A real worker whose salts are encrypted with keys outside the volume, and copies of its ledger after key deletion."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from proofgate import _core
from proofgate.evidence import prove_from_worker
from proofgate.keeping.shred_key_files import ShredKeyFolder

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until

RETENTION_KEY_NAME = "proofgate.dev/local/keeping"
EXAMPLE = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"


@dataclass(frozen=True)
class Exchange:
    """An exchange of acme, with the bytes of its request and answer."""

    id: str
    request: bytes
    answer: bytes


def run(*arguments: object) -> tuple[int, str]:
    done = proofgate(*arguments)
    return done.returncode, done.stdout + done.stderr


def ask(gateway: LocalGateway, text: str) -> Exchange:
    """One exchange, whose records are covered by a checkpoint."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Authorization": f"Bearer {KEYS['acme']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{gateway.base_url}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        exchange = Exchange(answer.headers["x-request-id"], body, answer.read())
    worker = f"http://{gateway.admin}", exchange.id, 30, gateway.folder / "admin-token"

    def is_signed() -> bool:
        return "completion" in {record.kind for record in prove_from_worker(*worker).records}

    wait_until(is_signed, PATIENCE, "the records are under a checkpoint")
    return exchange


class Shredding:
    """A gateway with a folder of keys, and its retention job."""

    def __init__(self, gateway: LocalGateway) -> None:
        self.gateway = gateway
        self.home = gateway.folder
        self.keys = ShredKeyFolder(self.home / "shred-keys")
        signing, verifying = _core.generate_key(RETENTION_KEY_NAME)
        (self.home / "retention-key").write_text(signing)
        (self.home / "keeping-key").write_text(verifying)
        self.state = ("--state", self.home / "holds")
        self.signing = ("--ledger-key", gateway.verifying_key, "--signing-key", self.home / "retention-key")
        assert run("ledger", "hold", "begin", *self.state, *self.signing)[0] == 0

    def shred(self, *more: object) -> tuple[int, str]:
        where = ("--ledger", self.gateway.ledger, "--shred-keys", self.home / "shred-keys")
        what = ("--tenant", "acme", "--reason", "the contract ended")
        return run("ledger", "shred", *where, *self.state, *self.signing, *what, "--override-minimum", "--yes", *more)

    def check(self, ledger: Path, *more: object) -> tuple[int, list[tuple[int, int]]]:
        """The exit code of fsck, and the erased and unchecked salts of each log."""
        keys = ("--key", self.gateway.verifying_key, "--keeping-key", self.home / "keeping-key")
        code, text = run("ledger", "fsck", ledger, *keys, "--json", *more)
        logs = json.loads(text)["incarnations"]
        return code, [(log["erased_salts"], log["unchecked_salts"]) for log in logs]

    def is_opened(self, ledger: Path, exchange: Exchange, *more: object) -> bool:
        """Whether the ledger's files reveal the request's body. Also checks the exchange's proofs."""
        out = self.home / "out"
        shutil.rmtree(out, ignore_errors=True)
        code, text = run(
            "ledger", "prove", exchange.id, "--ledger", ledger, "--key", self.gateway.verifying_key, "--out", out, *more
        )
        assert code == 0, text
        for proof in out.glob("*.tlog-proof"):
            record = proof.with_suffix(".json")
            command = [sys.executable, str(EXAMPLE), str(proof), "--record", str(record)]
            done = subprocess.run(
                [*command, "--key", self.gateway.verifying_key], capture_output=True, timeout=PATIENCE
            )
            assert done.returncode == 0, done.stderr
        body = self.home / "body"
        body.write_bytes(exchange.request)
        reveal = (
            "ledger",
            "reveal",
            exchange.id,
            "--ledger",
            ledger,
            "--body",
            body,
            "--key",
            self.gateway.verifying_key,
        )
        code, text = run(*reveal, *more)
        assert code == 0 or "[shred_key_missing]" in text, text
        return code == 0

    def receipt(self, exchange: Exchange) -> Path:
        request = urllib.request.Request(
            f"{self.gateway.base_url}/receipts/{exchange.id}", headers={"Authorization": f"Bearer {KEYS['acme']}"}
        )
        path = self.home / f"{exchange.id}.receipt.json"
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            path.write_bytes(answer.read())
        return path

    def verify(self, receipt: Path, exchange: Exchange) -> tuple[int, str]:
        """The verification of a receipt and the bodies by a verifier who has only the verifying key."""
        bodies = {"request": self.home / "request", "response": self.home / "response"}
        bodies["request"].write_bytes(exchange.request)
        bodies["response"].write_bytes(exchange.answer)
        named = (f"--{name}={path}" for name, path in bodies.items())
        return run("verify", receipt, "--key", self.gateway.verifying_key, *named)

    def reload(self) -> None:
        """Makes the worker load the folder's content, unless it already has."""
        answer = json.loads(self.gateway.admin_text("/reload", "POST", self.gateway.admin_token))
        assert answer["result"] in {"applied", "unchanged"}


@pytest.fixture
def shredding(tmp_path: Path) -> Iterator[Shredding]:
    folder = tmp_path / "gateway"
    keys = folder / "shred-keys"
    keys.mkdir(parents=True)
    assert run("ledger", "shred-keys", "rotate", keys, *KEYS)[0] == 0
    with local_gateway(folder, settings={"ledger": {"shredKeysDirectory": str(keys)}}) as gateway:
        yield Shredding(gateway)


def test_a_destroyed_key_closes_the_ledger_and_every_copy_of_it_and_all_else_verifies(
    shredding: Shredding, tmp_path: Path
) -> None:
    gateway, keys = shredding.gateway, shredding.home / "shred-keys"
    old = ask(gateway, "before the rotation")
    [first] = shredding.keys.ids()["acme"]
    second = shredding.keys.rotate("acme")
    shredding.reload()
    new = ask(gateway, "after the rotation")
    admitted = {record["id"]: record["shred_key"] for record in gateway.records() if record["kind"] == "admission"}
    assert admitted == {old.id: first, new.id: second}
    # A verifier with the receipt and the verifying key needs no shred key.
    receipt = shredding.receipt(old).rename(tmp_path / "receipt.json")
    code, text = shredding.verify(receipt, old)
    assert code == 0, text
    copy = tmp_path / "backup"
    shutil.copytree(gateway.ledger, copy)
    for exchange in (old, new):
        assert shredding.is_opened(copy, exchange, "--shred-keys", keys)
        assert not shredding.is_opened(copy, exchange)
    checked = shredding.check(gateway.ledger, "--shred-keys", keys)
    assert [salts for log in checked[1] for salts in log] == [0, 0]

    # A hold protects the key.
    assert run("ledger", "hold", "add", *shredding.state, "--id", old.id, "--reason", "a case")[0] == 0
    code, text = shredding.shred("--key", first)
    assert code == 1 and "held" in text
    assert shredding.keys.ids()["acme"] == [second, first]
    assert run("ledger", "hold", "release", "1", *shredding.state, "--reason", "closed")[0] == 0

    code, text = shredding.shred("--key", first)
    assert code == 0, text
    assert shredding.keys.ids()["acme"] == [second]
    shredding.reload()
    for ledger in (gateway.ledger, copy):
        assert not shredding.is_opened(ledger, old, "--shred-keys", keys)
        assert shredding.is_opened(ledger, new, "--shred-keys", keys)
    told = json.loads(shredding.receipt(old).read_text())["records"]
    assert {record["shred_key_missing"] for record in told} == {first}
    assert all("\nextra " not in record["proof"] for record in told)
    code, text = run("verify", shredding.receipt(old), "--key", gateway.verifying_key)
    assert code == 0, text
    code, text = shredding.verify(receipt, old)
    assert code == 0, "what was handed out stays what it was"
    assert shredding.check(gateway.ledger, "--shred-keys", keys)[1] == [(1, 0)]

    # All keys are deleted, and the tenant continues with a new one.
    code, text = shredding.shred()
    assert code == 0, text
    [third] = shredding.keys.ids()["acme"]
    assert third not in (first, second)
    shredding.reload()
    last = ask(gateway, "under the third")
    assert gateway.worker is not None
    assert gateway.worker.stop() == 0
    code, salts = shredding.check(gateway.ledger, "--shred-keys", keys)
    assert (code, salts) == (0, [(2, 0)])
    assert not shredding.is_opened(copy, new, "--shred-keys", keys)
    assert shredding.is_opened(gateway.ledger, last, "--shred-keys", keys)


def test_a_tenant_without_a_key_is_refused_at_the_start_and_at_a_reload(shredding: Shredding) -> None:
    gateway, file = shredding.gateway, shredding.home / "shred-keys" / "globex"
    content = file.read_text()
    file.unlink()
    with pytest.raises(urllib.error.HTTPError) as refused:
        shredding.reload()
    problems = json.load(refused.value)["problems"]
    assert [problem["code"] for problem in problems] == ["config_no_shred_key"]
    ask(gateway, "the configuration before is in force")
    code, text = run("validate", gateway.folder / "gateway.yaml")
    assert code == 2 and "globex has no shred key" in text
    file.write_text("sk-secret\n")
    code, text = run("validate", gateway.folder / "gateway.yaml")
    assert code == 2 and "strict base64" in text and "sk-secret" not in text
    file.write_text(content)
    shredding.reload()
