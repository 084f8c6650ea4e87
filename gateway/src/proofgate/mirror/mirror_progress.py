"""The stored progress of a mirror across restarts of its auditor. If it is lost, all objects are compared
again."""

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
    """The progress of a mirror. `next_entry` is the first entry of the aggregate log whose log may not be
    mirrored yet. `findings` are permanent. `configurations` has the digests of missing configurations, with
    the time since which they are missing (Unix microseconds). For copies of workers' logs, `waiting` has the
    logs before `next_entry` that are not mirrored yet, and a folder has one file for each mirrored log."""

    path: Path
    mirror: str
    next_entry: int = 0
    tiles_size: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    configurations: dict[str, int] = field(default_factory=dict)
    waiting: list[EndedLog] = field(default_factory=list)

    @classmethod
    def open(cls, state: Path, mirror: str, aggregate: str) -> MirrorProgress:
        """Opens the progress of a mirror, by name, for one aggregate log; empty if there is no usable one."""
        name = f"{mirror}\n{aggregate}"
        path = state / _FOLDER / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        try:
            told = json.loads(path.read_bytes())
            if told["mirror"] == name and told["v"] == 1:
                # This older format has no configurations: all objects are compared again, and the findings
                # are retained.
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
        """Writes the progress durably. Raises OSError."""
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
        """Whether a log was mirrored, by its place; with `removed`, whether the files that remain after its
        removal were mirrored."""
        kinds = (True,) if removed else (False, True)
        return any(self._marker_path(place, removed=kind).exists() for kind in kinds)

    def mark_mirrored(self, one: EndedLog) -> None:
        """Records durably that a log was mirrored. Raises OSError."""
        mark = self._marker_path(one.log_path, removed=one.removed)
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
        sync_folder(mark.parent)

    def _marker_path(self, place: str, *, removed: bool) -> Path:
        kind = ".removed" if removed else ""
        return self.path.with_suffix("") / f"{place.replace('/', '-')}{kind}"

    def add_finding(self, finding: dict[str, Any]) -> bool:
        """Adds a finding, unless it is already stored. Returns whether it is new."""
        key = finding["code"], finding["message"]
        if len(self.findings) >= _MAX_FINDINGS or key in [
            (one["code"], one["message"]) for one in self.findings
        ]:
            return False
        self.findings.append(finding)
        return True
