"""npm packages for tests, pinned by lock files in this folder and installed once into the project's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@cache
def node_packages(name: str) -> Path:
    """The folder `node_modules` with what `e2e/<name>/package-lock.json` lists. No package's script runs.

    Raises subprocess.CalledProcessError.
    """
    pinned = _HERE / name
    digest = hashlib.sha256((pinned / "package-lock.json").read_bytes()).hexdigest()[:16]
    cache_folder = Path(os.environ.get("PROOFGATE_CACHE") or Path.home() / ".cache" / "proofgate")
    folder = cache_folder / f"{name}-{digest}"
    if not folder.exists():
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder) as scratch:
            made = Path(scratch) / name
            made.mkdir()
            for file in ("package.json", "package-lock.json"):
                shutil.copy(pinned / file, made)
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(["npm", "ci", *options], cwd=made, check=True)
            try:
                made.rename(folder)
            except OSError:
                # Another test process may have been faster.
                if not folder.exists():
                    raise
    return folder / "node_modules"
