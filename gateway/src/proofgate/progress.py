"""One line on a terminal that shows that a long command works; files and pipes get nothing of it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from proofgate.terminal import rewrite_line

#: Seconds between two lines. A command that is done before the first one shows none.
_PAUSE = 0.5


@contextmanager
def show_progress(action: str, so_far: Callable[[], str] = str) -> Iterator[None]:
    """Shows the action, how far it is (for example `1200 records`) and its seconds while the body runs."""
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
