"""The content of a ledger on disk."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from proofgate import _core

from e2e.commands import proofgate


def records(ledger: Path, shards: str = "*") -> list[dict[str, Any]]:
    """All records of all incarnations of a ledger, oldest first, each with its incarnation under `log`.

    `shards` is a pattern for the shards' folders.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="proofgate-leaves-") as scratch:
        leaves = Path(scratch) / "leaves"
        for directory in sorted(ledger.glob(f"{shards}/*/")):
            _core.export_leaves(str(directory), str(leaves))
            data, offset = leaves.read_bytes(), 0
            while offset < len(data):
                begin = offset + 4
                offset = begin + int.from_bytes(data[offset:begin], "big")
                found.append({**json.loads(data[begin:offset]), "log": directory.name})
    return found


def configuration(ledger: Path, digest: str) -> dict[str, Any]:
    """The archived configuration with a digest, or with its first digits, as the command shows it."""
    shown = proofgate("ledger", "configuration", ledger, digest)
    assert shown.returncode == 0, shown.stderr
    assert hashlib.sha256(shown.stdout.removesuffix("\n").encode()).hexdigest().startswith(digest)
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def exchanges_by_their_ends(records: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """The number of ends of each admission, by the log and number of its record.

    An end may be in a later log; it then names the log of the admission.
    """
    admitted = {(record["log"], record["seq"]) for record in records if record["kind"] == "admission"}
    ends = Counter(
        (record.get("incarnation", record["log"]), record["admission"])
        for record in records
        if record["kind"] in {"completion", "aborted"}
    )
    assert ends.keys() <= admitted, "an end names an admission that is not there"
    return {admission: ends[admission] for admission in admitted}
