"""The verifier of examples/verify, based on docs/reference/ledger-format.md, agrees with the command line."""

from __future__ import annotations

import base64
import copy
import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, local_gateway
from e2e.programs import PATIENCE

VERIFY = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"


class Exchange:
    """One exchange of a worker, and its evidence as a verifier gets it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "evidence"
        with local_gateway(folder) as gateway:
            self.request = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
            asked = urllib.request.Request(
                f"{gateway.base_url}/chat/completions",
                self.request,
                {"Authorization": f"Bearer {KEYS['acme']}", "Content-Type": "application/json"},
            )
            for _ in range(5):  # more than one leaf, so that paths contain hashes
                with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                    self.id, self.response = answer.headers["x-request-id"], answer.read()
            self.key = gateway.verifying_key
            assert gateway.worker is not None and gateway.worker.stop() == 0
        assert proofgate("ledger", "prove", self.id, "--ledger", gateway.ledger, "--out", self.folder).returncode == 0

    def record(self, kind: str) -> Path:
        return self.folder / f"{self.id}.{kind}.json"

    def proof(self, kind: str) -> Path:
        return self.folder / f"{self.id}.{kind}.tlog-proof"

    def verify(self, kind: str, body: bytes | None = None, key: str | None = None) -> str:
        """The second verifier's output, including its error message."""
        arguments = [str(self.proof(kind)), "--record", str(self.record(kind)), "--key", key or self.key]
        if body is not None:
            file = self.folder / "body"
            file.write_bytes(body)
            arguments += ["--body", str(file)]
        # The interpreter is isolated, so that only the standard library is available.
        command = [sys.executable, "-I", "-S", str(VERIFY), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode == 0) == done.stdout.startswith("verified"), done
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Exchange:
    return Exchange(tmp_path_factory.mktemp("served"))


@pytest.fixture
def exchange(served: Exchange, tmp_path: Path) -> Exchange:
    """The exchange with a copy of its evidence, which a test may change."""
    own = copy.copy(served)
    own.folder = shutil.copytree(served.folder, tmp_path / "evidence")
    return own


def test_both_records_and_both_bodies_verify_by_the_second_implementation(exchange: Exchange) -> None:
    for kind, field, body in (
        ("admission", "request", exchange.request),
        ("completion", "response", exchange.response),
    ):
        told = exchange.verify(kind, body)
        assert f"is this {kind}" in told
        assert f"is its {field}, byte for byte" in told
        assert f"not the {field} that was recorded" in exchange.verify(kind, body + b" ")


def _with(change: Callable[[str], str]) -> Callable[[Path], None]:
    return lambda file: (file.write_text(change(file.read_text())), None)[1]


def test_what_is_changed_is_refused_and_the_first_implementation_agrees(exchange: Exchange) -> None:
    proof, record = exchange.proof("completion"), exchange.record("completion")
    originals = {file: file.read_bytes() for file in (proof, record)}
    lines = proof.read_text().split("\n")
    index = next(number for number, line in enumerate(lines) if line.startswith("index "))

    def flip(text: str) -> str:
        data = bytearray(base64.b64decode(text))
        data[-1] ^= 1
        return base64.b64encode(data).decode()

    def line(number: int, to: Callable[[str], str]) -> Callable[[str], str]:
        return lambda text: "\n".join(to(part) if at == number else part for at, part in enumerate(text.split("\n")))

    blank = lines.index("")
    signature = len(lines) - 2
    name, _, value = lines[signature].rpartition(" ")
    changes: list[tuple[Path, Callable[[Path], None], str]] = [
        (record, _with(lambda text: text.replace('"status":200', '"status":201')), "do not lead to the signed root"),
        (proof, _with(line(index + 1, flip)), "do not lead to the signed root"),
        (proof, _with(line(index, lambda text: f"index {int(text.removeprefix('index ')) - 1}")), ""),
        (proof, _with(lambda text: text.replace(f"{lines[index + 1]}\n", "", 1)), ""),
        (proof, _with(line(blank + 2, lambda text: str(int(text) + 1))), "the signature is not valid for this key"),
        (proof, _with(line(signature, lambda _: f"{name} {flip(value)}")), ""),
    ]
    for file, change, reason in changes:
        change(file)
        told = exchange.verify("completion")
        assert not told.startswith("verified") and reason in told, told
        first = proofgate("verify", proof, "--record", record, "--key", exchange.key)
        assert first.returncode != 0, "the first implementation takes it"
        for kept, data in originals.items():
            kept.write_bytes(data)
    assert exchange.verify("completion").startswith("verified")


def test_another_ledgers_key_and_a_proof_without_its_salt_open_nothing(exchange: Exchange, tmp_path: Path) -> None:
    assert proofgate("keys", "generate", exchange.key.split("+")[0], "--out", tmp_path / "keys").returncode == 0
    stranger = (tmp_path / "keys" / "verifying-key").read_text().strip()
    assert "no key of the ledger signed" in exchange.verify("completion", key=stranger)
    proof = exchange.proof("completion")
    text = proof.read_text()
    proof.write_text("\n".join(line for line in text.split("\n") if not line.startswith("extra ")))
    assert exchange.verify("completion").startswith("verified")
    assert "the proof has no salt" in exchange.verify("completion", exchange.response)
