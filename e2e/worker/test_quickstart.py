"""The first minutes without Kubernetes: what is printed works as it stands, and no key is seen anywhere else."""

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
from dataclasses import replace
from pathlib import Path

import pytest
from proofgate.quickstart import CLAUDE, Setup, create

from e2e.ports import free_ports
from e2e.programs import PATIENCE, Program
from e2e.run import OVERLOADED, start

PROVIDER_KEY = "sk-quickstart-0123456789abcdef"
ANYWHERE = Setup(listen="127.0.0.1:0", admin_listen="127.0.0.1:0")
#: What a developer may have exported is not the tests' to use.
NO_KEYS = {name: value for name, value in os.environ.items() if name not in {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}}


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def run(command: str, folder: Path) -> str:
    """Runs a printed command in a shell that finds `proofgate`, and returns what it printed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        capture_output=True, text=True, timeout=PATIENCE, cwd=folder, env=environment,
    )  # fmt: skip
    assert done.returncode in (0, 10), f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def commands(told: str) -> list[str]:
    """The commands in what was told: indented lines, each with those that it is continued on."""
    return [line.strip() for line in re.sub(r"\\\n\s+", "", told).splitlines() if line.startswith("  ")]


def follow(told: str, folder: Path) -> None:
    """Asks, proves, verifies and looks, by the commands that were printed and nothing else."""
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
        "mock-upstream", folder, ["mock-upstream", "--listen", "127.0.0.1:0", "--api-key", PROVIDER_KEY]
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


def test_make_run_needs_no_key_and_its_ledger_goes_on_with_the_next_run(folder: Path) -> None:
    for _ in range(2):
        with ExitStack() as stack:
            worker, told = start(folder / "run", NO_KEYS, stack, ANYWHERE)
            follow(told, folder)
            assert worker.stop() == 0
    assert len(list((folder / "run" / "ledger" / "0").glob("*/checkpoint"))) == 2


def test_make_run_with_a_key_asks_the_real_provider_and_shows_the_key_to_nobody_else(
    folder: Path, started: ExitStack
) -> None:
    environment = {**NO_KEYS, "OPENAI_API_KEY": PROVIDER_KEY}
    worker, told = start(folder / "run", environment, started, ANYWHERE)
    assert "https://api.openai.com/v1" in told
    configuration = (folder / "run" / "gateway.yaml").read_text()
    assert 'baseURL: "https://api.openai.com/v1"' in configuration
    assert (folder / "run" / "provider-key").read_text() == f"{PROVIDER_KEY}\n"
    assert not (folder / "run" / "mock-upstream.log").exists()
    process = Path(f"/proc/{worker.process.pid}")
    for place in (
        told,
        configuration,
        worker.log.read_text(),
        *((process / n).read_text() for n in ("cmdline", "environ")),
    ):
        assert PROVIDER_KEY not in place


def test_make_run_without_a_key_shows_the_second_provider_answer_for_the_first(
    folder: Path, started: ExitStack
) -> None:
    _, told = start(folder / "run", NO_KEYS, started, ANYWHERE)
    ask = commands(told[told.index("Send a request") :])[0]
    answer = run(ask.replace("gpt-4o-mini", OVERLOADED), folder)
    assert answer.startswith("HTTP/1.1 200 OK"), answer
    assert re.search(r"^x-proofgate-attempts: 2\b", answer, re.MULTILINE), answer
    assert f"{CLAUDE}: token1" in answer


def test_make_run_with_both_keys_falls_back_on_the_second_and_shows_neither(folder: Path, started: ExitStack) -> None:
    second = "sk-ant-0123456789abcdef"
    environment = {**NO_KEYS, "OPENAI_API_KEY": PROVIDER_KEY, "ANTHROPIC_API_KEY": second}
    worker, told = start(folder / "run", environment, started, ANYWHERE)
    assert "https://api.anthropic.com/v1" in told
    configuration = (folder / "run" / "gateway.yaml").read_text()
    assert "fallbacks: [{provider: second, upstreamModel:" in configuration
    assert (folder / "run" / "second-key").read_text() == f"{second}\n"
    environ = Path(f"/proc/{worker.process.pid}/environ").read_text()
    for place in (told, configuration, worker.log.read_text(), environ):
        assert second not in place and PROVIDER_KEY not in place


def test_a_run_without_the_key_takes_it_away_again(folder: Path, started: ExitStack) -> None:
    create(folder / "run", replace(ANYWHERE, provider_key=PROVIDER_KEY))
    start(folder / "run", NO_KEYS, started, ANYWHERE)
    assert not (folder / "run" / "provider-key").exists()
