"""The first minutes without Kubernetes: the printed commands work unchanged, and no key appears in other output."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.ports import free_ports
from e2e.programs import PATIENCE, Program

PROVIDER_KEY = "sk-quickstart-0123456789abcdef"


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def run(command: str, folder: Path) -> str:
    """Runs a printed command in a shell with `proofgate` in its path, and returns its output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        capture_output=True, text=True, timeout=PATIENCE, cwd=folder, env=environment,
    )  # fmt: skip
    assert done.returncode in (0, 10), f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def commands(told: str) -> list[str]:
    """The commands in an output: indented lines, each with its continuation lines."""
    return [line.strip() for line in re.sub(r"\\\n\s+", "", told).splitlines() if line.startswith("  ")]


def follow(told: str, folder: Path) -> None:
    """Sends a request, fetches and verifies its proofs, and shows the status, using only the printed commands."""
    ask, receipt, shown, prove, verify, fsck, status = commands(told[told.index("Send a request") :])
    answer = run(ask, folder)
    assert answer.startswith("HTTP/1.1 200 OK"), answer
    assert "gpt-4o-mini: token1" in answer
    found = re.search(r"^x-request-id: (\S+)", answer, re.MULTILINE | re.IGNORECASE)
    assert found, answer
    assert "receipt.json" in run(receipt.replace("ID", found[1]), folder)
    told = run(shown, folder)
    assert found[1] in told and told.endswith("verified\n")
    assert f"{found[1]}.completion.tlog-proof" in run(prove.replace("ID", found[1]), folder)
    assert run(verify.replace("ID", found[1]), folder).endswith("verified\n")
    assert json.loads(run(f"{fsck} --json", folder))["incarnations"]
    assert "Ready" in run(status, folder)


def test_what_quickstart_prints_starts_a_gateway_asks_it_and_proves_the_answer(
    folder: Path, started: ExitStack
) -> None:
    upstream = Program.start(
        "mock-upstream", folder, ["gateway", "mock-upstream", "--listen", "127.0.0.1:0", "--api-key", PROVIDER_KEY]
    )
    started.callback(upstream.stop, signal.SIGKILL)
    url = upstream.wait_for_line(r"mock-upstream ready: (\S+)")[1]
    listen, admin = (f"127.0.0.1:{port}" for port in free_ports(2))
    made = subprocess.run(
        [
            *(sys.executable, "-m", "proofgate", "quickstart", "--base-url", url, "--key-env", "MY_PROVIDERS_KEY"),
            *("--listen", listen, "--admin-listen", admin, "--directory", "my gateway"),
        ],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "MY_PROVIDERS_KEY": PROVIDER_KEY},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    serve, *_ = commands(made.stdout)
    program, *arguments = shlex.split(serve)
    assert program == "proofgate"
    worker = Program.start("worker", folder, arguments, cwd=folder)
    started.callback(worker.stop, signal.SIGKILL)
    worker.wait_for_line("proofgate ready")
    follow(made.stdout, folder)
    secrets = [
        PROVIDER_KEY, *((folder / "my gateway" / name).read_text().strip() for name in ("tenant-key", "admin-token"))
    ]  # fmt: skip
    signing = (folder / "my gateway" / "signing-key").read_text().strip()
    told = made.stdout + made.stderr + worker.log.read_text() + (folder / "my gateway" / "gateway.yaml").read_text()
    command_line = Path(f"/proc/{worker.process.pid}/cmdline").read_text()
    for secret in (*secrets, signing):
        assert secret not in told
        assert secret not in command_line
    assert worker.stop() == 0
