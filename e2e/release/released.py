"""A release of this checkout, signed with a test's key, and a registry on loopback that it is pushed to.

The wheels are those of `make images`, which the other suites have tested.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from e2e.cluster.layout import cache_folder
from e2e.programs import Program
from setup.release.__main__ import toolchain_binary
from setup.release.version import ROOT, version_of

#: The timeout of a build of both images on a busy machine.
PATIENCE = 1800
WHEELS = cache_folder() / "wheels"


@dataclass(frozen=True)
class Release:
    """A folder that `make release` filled, and its registry."""

    folder: Path
    registry: str
    version: str

    @property
    def key(self) -> Path:
        """The verifying key of the release."""
        return self.folder / "release.pub"

    def file(self, suffix: str) -> Path:
        """The only file whose name has this ending."""
        (found,) = (path for path in self.folder.iterdir() if path.name.endswith(suffix))
        return found

    def references(self) -> dict[str, dict[str, str]]:
        """The repository, tag and digest of each pushed artifact, by name."""
        found: dict[str, dict[str, str]] = json.loads((self.folder / "references.json").read_text())
        return found

    def pinned(self, name: str) -> str:
        """The reference of an image, the chart or the bundle by digest, for pulling."""
        reference = self.references()[f"{name}-{self.version}"]
        return f"{self.registry}/{reference['repository']}@{reference['digest']}"


def new_key(path: Path) -> Path:
    """Writes a signing key for a test."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(key.private_bytes(*form))
    path.chmod(0o600)
    return path


def run(command: list[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, cwd=ROOT, **options
    )


def release(out: Path, registry: str, key: Path, *words: str) -> Release:
    """Makes a release of this checkout from the existing wheels. Raises AssertionError with the output."""
    version = version_of()
    command = [sys.executable, "-m", "setup.release", "build", "--version", version, "--out", str(out)]
    given = ["--registry", registry, "--sign", str(key), "--builder", "local", "--built", "--wheels", str(WHEELS)]
    done = run([*command, *given, *words])
    assert done.returncode == 0, done.stdout + done.stderr
    return Release(out, registry, version)


def publish(made: Release) -> None:
    """Pushes a release to its registry."""
    command = [sys.executable, "-m", "setup.release", "publish", "--out", str(made.folder)]
    done = run([*command, "--registry", made.registry])
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def registry(
    folder: Path, address: str = "127.0.0.1:0", prefix: tuple[str, ...] = (), data: Path | None = None
) -> Iterator[str]:
    """A registry that stores its content in a folder; gives its address.

    `prefix` is put before its command; `data` is the folder of another registry with the same content.
    """
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "registry.yml"
    settings = {
        "version": 0.1,
        "log": {"level": "info", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(data or folder / "data")}, "delete": {"enabled": False}},
        "http": {"addr": address},
    }
    configuration.write_text(yaml.safe_dump(settings))
    command = (*prefix, str(toolchain_binary("registry")))
    program = Program.start("registry", folder, ("serve", str(configuration)), command)
    try:
        yield program.wait_for_line(r"listening on (127\.0\.0\.1:\d+)")[1]
    finally:
        program.stop()
