"""The load generators that must be built: on demand, outside the checkout, at one version."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

OHA_VERSION = "1.16.0"
_SOURCE = Path(__file__).parent.parent / "stream_load"


def cache() -> Path:
    """The folder for built and installed programs of the benchmark."""
    base = os.environ.get("PROOFGATE_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(base) if base else home / "proofgate") / "bench"


def stream_load() -> Path:
    """Builds both ends of the stream benchmark; fast if nothing changed."""
    target = cache() / "stream-load"
    if not (target / "release").exists():
        print("== building stream-load (about half a minute, once)", flush=True)
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", str(_SOURCE / "Cargo.toml")]
    subprocess.run(command, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return target / "release" / "stream-load"


def stream_load_version() -> str:
    """The version in its manifest."""
    version: str = tomllib.loads((_SOURCE / "Cargo.toml").read_text())["package"]["version"]
    return version


def oha() -> Path:
    """Builds oha."""
    root = cache() / f"oha-{OHA_VERSION}"
    binary = root / "bin" / "oha"
    if not binary.exists():
        print(f"== building oha {OHA_VERSION} (about 8 minutes, once)", flush=True)
        command = ["cargo", "install", "--quiet", "--locked", "--root", str(root), f"oha@{OHA_VERSION}"]
        # Without a target folder, cargo builds in a temporary one and removes it, which saves a gigabyte.
        environment = {name: text for name, text in os.environ.items() if name != "CARGO_TARGET_DIR"}
        subprocess.run(command, check=True, env=environment)
    return binary
