"""What another checkout has built in the folder that all share is not taken for this one's."""

import os
import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "of-this-checkout"
LONG_AGO = 1_000_000_000


def checkout(place: Path) -> Path:
    """A checkout with one file, and that file."""
    (place / "setup").mkdir(parents=True)
    shutil.copy(SCRIPT, place / "setup")
    file = place / "rust-core" / "crates" / "a.rs"
    file.parent.mkdir(parents=True)
    (place / "bench" / "stream_load").mkdir(parents=True)
    file.touch()
    os.utime(file, (LONG_AGO, LONG_AGO))
    return file


def build(place: Path, target: Path) -> None:
    """What `make setup` does before anything is built."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run([place / "setup" / "of-this-checkout"], check=True, env=environment)


def is_newer(file: Path) -> bool:
    return file.stat().st_mtime > LONG_AGO


def test_files_are_made_newer_where_another_checkout_built_last_and_only_then(tmp_path: Path) -> None:
    one, other, target = tmp_path / "one", tmp_path / "other", tmp_path / "target"
    files = [checkout(one), checkout(other)]
    build(one, target)
    assert [is_newer(file) for file in files] == [True, False]
    os.utime(files[0], (LONG_AGO, LONG_AGO))
    build(one, target)
    assert [is_newer(file) for file in files] == [False, False]
    build(other, target)
    assert [is_newer(file) for file in files] == [False, True]
    build(one, target)
    assert is_newer(files[0])
