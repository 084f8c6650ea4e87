"""Each Cargo workspace resolves to what its own lock file says, also after a dependency of another one changed."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = subprocess.run(
    ["git", "ls-files", "*Cargo.lock"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.split()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_all_that_its_workspace_needs(lock: str) -> None:
    manifest = ROOT / lock.replace("Cargo.lock", "Cargo.toml")
    resolved = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Crates that are not in the cache are fetched with retries, because a network error says nothing about a lock
        # file.
        env={**os.environ, "CARGO_NET_RETRY": "10"},
    )
    assert resolved.returncode == 0, (
        f"{resolved.stderr}mend it with: cargo update --workspace --manifest-path {manifest}"
    )
