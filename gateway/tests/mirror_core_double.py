"""What the core has for copies of a ledger and for logs kept in Python.

Trees, files with digests, signatures.
"""
# ruff: noqa: ARG001 - the interface is the real one

from __future__ import annotations

import hashlib
import json
from pathlib import Path


class Tree:
    """A tree of RFC 9162."""

    def __init__(self, size: int = 0, peaks: list[bytes] | None = None) -> None:
        if size.bit_count() != len(peaks or []):
            raise ValueError("a range of that size has another number of peaks")
        self._size, self._peaks = size, list(peaks or [])

    def push(self, leaf: bytes) -> None:
        node, size = hashlib.sha256(b"\0" + leaf).digest(), self._size
        while size & 1:
            node = hashlib.sha256(b"\1" + self._peaks.pop() + node).digest()
            size >>= 1
        self._peaks.append(node)
        self._size += 1

    @property
    def size(self) -> int:
        return self._size

    @property
    def root(self) -> bytes:
        if not self._peaks:
            return hashlib.sha256(b"").digest()
        root = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            root = hashlib.sha256(b"\1" + peak + root).digest()
        return root

    @property
    def peaks(self) -> list[bytes]:
        return list(self._peaks)


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


def sign_s3(
    method: str,
    path: str,
    query: str,
    host: str,
    headers: list[tuple[str, str]],
    body_sha256: bytes,
    credentials: tuple[str, str, str | None],
    region: str,
    unix_seconds: int,
) -> list[tuple[str, str]]:
    return [("Authorization", f"signed by {credentials[0]}"), ("X-Amz-Content-Sha256", body_sha256.hex())]
