"""Load for a machine that runs tests: processes that keep a core and a disk busy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_CORE = """
import os, sys
parent = int(sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
while os.getppid() == parent:
    for _ in range(10_000_000): pass
"""
_DISK = """
import os, sys, tempfile
parent = int(sys.argv[1])
block = os.urandom(1 << 20)
with tempfile.TemporaryFile(dir=sys.argv[2], buffering=0) as file:
    while os.getppid() == parent:
        file.seek(0)
        for _ in range(64): file.write(block)
        os.fsync(file.fileno())
"""


@contextmanager
def busy(core: bool = True, disk: bool = True) -> Iterator[None]:
    """Keeps a core and the disk of temporary files busy, each by a process that ends with this one."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="busy-"))
        for wanted, program in ((core, _CORE), (disk, _DISK)):
            if wanted:
                process = subprocess.Popen([sys.executable, "-c", program, str(os.getpid()), folder])
                stack.callback(process.wait)
                stack.callback(process.kill)
        yield
