"""The progress line of a long command is only written to a terminal."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from proofgate import progress


class Terminal(io.StringIO):
    """A terminal that signals a write."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        done = super().write(text)
        self.written.set()
        return done


def test_a_terminal_sees_how_far_it_is_and_nothing_of_it_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PAUSE", 0.001)
    with progress.show_progress("indexing", lambda: "12 records"):
        assert terminal.written.wait(60)
    lines = terminal.getvalue().split("\r")
    assert lines[1].startswith("proofgate: indexing: 12 records, ")
    # At the end, the line is blank and the cursor is at its start.
    assert lines[-2].strip() == lines[-1] == ""


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with progress.show_progress("indexing"):
        pass
    assert pipe.getvalue() == ""
