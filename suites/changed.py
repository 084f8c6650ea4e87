"""Selects the steps that test a change best within a few minutes (`make test-quick`)."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from suites import catalogue
from suites.catalogue import BY_NAME, narrowed
from suites.steps import ROOT, RustTests, Step

_CRATE = re.compile(r"rust-core/crates/([a-z-]+)/")
#: The layers of a worker. The last one tests all of them together.
_LAYERS = tomllib.loads((ROOT / "setup" / "crates.toml").read_text())["layers"]
#: Folders whose tests are in the suite `tools`.
_TOOLS = ("suites", "setup", "docs", "bench", "e2e", "examples", "charts", "crds", "Makefile", "README.md", ".ci")


def files(base: str | None = None) -> list[str]:
    """The files that differ from a revision, including new ones, as paths from the root.

    Without a revision: uncommitted files, or the files of the last commit if there are none.
    """
    new = git("ls-files", "--others", "--exclude-standard")
    if base is None:
        return sorted({*git("diff", "--name-only", "HEAD"), *new}) or git("diff", "--name-only", "HEAD~1", "HEAD")
    return sorted({*git("diff", "--name-only", base), *new})


def git(*arguments: str) -> list[str]:
    """The lines that a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def steps(changed: Iterable[str]) -> list[Step]:
    """The steps for a change: format, lint, types, the unit tests of what it touches, and one worker end to end."""
    paths = list(changed)
    tops = {PurePath(path).parts[0] for path in paths}
    names = ["format", "types", "worker"]
    crates = {match[1] for path in paths if (match := _CRATE.match(path))} - {"pybind"}
    if crates & set(_LAYERS):
        crates.add(_LAYERS[-1])
    rust = sorted(f"proofgate-{crate}" for crate in crates)
    whole_workspace = any(path.startswith(("rust-core/Cargo.", "rust-core/.cargo")) for path in paths)
    if "rust-core" in tops:
        names.append("clippy")
    if rust or whole_workspace:
        names.append("rust")
    names += [suite for suite in ("gateway", "operator") if {suite, "schema"} & tops]
    if tops & set(_TOOLS):
        names.append("tools")
    chosen = {step.name: step for step in catalogue.with_needed(names)}
    worker_tests = sorted({path for path in paths if re.fullmatch(r"e2e/worker/test_[a-z0-9_]+\.py", path)})
    worker_tests = [path for path in worker_tests if (ROOT / path).exists()]
    if worker_tests:
        chosen["worker"] = narrowed(BY_NAME["worker"], [*catalogue.ONE_WORKER.arguments, *worker_tests])
    else:
        chosen["worker"] = replace(BY_NAME["worker"], action=catalogue.ONE_WORKER, needs=("extension",))
        chosen.pop("go-binaries", None)
    if "rust" in chosen and not whole_workspace:
        chosen["rust"] = replace(chosen["rust"], action=RustTests(tuple(rust)), needs=("setup",))
    # No tests of the other crates run, so none are built.
    chosen.pop("rust-binaries", None)
    return list(chosen.values())
