"""A progress line on a terminal for long commands. It is not written to files and pipes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from proofgate.terminal import rewrite_line

#: Seconds between two updates. A command that ends before the first update shows none.
_PAUSE = 0.5


@contextmanager
def show_progress(action: str, so_far: Callable[[], str] = str) -> Iterator[None]:
    """Shows the action, its progress (for example `1200 records`) and its seconds during the block."""
    if not sys.stderr.isatty():
        yield
        return
    ended, start, width = threading.Event(), time.monotonic(), [0]

    def show() -> None:
        while not ended.wait(_PAUSE):
            parts = (so_far(), f"{int(time.monotonic() - start)} s")
            width[0] = rewrite_line(f"proofgate: {action}: {', '.join(filter(None, parts))}", width[0])

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if width[0]:
            rewrite_line("", width[0])
            rewrite_line("", 0)
