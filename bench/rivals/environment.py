"""Environments for rivals: made on demand outside the checkout, through the package managers' own clients."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.load.tools import cache
from bench.system import UnavailableError

_ADDRESS = re.compile(r"\b[a-z+]+://\S+")


def python(name: str, version: str, *requirements: str) -> Path:
    """A virtual environment with these packages; returns its folder of commands."""

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder)], folder)
        run([str(folder / "bin" / "pip"), "install", "--quiet", *requirements], folder)

    return ready(name, version, install) / "bin"


def node(name: str, version: str, package: str, overrides: Mapping[str, str]) -> Path:
    """A folder with this npm package and these versions of its dependencies; returns the folder of modules."""

    def install(folder: Path) -> None:
        (folder / "package.json").write_text(json.dumps({"private": True, "overrides": dict(overrides)}))
        run(["npm", "install", "--silent", "--no-audit", "--no-fund", package], folder)

    return ready(name, version, install) / "node_modules"


def go(name: str, version: str, module: str, command: str) -> Path:
    """A command built from a Go module; returns the binary."""

    def install(folder: Path) -> None:
        # Requests one exact version; `go install` would first list all versions.
        run(["go", "mod", "init", "bench"], folder)
        run(["go", "mod", "edit", "-require", f"{module}@{version}"], folder)
        imports = f'//go:build tools\n\npackage tools\n\nimport _ "{module}/{command}"\n'
        (folder / "tools.go").write_text(imports)
        run(["go", "build", "-mod=mod", "-o", name, f"{module}/{command}"], folder)

    return ready(name, version, install) / name


def ready(name: str, version: str, install: Callable[[Path], None]) -> Path:
    """The folder of `name`, which `install` fills if it does not contain this version."""
    folder = cache() / name
    mark = folder / ".ready"
    if not mark.exists() or mark.read_text() != version:
        print(f"== installing {name} {version} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(folder)
        mark.write_text(version)
    return folder


def run(command: Sequence[str], folder: Path) -> None:
    """Runs a package manager in `folder`. Raises UnavailableError with its last words when it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900
        )
    except FileNotFoundError:
        raise UnavailableError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{Path(command[0]).name} did not end within 15 minutes") from None
    if done.returncode:
        raise UnavailableError(_reason(f"{Path(command[0]).name} {command[1]}", done.stderr or done.stdout))


def _reason(command: str, output: str) -> str:
    """The last lines of a package manager's output, without the addresses of its requests."""
    last = " | ".join(line.strip() for line in output.strip().splitlines()[-3:])
    return f"{command} failed: {_ADDRESS.sub('(address)', last)}"[:400]
