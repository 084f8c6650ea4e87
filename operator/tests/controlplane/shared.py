"""One control plane for all processes of pytest-xdist: the first starts it and stops it after the last.

Each test has its own namespace. Tests that change the CRD have their own control plane.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.server import ControlPlane, start


@contextmanager
def shared_plane(folder: Path, prepare: Callable[[ControlPlane], None]) -> Iterator[ControlPlane]:
    """Use the control plane in `folder` for the block; the process that starts it prepares it.

    Every user holds a shared lock, which the kernel releases when the process ends.
    """
    folder.mkdir(exist_ok=True)
    state = folder / "plane"
    with (folder / "starting").open("a") as starting, (folder / "users").open("a") as users:
        started: ControlPlane | None = None
        fcntl.flock(starting, fcntl.LOCK_EX)
        try:
            # Waits while another process stops a control plane.
            fcntl.flock(users, fcntl.LOCK_SH)
            if state.exists():
                home, url = state.read_text().splitlines()
                plane = ControlPlane(Path(home), url)
            else:
                number = sum(1 for _ in folder.glob("run-*"))
                plane = started = start(folder / f"run-{number}")
                try:
                    prepare(plane)
                except BaseException:
                    plane.stop()
                    raise
                state.write_text(f"{plane.folder}\n{plane.url}\n")
        finally:
            fcntl.flock(starting, fcntl.LOCK_UN)
        try:
            yield plane
        finally:
            if started is None:
                plane.api.close()
            else:
                fcntl.flock(users, fcntl.LOCK_EX)
                state.unlink()
                started.stop()
