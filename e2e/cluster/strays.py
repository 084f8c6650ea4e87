"""Files that daemons write outside the lab's folders because no setting moves them, identified by their targets."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from .layout import lab_folder

CONTAINER_LOGS = Path("/var/log/containers")
CNI_RESULTS = Path("/var/lib/cni/results")
DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
DEVICE_PLUGIN_SOCKET = DEVICE_PLUGINS / "kubelet.sock"


def remaining() -> list[Path]:
    """Links to the lab's logs, and CNI's files about its pods."""
    inside = f"{lab_folder()}/"
    found = [path for path in _entries(CONTAINER_LOGS) if path.is_symlink() and str(path.readlink()).startswith(inside)]
    found += [path for path in _entries(CNI_RESULTS) if f'"netns":"{inside}' in path.read_text(errors="replace")]
    return found


def remove() -> None:
    """Remove these files and the kubelets' socket, and then the empty folders."""
    for path in remaining():
        path.unlink(missing_ok=True)
    # The lab's kubelet that started last has bound this socket.
    DEVICE_PLUGIN_SOCKET.unlink(missing_ok=True)
    for folder in (CONTAINER_LOGS, CNI_RESULTS, CNI_RESULTS.parent, DEVICE_PLUGINS, DEVICE_PLUGINS.parent):
        with suppress(OSError):
            folder.rmdir()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
