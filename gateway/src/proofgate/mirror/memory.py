"""What a mirror remembers between two lives of its auditor. It can be lost: then all is compared anew."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

log = logging.getLogger("proofgate.mirror")

_FOLDER = "mirrors"
_VERSION = 2
#: Findings that are kept.
_MOST = 100


@dataclass
class Memory:
    """How far a mirror is: `next`, the first entry of the aggregate log whose log may not be there yet; what
    was found that stays found; and the digests of configurations that were not to be had yet, with the time
    since when (unix microseconds)."""

    path: Path
    mirror: str
    next: int = 0
    tiles: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    configurations: dict[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls, state: Path, mirror: str, aggregate: str) -> Memory:
        """Of a mirror, by its name, and of one aggregate log; empty when there is none that can be used."""
        name = f"{mirror}\n{aggregate}"
        path = state / _FOLDER / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        try:
            told = json.loads(path.read_bytes())
            if told["mirror"] == name and told["v"] == 1:
                # It knew no configurations: all is compared anew, and what was found stays.
                return cls(path, name, findings=list(told["findings"]))
            if told["mirror"] == name and told["v"] == _VERSION:
                waiting = {str(digest): int(since) for digest, since in told["configurations"].items()}
                far = int(told["next"]), int(told["tiles"])
                return cls(path, name, *far, list(told["findings"]), waiting)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            log.warning("%s cannot be used: the whole mirror is compared again", path)
        return cls(path, name)

    def save(self) -> None:
        """Writes it, durably. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        told = {"v": _VERSION, "mirror": self.mirror, "next": self.next, "tiles": self.tiles}
        told |= {"configurations": self.configurations}
        draft = self.path.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump({**told, "findings": self.findings}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def find(self, finding: dict[str, Any]) -> bool:
        """Adds what was found, once; whether it is new."""
        key = finding["code"], finding["message"]
        if len(self.findings) >= _MOST or key in [(one["code"], one["message"]) for one in self.findings]:
            return False
        self.findings.append(finding)
        return True
