"""Output for the user at the terminal: progress, and failures with a next step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

_started = time.monotonic()


class LabError(Exception):
    """The command cannot continue: `what` happened, and what the user can do `next`."""

    def __init__(self, what: str, next_step: str = "") -> None:
        super().__init__(f"{what}\n{next_step}" if next_step else what)


def say(message: str) -> None:
    """Print one line of progress to stderr, with the seconds since the command began. Stdout is for results."""
    print(f"[{time.monotonic() - _started:6.1f}s] {message}", file=sys.stderr, flush=True)


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log; empty if there is no log."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"  | {line[:400]}" for line in text.splitlines()[-lines:])


def wait_until(
    what: str,
    condition: Callable[[], bool],
    timeout: float,
    blame: Callable[[], str] = lambda: "",
    pause: float = 0.1,
) -> None:
    """Poll a condition, and print its name while waiting. A timeout adds the result of `blame`, such as the log."""
    begun = time.monotonic()
    said = False
    while not condition():
        waited = time.monotonic() - begun
        if waited > timeout:
            raise LabError(f"waited {timeout:.0f} s for {what}", blame())
        if waited > 1 and not said:
            say(f"waiting for {what}")
            said = True
        time.sleep(pause)
