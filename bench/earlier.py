"""A worker of an earlier revision, which is measured in turns with the current one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from bench.ledger import ROOT
from bench.load import tools


def worker(revision: str) -> Path:
    """Builds the package of `revision` with its own profile; returns the folder that goes before all others on Python's
    path. Once for each revision. It runs with today's Python packages."""
    named = ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    commit = subprocess.run(named, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    if not commit:
        raise SystemExit(f"{revision} is not a revision of this repository")
    package = tools.cache() / "workers" / commit
    if package.exists():
        return package
    print(f"== building the worker of {commit[:12]} (about 5 minutes, once)", flush=True)
    package.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=package.parent) as scratch:
        checkout, wheels = Path(scratch) / "checkout", Path(scratch) / "wheels"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", checkout, commit], check=True, cwd=ROOT)
        try:
            setup = checkout / "setup"
            flags = subprocess.run([setup / "release-flags"], check=True, capture_output=True, text=True).stdout.strip()
            environment = {**os.environ, "RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(Path(scratch) / "target")}
            if (setup / "browser-verifier").exists():
                subprocess.run([setup / "browser-verifier"], check=True, env={**environment, "RUSTFLAGS": ""})
            build = ["maturin", "build", "--release", "--quiet", "--out", str(wheels)]
            subprocess.run(build, check=True, cwd=checkout / "gateway", env=environment)
            unpacked = Path(scratch) / "package"
            if (schema := checkout / "schema" / "src").exists():
                shutil.copytree(schema, unpacked)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", checkout], check=True, cwd=ROOT)
        (wheel,) = wheels.glob("proofgate-*.whl")
        zipfile.ZipFile(wheel).extractall(unpacked)
        unpacked.rename(package)
    return package
