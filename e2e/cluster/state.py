"""The lab's state between two commands, except the list of processes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .console import LabError, say
from .layout import RUNTIME, cache_folder, lab_folder, log_folder

# The kubelet sets these on the whole machine; `down` restores their earlier values.
MACHINE_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def create(route: str) -> None:
    """Start a lab's state: empty folders, and the record of the values to restore, written before any change."""
    shutil.rmtree(log_folder(), ignore_errors=True)
    log_folder().mkdir(parents=True)
    lab_folder().mkdir(parents=True, exist_ok=True)
    settings = {name: value for name in MACHINE_SETTINGS if (value := _setting(name)) is not None}
    _file().write_text(json.dumps({"route": route, "settings": settings}, indent=2))


def claim_machine() -> None:
    """Record the folder of the machine's local lab. There can be only one, because namespace names are per machine."""
    RUNTIME.mkdir(parents=True, exist_ok=True)
    _owner().write_text(str(lab_folder()))


def owner() -> Path | None:
    """The folder of the machine's local lab, in any user's cache; None if there is no lab."""
    try:
        return Path(_owner().read_text().strip())
    except OSError:
        return None


def refuse_other_owner() -> None:
    other = owner()
    if other is not None and other != lab_folder():
        raise LabError(f"this machine already has a lab, in {other}", f"PROOFGATE_CACHE={other.parent} selects it")


def route() -> str | None:
    """`local` or `kind`; None if there is no lab."""
    found = _read().get("route")
    return found if isinstance(found, str) else None


def restore_machine_settings() -> None:
    settings = _read().get("settings", {})
    for name, value in settings.items():
        if _setting(name) != value:
            Path("/proc/sys", name).write_text(value)


@contextmanager
def exclusive() -> Iterator[None]:
    """Allow only one command at a time to change the lab."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lab.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another command on the lab to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the local cluster needs root", "run as root, or use CLUSTER=kind with a Docker engine")


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def _read() -> dict[str, Any]:
    try:
        found = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _file() -> Path:
    return lab_folder() / "lab.json"


def _owner() -> Path:
    return RUNTIME / "owner"
