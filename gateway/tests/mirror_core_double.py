"""A stand-in for the core's check of an ended log, for made-up files with a verdict that the test sets."""
# ruff: noqa: ARG001 - the interface is the real one

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def fsck_pinned(
    directory: str, note: str, verifying_key: str, keeping_key: str | None = None
) -> tuple[int, str, list[tuple[str, int, bytes]]]:
    """Returns all files of a directory except `verdict`, whose content is the exit code (default 0)."""
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
