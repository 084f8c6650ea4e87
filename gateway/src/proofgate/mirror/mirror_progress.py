"""What a mirror remembers between two lives of its auditor. It can be lost: then all is compared anew."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from proofgate.folder_sync import sync_folder
from proofgate.mirror.aggregate import EndedLog

log = logging.getLogger("proofgate.mirror")

_FOLDER = "mirrors"
_VERSION = 3
#: Maximum number of stored findings.
_MAX_FINDINGS = 100


@dataclass
class MirrorProgress:
    """How far a mirror is: `next`, the first entry of the aggregate log whose log may not be there yet; what
    was found that stays found; and the digests of configurations that were not to be had yet, with the time
    since when (unix microseconds). Of copies of workers' logs also `waiting`, the logs before `next` that are
    not there yet, and in a folder a file for each log that is."""

    path: Path
    mirror: str
    next_entry: int = 0
    tiles_size: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    configurations: dict[str, int] = field(default_factory=dict)
    waiting: list[EndedLog] = field(default_factory=list)

    @classmethod
    def open(cls, state: Path, mirror: str, aggregate: str) -> MirrorProgress:
        """Of a mirror, by its name, and of one aggregate log; empty when there is none that can be used."""
        name = f"{mirror}\n{aggregate}"
        path = state / _FOLDER / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        try:
            told = json.loads(path.read_bytes())
            if told["mirror"] == name and told["v"] == 1:
                # It knew no configurations: all is compared anew, and what was found stays.
                return cls(path, name, findings=list(told["findings"]))
            if told["mirror"] == name and told["v"] in (2, _VERSION):
                missing = {str(digest): int(since) for digest, since in told["configurations"].items()}
                far = int(told["next"]), int(told["tiles"])
                waiting = [EndedLog(**one) for one in told.get("waiting", ())]
                return cls(path, name, *far, list(told["findings"]), missing, waiting)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            log.warning("%s cannot be used: the whole mirror is compared again", path)
        return cls(path, name)

    def save(self) -> None:
        """Writes it, durably. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        told = {"v": _VERSION, "mirror": self.mirror, "next": self.next_entry, "tiles": self.tiles_size}
        told |= {"configurations": self.configurations, "waiting": [asdict(one) for one in self.waiting]}
        draft = self.path.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump({**told, "findings": self.findings}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        sync_folder(self.path.parent)

    def has_log(self, place: str, *, removed: bool) -> bool:
        """Whether a log was mirrored, by its place; or what stays of it after its removal."""
        kinds = (True,) if removed else (False, True)
        return any(self._marker_path(place, removed=kind).exists() for kind in kinds)

    def mark_mirrored(self, one: EndedLog) -> None:
        """Notes, durably, that a log was mirrored. Raises OSError."""
        mark = self._marker_path(one.log_path, removed=one.removed)
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
        sync_folder(mark.parent)

    def _marker_path(self, place: str, *, removed: bool) -> Path:
        kind = ".removed" if removed else ""
        return self.path.with_suffix("") / f"{place.replace('/', '-')}{kind}"

    def add_finding(self, finding: dict[str, Any]) -> bool:
        """Adds what was found, once; whether it is new."""
        key = finding["code"], finding["message"]
        if len(self.findings) >= _MAX_FINDINGS or key in [
            (one["code"], one["message"]) for one in self.findings
        ]:
            return False
        self.findings.append(finding)
        return True
