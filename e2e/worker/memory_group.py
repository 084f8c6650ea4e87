"""A control group that limits the memory of a worker, like a pod's limit: beyond it, the kernel kills processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    """The group, with the number of kills in it."""

    folder: Path

    @property
    def prefix(self) -> list[str]:
        """The beginning of a command that runs in the group."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "in-group"]

    @property
    def kills(self) -> int:
        for name in ("memory.oom_control", "memory.events"):
            if (self.folder / name).exists():
                lines = (line.split() for line in (self.folder / name).read_text().splitlines())
                return int(dict(pair for pair in lines if len(pair) == 2)["oom_kill"])
        raise FileNotFoundError(f"{self.folder} counts no kills")


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup]:
    """A group of `limit` bytes without swap, of cgroup v1 or v2; it must be empty at the end of the block."""
    first = (_MOUNT / "memory").is_dir()
    folder = Path(tempfile.mkdtemp(prefix="proofgate-test-", dir=_MOUNT / "memory" if first else _MOUNT))
    try:
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))
        swap = folder / ("memory.memsw.limit_in_bytes" if first else "memory.swap.max")
        if swap.exists():
            swap.write_text(str(limit) if first else "0")
        yield MemoryGroup(folder)
    finally:
        folder.rmdir()
