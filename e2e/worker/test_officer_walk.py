"""An officer follows docs/how-to/find-and-export-exchanges.md, and has a verified export at the end."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from proofgate import _core

from e2e import tutorial
from e2e.accessibility import violations
from e2e.browser import Browser, browser
from e2e.commands import proofgate
from e2e.indexed import Indexed, indexed
from e2e.oidc_provider import Client, oidc_provider
from e2e.ports import free_port
from e2e.programs import PATIENCE
from e2e.shim import Shim
from e2e.walks import walk

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "find-and-export-exchanges.md"
VERIFY = ROOT / "examples" / "verify" / "verify.py"
EXPORTS = "exports.example/officers"
SESSION_SECONDS = 3600
PEOPLE = {"ada": ["llm-officers"], "grace": ["globex-team"], "mallory": ["sales"]}
GROUPS = {"llm-officers": {"all": True}, "globex-team": {"tenant": "globex"}}


@dataclass(frozen=True)
class Bank:
    """An organisation with an identity provider, and an auditor that uses it."""

    ledger: Indexed
    export_key: str
    shim: Shim


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    folder = tmp_path_factory.mktemp("bank")
    listen = f"127.0.0.1:{free_port()}"
    client = Client(f"http://{listen}/oidc/callback")
    secret, public = _core.generate_key(EXPORTS)
    (folder / "export-key").write_text(secret)
    (folder / "client-secret").write_text(client.secret)
    shim = Shim(folder)
    with oidc_provider(folder, client, PEOPLE) as issuer:
        settings = {
            "issuer": issuer,
            "clientId": client.id,
            "clientSecretFile": "client-secret",
            "redirectUri": client.redirect_uri,
            "readers": GROUPS,
            "sessionSeconds": SESSION_SECONDS,
        }
        (folder / "oidc.json").write_text(json.dumps(settings))
        options = ["--oidc", str(folder / "oidc.json"), "--export-key", str(folder / "export-key")]
        with indexed(folder, *options, "--listen", listen, environment=shim.environment) as ledger:
            yield Bank(ledger, public, shim)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser") / "window") as window:
        yield window


@dataclass
class Officer:
    """An officer at the browser who uses only labels that the page names."""

    bank: Bank
    browser: Browser
    text: str = field(default_factory=lambda: re.sub(r"\s+", " ", PAGE.read_text()))

    def _named(self, label: str) -> str:
        assert f"*{label}*" in self.text, f"the page does not name {label}"
        return label

    def visit(self) -> None:
        """Opens the explorer without a session there or at the identity provider."""
        self.browser.command("Network.clearBrowserCookies")
        self.browser.open(f"{self.bank.ledger.url}/")
        self.browser.run("sessionStorage.clear(); localStorage.clear()")
        self.browser.open(f"{self.bank.ledger.url}/")

    def choose(self, label: str) -> None:
        """Follows the link with this text."""
        self._click("a", self._named(label))

    def press(self, label: str, within: str = "main") -> None:
        """Presses the button with this text."""
        self._click(f"{within} button", self._named(label))

    def _click(self, css: str, label: str) -> None:
        script = """const all = [...document.querySelectorAll(arguments[0])];
            const one = all.find((one) => one.textContent === arguments[1]);
            one?.click();
            return Boolean(one)"""
        self.browser.wait(lambda: self.browser.run(script, css, label), f"{label}, to be chosen")

    def fill(self, label: str, text: str) -> str:
        """Fills the field with this label, or selects an option; returns the field's CSS selector."""
        script = """const all = [...document.querySelectorAll('main label')];
            return all.find((one) => one.textContent === arguments[0])?.htmlFor"""
        self._named(label)
        css = f"#{self.browser.wait(lambda: self.browser.run(script, label), label)}"
        kind = self.browser.run("return document.querySelector(arguments[0]).localName", css)
        if kind == "select":
            chosen = """const all = [...document.querySelector(arguments[0]).options];
                all.find((one) => one.textContent === arguments[1]).selected = true"""
            self.browser.run(chosen, css, self._named(text))
        else:
            self.browser.type(css, text)
        return css

    def sees(self, label: str) -> str:
        """Waits for a sentence from the page; returns the whole text in the browser."""
        return self.browser.wait_for(self._named(label))

    def sign_in(self, name: str) -> None:
        """Signs in with the identity provider's form."""
        self.choose("Exchanges")
        self.choose("Sign in with your organisation")
        is_there = "return Boolean(document.querySelector('[name=login]'))"
        self.browser.wait(lambda: self.browser.run(is_there), "the provider's form")
        self.browser.type("[name=login]", name)
        self.browser.click("form button")


@pytest.fixture
def officer(bank: Bank, window: Browser) -> Officer:
    officer = Officer(bank, window)
    window.see(1200)
    officer.visit()
    window.complaints()
    return officer


def downloaded(window: Browser, pattern: str) -> Path:
    window.wait(lambda: list(window.downloads.glob(pattern)), pattern)
    [path] = window.downloads.glob(pattern)
    return path


def test_an_officer_signs_in_finds_verifies_exports_and_verifies_the_export(
    bank: Bank, officer: Officer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    window = officer.browser
    with walk(record_property):
        officer.sign_in("ada")
        assert "oidc:ada" in officer.sees("Signed in as")

        officer.choose("Keys")
        field = officer.fill("Verifying key of the ledger", bank.ledger.gateway.verifying_key)
        officer.press("Use this key", f"div:has(> .field > {field})")

        officer.choose("Exchanges")
        officer.fill("Verdict", "denied by policy")
        officer.press("Show")
        window.wait_for("shown: 1 exchange,")
        officer.press("Clear")
        window.wait_for(f"shown: {len(bank.ledger.rows())} exchanges,")

        window.click(f"a[href='#/exchange/{bank.ledger.ids['refused']}']")
        told = officer.sees("Verified: checkpoints signed by the ledger's key cover these records")
        assert officer.sees("Verified with the key that you entered")
        assert "acme" in told and "codename" in told and "denied by policy" in told

        officer.choose("Exchanges")
        officer.fill("Tenant", "globex")
        officer.press("Show")
        window.wait_for("shown: 1 exchange,")
        officer.press("Download CSV")
        table = downloaded(window, "*.csv")
        officer.press("Download signed bundle")
        bundle = downloaded(window, "*.tar.gz")

        for file in (bundle, VERIFY):
            shutil.copy(file, tmp_path)
        (tmp_path / "verifying-key").write_text(bank.ledger.gateway.verifying_key)
        (tmp_path / "export-verifying-key").write_text(bank.export_key)
        steps = tutorial.steps("6. Verify the export", PAGE.read_text())
        for step, (code, printed) in zip(steps, tutorial.run(steps, tmp_path, dict(os.environ), PATIENCE), strict=True):
            assert code == 0 and tutorial.missing(step.shown, printed) == [], printed
    assert [row["id"] for row in csv.DictReader(table.read_text().splitlines())] == [bank.ledger.ids["globex"]]
    reads = [read for read in bank.ledger.reads() if read.get("asked", {}).get("of") == "export"]
    assert [read["reader"] for read in reads] == ["oidc:ada"] * 2
    assert window.complaints() == []


def test_a_group_of_one_tenant_sees_that_tenant_and_another_group_a_sentence(bank: Bank, officer: Officer) -> None:
    officer.sign_in("grace")
    officer.sees("Signed in as")
    told = officer.browser.wait_for("who sees only globex")
    assert "oidc:grace" in told and "acme" not in told
    officer.visit()
    officer.sign_in("mallory")
    told = officer.sees("You are not signed in")
    assert "none of the groups that may read here" in told and "no_reader_group" in told
    assert violations(officer.browser) == []
    assert bank.ledger.reads()[-1]["sign_in"] == "no_reader_group"
    officer.choose("Exchanges")
    officer.browser.wait_for("Sign in with your organisation")


def test_a_session_that_has_ended_asks_to_sign_in_again(bank: Bank, officer: Officer) -> None:
    officer.sign_in("ada")
    officer.sees("Signed in as")
    bank.shim.move_clock(SESSION_SECONDS + 1)
    try:
        officer.choose("Keys")
        officer.choose("Exchanges")
        told = officer.browser.wait_for("Your session has ended")
        assert "Signed in as" not in told
    finally:
        bank.shim.move_clock(0)
    # The session at the identity provider still exists, so it asks for nothing.
    officer.choose("Sign in with your organisation")
    officer.sees("Signed in as")


def _verified(folder: Path, bank: Bank) -> str:
    """The output of the single-file verifier for the export in a folder."""
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name)
    keys = ["--key", bank.ledger.gateway.verifying_key, "--signer", bank.export_key]
    # The interpreter is isolated, so that only the standard library is available.
    command = [sys.executable, "-I", "-S", str(VERIFY), str(archive), *keys]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode == 0) == done.stdout.startswith("verified"), done
    return done.stdout + done.stderr


def test_what_is_changed_in_an_export_is_refused_by_the_verifier_in_one_file(bank: Bank, tmp_path: Path) -> None:
    ledger = bank.ledger
    keys = ["--signing-key", ledger.gateway.folder / "export-key"]
    places = ["--index", ledger.gateway.folder / "index", "--ledger", ledger.gateway.ledger]
    made = tmp_path / "made"
    done = proofgate("audit", "export", *places, "--tenant", "acme", *keys, "--out", made)
    assert done.returncode == 0, done

    def changed(name: str, change: Callable[[str], str], *, agree: bool = False) -> str:
        """The verifier's output for an export with a changed file; `agree` updates the manifest and signs it again."""
        folder = tmp_path / "changed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)
        text = (folder / name).read_text()
        (folder / name).write_text(change(text))
        assert (folder / name).read_text() != text
        if agree:
            manifest = json.loads((folder / "manifest.json").read_text())
            for file, told in manifest["files"].items():
                told["sha256"] = hashlib.sha256((folder / file).read_bytes()).hexdigest()
            lines = [json.loads(line) for line in (folder / "exchanges.jsonl").read_text().splitlines()]
            manifest["exchanges"], manifest["records"] = len(lines), sum(len(line["records"]) for line in lines)
            content = json.dumps(manifest).encode()
            (folder / "manifest.json").write_bytes(content)
            secret = (ledger.gateway.folder / "export-key").read_text()
            (folder / "manifest.note").write_text(_core.sign_export(secret, hashlib.sha256(content).digest()))
        return _verified(folder, bank)

    def without(line: int) -> Callable[[str], str]:
        return lambda text: "".join(part for at, part in enumerate(text.splitlines(keepends=True)) if at != line)

    assert "no request of acme is missing" in changed("manifest.json", lambda text: text + " ", agree=True)
    assert "did not sign this export" in changed("manifest.json", lambda text: text + " ")
    assert "exchanges.jsonl does not match the manifest" in changed("exchanges.jsonl", without(1))
    assert "exchanges.csv does not match the manifest" in changed("exchanges.csv", without(1))
    assert "exchanges.csv lists other exchanges" in changed("exchanges.csv", without(2), agree=True)
    spoiled = changed("exchanges.jsonl", lambda text: text.replace("acme", "acne", 1), agree=True)
    assert "do not lead to the signed root" in spoiled
    # The signer of exports omits an inconvenient request in both files.
    table = made / "exchanges.csv"
    table.write_text(without(2)(table.read_text()))
    assert "of acme in" in (told := changed("exchanges.jsonl", without(1), agree=True)) and "is missing" in told
