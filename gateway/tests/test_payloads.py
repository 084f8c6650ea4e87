"""Stored payloads: the configuration, the core's settings, and the display of a payload."""

from __future__ import annotations

from pathlib import Path

import payloads_double
import pytest
from conftest import ConfigDirectory

from proofgate.cli import main
from proofgate.config import load
from proofgate.reload import needs_restart

pytestmark = pytest.mark.usefixtures("fake_payloads")

FOLDER = "  signingKeyFile: signing-key\n"


def ask(directory: ConfigDirectory, section: str, *, keys: bool = True) -> None:
    """Writes `ledger.payloads`, and the path of the shred keys."""
    if keys:
        folder = directory.path / "shred-keys"
        folder.mkdir()
        for tenant in ("acme", "globex"):
            (folder / tenant).write_text("BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n")
        section += "\n  shredKeysDirectory: shred-keys"
    directory.replace(FOLDER, f"{FOLDER}  payloads: {section}\n")


def core_of(directory: ConfigDirectory) -> tuple[object, dict[str, str | None]]:
    core = directory.core()
    return core["ledger"]["payloads"], {tenant["name"]: tenant["payloads"] for tenant in core["tenants"]}


def test_nothing_is_stored_by_default(config_directory: ConfigDirectory) -> None:
    assert core_of(config_directory) == (None, {"acme": None, "globex": None})


def test_the_section_alone_stores_nothing(config_directory: ConfigDirectory) -> None:
    ask(config_directory, "{}", keys=False)
    assert core_of(config_directory) == (
        {"mode": "Committed", "maxBytes": 1 << 20, "budgetBytes": 64 << 20},
        {"acme": None, "globex": None},
    )


def test_the_mode_holds_for_everybody_but_those_who_say_otherwise(config_directory: ConfigDirectory) -> None:
    ask(config_directory, "{mode: Stored, maxBytes: 2048}")
    config_directory.replace("  - name: globex\n", "  - name: globex\n    payloads: Committed\n")
    assert core_of(config_directory) == (
        {"mode": "Stored", "maxBytes": 2048, "budgetBytes": 64 << 20},
        {"acme": None, "globex": "Committed"},
    )


def test_a_plan_says_it_for_its_tenants(config_directory: ConfigDirectory) -> None:
    ask(config_directory, "{budgetBytes: 4194304}")
    config_directory.append("plans: [{name: kept, payloads: Stored}]\n")
    config_directory.replace("    models: [gpt-4o-mini]\n", "    plan: kept\n")
    assert core_of(config_directory) == (
        {"mode": "Committed", "maxBytes": 1 << 20, "budgetBytes": 1 << 22},
        {"acme": "Stored", "globex": None},
    )


def test_what_could_never_be_stored_is_refused(config_directory: ConfigDirectory) -> None:
    config_directory.replace("  - name: globex\n", "  - name: globex\n    payloads: Stored\n")
    [problem] = config_directory.problems().problems
    assert problem.code == "config_payloads"
    assert "set ledger.payloads" in problem.message
    ask(config_directory, "{}", keys=False)
    [problem] = config_directory.problems().problems
    assert problem.code == "config_payloads"
    assert "set ledger.shredKeysDirectory" in problem.message
    config_directory.replace("payloads: {}", "payloads: {maxBytes: 1048576, budgetBytes: 1048576}")
    assert "half of budgetBytes" in str(config_directory.problems())


def test_what_a_running_worker_takes_on_is_whose_bodies_are_stored(config_directory: ConfigDirectory) -> None:
    before = load(config_directory.file)
    ask(config_directory, "{}")
    nobody = load(config_directory.file)
    assert [problem.path for problem in needs_restart(before, nobody)] == [("ledger", "payloads")]
    config_directory.replace("payloads: {}", "payloads: {mode: Stored, maxBytes: 4096}")
    everybody = load(config_directory.file)
    assert needs_restart(nobody, everybody) == []
    config_directory.replace("maxBytes: 4096", "budgetBytes: 4194304")
    assert [problem.path for problem in needs_restart(nobody, load(config_directory.file))] == [
        ("ledger", "payloads")
    ]


def shown(capfd: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    key = "proofgate.dev/ns/demo+1a2b3c4d+AbCd"
    code = main(
        [
            "ledger",
            "payload",
            "show",
            "an-id",
            "--ledger",
            "ledger",
            "--key",
            key,
            "--shred-keys",
            "keys",
            *more,
        ]
    )
    told = capfd.readouterr()
    return code, told.out, told.err


def test_a_body_is_shown_or_it_is_said_why_not(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    exchange = payloads_double.StoredExchange(request=b"what was asked")
    monkeypatch.setitem(payloads_double.STORED, "an-id", exchange)
    assert shown(capfd, "--request") == (0, "what was asked", "")
    code, _, told = shown(capfd, "--response")
    assert code == 1
    assert told.endswith("it was not stored: committed [payload_not_stored]\n")
    code, told, _ = shown(capfd)
    assert code == 0
    assert "request: 14 bytes" in told
    assert "[payload_not_stored]" in told
    out = tmp_path / "out"
    assert shown(capfd, "--request", "--out", str(out))[0] == 0
    assert out.read_bytes() == b"what was asked"
    assert out.stat().st_mode & 0o777 == 0o600
    assert shown(capfd, "--request", "--out", str(out))[0] == 2, "an existing file is not overwritten"
    assert shown(capfd, "--out", str(out))[0] == 2
