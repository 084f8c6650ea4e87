"""Verifies a log of made-up files as the core does one that has ended: by what a test says of it."""
# ruff: noqa: ARG001 - the interface is the real one

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def fsck_pinned(
    directory: str, note: str, verifying_key: str, keeping_key: str | None = None
) -> tuple[int, str, list[tuple[str, int, bytes]]]:
    """All files of a directory but the one that has the verdict, which is 0 without it."""
    folder = Path(directory)
    verdict = folder / "verdict"
    code = int(verdict.read_text()) if verdict.exists() else 0
    files = []
    for path in sorted(folder.iterdir()):
        if path != verdict:
            content = path.read_bytes()
            files.append((str(path), len(content), hashlib.sha256(content).digest()))
    told: dict[str, object] = {"findings": [{"message": "it was changed"}] if code else []}
    if (folder / "tombstone").exists():
        told["removed"] = {"verified": keeping_key is not None}
    return code, json.dumps({"exit_code": code, "incarnations": [told]}), files
