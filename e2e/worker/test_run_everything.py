"""One command starts everything: gateway, auditor with index and explorer, a single-use sign-in, and traffic."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from proofgate.local.log_file import MAX_LOG_BYTES

from e2e.browser import Browser, browser
from e2e.commands import proofgate
from e2e.everything import NO_KEYS, Everything, everything, start, token_of
from e2e.evidence import records
from e2e.programs import PATIENCE, wait_until

PROVIDER_KEY = "sk-quickstart-0123456789abcdef"
#: Files that are not secret.
PUBLIC = {"verifying-key"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    """A demonstration for the tests that do not change it."""
    with everything(tmp_path_factory.mktemp("demo") / "run", "--demo") as demo:
        yield demo


@contextmanager
def signed_in(demo: Everything) -> Iterator[httpx.Client]:
    """A browser that is signed in with a new link."""
    told = proofgate("sign-in-link", "--directory", demo.folder).stdout
    with httpx.Client(timeout=PATIENCE) as client:
        demo.sign_in(client, token_of(told)).raise_for_status()
        yield client


def overview(demo: Everything, client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{demo.explorer}/v1/overview").raise_for_status().json()
    return found


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def everything_written(demo: Everything) -> Iterator[tuple[Path, bytes]]:
    for path in demo.folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


def test_a_link_signs_in_once_and_no_file_has_its_token(demo: Everything) -> None:
    with httpx.Client(timeout=PATIENCE) as client:
        assert client.get(f"{demo.explorer}/v1/overview").status_code == 401
        answer = demo.sign_in(client)
        assert (answer.status_code, answer.json()) == (200, {"name": "link:quickstart", "tenant": None})
        assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=strict" in answer.headers["set-cookie"]
        assert overview(demo, client)["totals"] is not None
    with httpx.Client(timeout=PATIENCE) as other:
        refused = demo.sign_in(other)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "link_not_valid")
        assert other.get(f"{demo.explorer}/v1/overview").status_code == 401
    token = demo.token.encode()
    assert [
        str(path) for path, content in everything_written(demo) if token in content or token in str(path).encode()
    ] == []
    # The command's own output belongs to the terminal.
    access = b"".join(path.read_bytes() for path in (demo.folder / "auditor" / "state").glob("access-*.jsonl"))
    assert b"link:quickstart" in access and b"link_not_valid" in access


def test_all_secrets_are_for_their_owner_alone(demo: Everything) -> None:
    for path in demo.folder.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            # The ledger and the auditor set their own modes, in a folder that only its owner can enter.
            continue
        if {"key", "token", "readers"} & set(path.name.replace(".", "-").split("-")) and path.name not in PUBLIC:
            assert mode == 0o600, path
    assert stat.S_IMODE(demo.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((demo.folder / "auditor").stat().st_mode) == 0o700


def test_demo_traffic_shows_in_every_chart_of_the_overview(demo: Everything) -> None:
    done = proofgate("demo-traffic", "--directory", demo.folder, "--requests", 60, "--seed", 7)
    assert done.returncode == 0, done.stderr
    assert "60 of 60 requests sent" in done.stdout and "--seed 7" in done.stdout
    with signed_in(demo) as client:
        wait_until(lambda: overview(demo, client)["totals"]["exchanges"] >= 59, PATIENCE, "the index has all of it")
        told = overview(demo, client)
    totals = told["totals"]
    for figure in ("denied", "redacted", "flagged", "refused", "cost_nanodollars"):
        assert totals[figure] > 0, (figure, totals)
    assert {one["tenant"] for one in told["tenants"]} >= {"acme", "globex", "initech"}
    assert {one["model"] for one in told["models"]} >= {"gpt-4o-mini", "gpt-4o", "text-embedding-3-small"}
    assert told["rules"]
    sessions = {record.get("attribution", {}).get("session") for record in records(demo.folder / "ledger")}
    assert any(session and session.startswith("demo-") for session in sessions)


def test_the_page_of_the_link_signs_in_and_keeps_no_token(demo: Everything, tmp_path: Path) -> None:
    url = proofgate("sign-in-link", "--directory", demo.folder).stdout.strip()
    with browser(tmp_path / "window") as window:
        assert_signed_in(window, url)
        assert window.complaints() == []
        window.run("sessionStorage.clear()")
        window.open(url)
        assert "This link was used before" in window.wait_for("This link was used before")
        assert window.run("return location.hash") == "#/"


def assert_signed_in(window: Browser, url: str) -> None:
    window.open(url)
    window.wait_for("Signed in as link:quickstart")
    assert window.run("return location.href").endswith("/#/")
    kept = window.run("return JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert token_of(url) not in kept


def test_a_second_start_of_the_folder_and_a_port_that_is_taken_are_told_with_what_to_do(
    demo: Everything, tmp_path: Path
) -> None:
    second = start(demo.folder, "--demo", logs=tmp_path)
    assert second.process.wait(PATIENCE) == 2
    assert "is already started" in second.printed
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for option in ("--listen", "--admin-listen", "--explorer-listen"):
            (tmp_path / option).mkdir()
            other = start(tmp_path / option / "run", "--demo", option, address, logs=tmp_path / option)
            assert other.process.wait(PATIENCE) == 2
            assert f"{address} cannot be bound" in other.printed and f"another address with {option}" in other.printed
            assert option == "--explorer-listen" or not (tmp_path / option / "run").exists()


def test_ctrl_c_seals_and_the_next_start_goes_on_with_the_same_ledger_and_audit(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for _ in range(2):
        with everything(folder, "--demo") as demo:
            assert "Answers are simulated" in demo.told
            assert proofgate("demo-traffic", "--directory", folder, "--requests", 12).returncode == 0
            assert demo.program.stop(signal.SIGINT) == 0
            assert "sealed" in demo.program.printed
        assert not (folder / "running.json").exists()
        assert proofgate("sign-in-link", "--directory", folder).returncode == 2
    logs = list((folder / "ledger" / "0").glob("*/checkpoint"))
    assert len(logs) == 2
    checked = proofgate("ledger", "fsck", folder / "ledger", "--key", folder / "verifying-key")
    assert checked.returncode == 0, checked.stdout
    with everything(folder) as demo, signed_in(demo) as client:
        wait_until(lambda: overview(demo, client)["totals"]["exchanges"] >= 20, PATIENCE, "both runs are in the index")
        findings = client.get(f"{demo.explorer}/findings").json()["findings"]
        assert findings == []


@pytest.mark.parametrize("child", ["serve", "audit", "mock-upstream"])
def test_a_child_that_is_killed_ends_all_with_its_name(tmp_path: Path, child: str) -> None:
    with everything(tmp_path / "run", "--demo") as demo:
        others = [demo.child(name) for name in ("serve", "audit", "mock-upstream") if name != child]
        os.kill(demo.child(child), signal.SIGKILL)
        assert demo.program.process.wait(PATIENCE) == 1
        name = {"serve": "worker", "audit": "auditor", "mock-upstream": "provider"}[child]
        assert f"the {name} was ended by SIGKILL" in demo.program.printed
        assert not any(map(is_alive, others))
        sealed = child != "serve"
        assert ("sealed" in demo.program.printed.split("was ended by SIGKILL")[1]) == sealed


def test_children_drain_when_the_command_itself_is_killed(tmp_path: Path) -> None:
    with everything(tmp_path / "run", "--demo") as demo:
        children = [demo.child(name) for name in ("serve", "audit", "mock-upstream")]
        demo.program.process.kill()
        demo.program.process.wait(PATIENCE)
        wait_until(lambda: not any(map(is_alive, children)), PATIENCE, "the children have ended")
    log = (tmp_path / "run" / "logs" / "worker.log").read_text()
    assert "sealed: " in log


def test_a_provider_of_ones_own_gets_its_key_from_a_file_and_no_child_from_the_environment(tmp_path: Path) -> None:
    folder, environment = tmp_path / "run", {**NO_KEYS, "OPENAI_API_KEY": PROVIDER_KEY}
    with everything(folder, environment=environment) as own:
        assert "simulated" not in own.told and not (folder / "logs" / "provider.log").exists()
        assert 'baseURL: "https://api.openai.com/v1"' in (folder / "gateway.yaml").read_text()
        assert (folder / "provider-key").read_text() == f"{PROVIDER_KEY}\n"
        places = [own.told, *((folder / "logs" / f"{name}.log").read_text() for name in ("worker", "auditor"))]
        for child in ("serve", "audit"):
            process = Path(f"/proc/{own.child(child)}")
            places += [(process / name).read_text() for name in ("cmdline", "environ")]
        assert all(PROVIDER_KEY not in place for place in places)
        refused = proofgate("demo-traffic", "--directory", folder)
        assert refused.returncode == 2 and "--real-provider allows this" in refused.stderr


def test_what_a_child_warns_of_is_shown_and_what_it_says_otherwise_is_in_its_log(tmp_path: Path) -> None:
    with everything(tmp_path / "run", "--demo") as demo:
        configuration = tmp_path / "run" / "gateway.yaml"
        configuration.write_text(configuration.read_text().replace("timeouts:", "timeoutz:"))
        demo.program.wait_for_line("worker: .* (WARNING|ERROR) ")
        assert " INFO " not in demo.program.printed
        assert " INFO " in (tmp_path / "run" / "logs" / "worker.log").read_text()


def test_a_full_log_is_rotated_and_what_the_child_prints_then_is_shown_and_kept(tmp_path: Path) -> None:
    log, former = (tmp_path / "run" / "logs" / name for name in ("worker.log", "worker.log.1"))
    with everything(tmp_path / "run", "--demo") as demo:
        os.truncate(log, MAX_LOG_BYTES + 1)
        wait_until(former.exists, PATIENCE, "the log is rotated")
        configuration = tmp_path / "run" / "gateway.yaml"
        configuration.write_text(configuration.read_text().replace("timeouts:", "timeoutz:"))
        demo.program.wait_for_line("worker: .* (WARNING|ERROR) ")
    assert "proofgate ready: " in former.read_text()
    assert "sealed: " in log.read_text() and log.stat().st_size < MAX_LOG_BYTES


def test_without_a_key_and_without_demo_the_error_names_both_ways(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "proofgate", "quickstart", "--start", "--directory", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, env=NO_KEYS)
    assert done.returncode == 2
    assert "OPENAI_API_KEY" in done.stderr and "--demo" in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_second_simulated_provider_answers_for_the_first(demo: Everything) -> None:
    key = (demo.folder / "tenant-key").read_text().strip()
    body = {"model": "mock-overloaded", "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx.post(
        f"{demo.gateway}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE
    )
    assert (answer.status_code, answer.headers["x-proofgate-attempts"]) == (200, "2")
    assert "claude-sonnet-4-5: token1" in json.dumps(answer.json())
