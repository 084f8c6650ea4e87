"""What axe-core finds wrong on a page (https://github.com/dequelabs/axe-core, a tool of tests only)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from e2e.browser import Browser

_PINNED = Path(__file__).parent / "axe"
_RUN = """const done = arguments[arguments.length - 1];
window.axe.run(document, { resultTypes: ['violations'] }).then((found) => done(found.violations.map((one) =>
    `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join('; ')}`)), (error) => done([String(error)]));"""


@cache
def _axe() -> str:
    """The text of the pinned version, which npm installs once into the project's cache."""
    lock = _PINNED / "package-lock.json"
    cache_folder = Path(os.environ.get("PROOFGATE_CACHE") or Path.home() / ".cache" / "proofgate")
    folder = cache_folder / f"axe-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not folder.exists():
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder) as made:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_PINNED / name, made)
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(["npm", "ci", *options], cwd=made, check=True)
            Path(made).rename(folder)
            Path(made).mkdir()
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Browser) -> list[str]:
    """The rules that the page violates, with the elements."""
    # Evaluated by the driver, so that the page's own policy stays as it is.
    page.run(f"if (!window.axe) {{ {_axe()} }}")
    found: list[str] = page.run_async(_RUN)
    return found
