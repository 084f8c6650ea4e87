"""Remove the local lab and check that nothing of it is left.

The removal does not depend on how far `up` came, or on a complete record: cgroups list the processes, the namespaces
and cgroups have fixed names, and the lab's folders contain the mounts.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from . import cgroups, network, processes, state, strays
from .console import LabError, say
from .layout import LAB, NODES, RUNTIME, cache_folder, lab_folder


def down() -> None:
    """Remove the lab. Idempotent; if anything is left, the error lists it."""
    state.refuse_other_owner()
    if not remnants() and not lab_folder().exists():
        return
    say("ending the lab's processes")
    _end_processes()
    say("removing mounts, namespaces and cgroups")
    _unmount()
    cgroups.remove()
    network.remove()
    state.restore_machine_settings()
    _remove_folders()
    left = remnants()
    if left:
        raise LabError("the lab left something behind", "\n".join(f"  {line}" for line in left))
    say("nothing of the lab is left")


def remnants() -> list[str]:
    """Everything of a local lab that exists: processes, mounts, namespaces, cgroups and folders."""
    found = [f"process {daemon.pid} ({daemon.name})" for daemon in processes.recorded() if daemon.alive]
    inside = {*cgroups.members(f"/{LAB}"), *network.inhabitants()}
    found += [f"process {pid} ({_command(pid)})" for pid in sorted(inside) if processes.start_time(pid) is not None]
    found += [f"mount {target}" for target in mounts()]
    found += [f"network namespace {name}" for name in network.remaining()]
    found += [f"cgroup {folder}" for folder in cgroups.remaining()]
    found += [f"file {path}" for path in strays.remaining()]
    found += [f"folder {RUNTIME}"] if RUNTIME.exists() else []
    return list(dict.fromkeys(found))


def mounts() -> list[str]:
    """Mount points of the lab and of interrupted image builds, the innermost first."""
    prefixes = tuple(f"{folder}/" for folder in (lab_folder(), RUNTIME, cache_folder() / "images"))
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        target = line.split()[4].replace("\\040", " ")
        if target.startswith(prefixes):
            found.append(target)
    return found[::-1]


def _end_processes() -> None:
    # Daemons that would start or move pods end first, then the pods, then their runtimes.
    daemons = processes.recorded()
    runtimes = [daemon for daemon in daemons if daemon.name.startswith("containerd-")]
    processes.end([daemon for daemon in daemons if daemon not in runtimes], grace=0.5)
    for node in NODES:
        processes.end_group(node.cgroup)
    processes.end(runtimes, grace=0.5)
    processes.end_group(f"/{LAB}")


def _unmount() -> None:
    for target in mounts():
        if processes.run(["umount", target], check=False).returncode != 0:
            processes.run(["umount", "--lazy", target], check=False)


def _remove_folders() -> None:
    strays.remove()
    # If a mount is left, deleting the folder would also delete the content of the mounted folder.
    if mounts():
        return
    shutil.rmtree(lab_folder(), ignore_errors=True)
    shutil.rmtree(RUNTIME, ignore_errors=True)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()[:120]
    except OSError:
        return "?"
