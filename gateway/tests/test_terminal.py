"""Output to a terminal: colored verdicts, and no control characters from other sources."""

from __future__ import annotations

import io
import sys

import pytest

from proofgate import terminal
from proofgate.exit_codes import ExitCode, fail

GREEN, YELLOW, RED, END = "\x1b[1;32m", "\x1b[1;33m", "\x1b[1;31m", "\x1b[0m"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def guarded(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replaces both output streams by a terminal, and returns it."""
    made = Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, made)
    terminal.install_escaping()
    return made


@pytest.mark.parametrize(
    ("code", "colour"),
    [
        (ExitCode.OK, GREEN),
        (ExitCode.INCOMPLETE, YELLOW),
        (ExitCode.INVALID, RED),
        (ExitCode.ANOTHER_KEY, RED),
    ],
)
def test_the_verdict_has_the_colour_of_its_exit_code_and_its_report_none(
    monkeypatch: pytest.MonkeyPatch, code: int, colour: str
) -> None:
    seen = guarded(monkeypatch)
    terminal.show_verdict("origin: a\nthe verdict", code)
    assert seen.getvalue() == f"origin: a\n{colour}the verdict{END}\n"


def test_an_error_is_red_and_what_explains_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = guarded(monkeypatch)
    assert fail("not verified: no signature [another_key]", ExitCode.INVALID) == ExitCode.ANOTHER_KEY
    first, *rest = seen.getvalue().splitlines()
    assert first == f"{RED}proofgate: not verified: no signature [another_key]{END}"
    assert rest
    assert not any("\x1b" in line for line in rest)


def test_a_coloured_text_brings_no_control_character_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = guarded(monkeypatch)
    terminal.show(f"bad{END}\x1b[2Jgood", terminal.Colour.BAD)
    assert seen.getvalue() == f"{RED}bad\\x1b[0m\\x1b[2Jgood{END}\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colour_gets_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    seen = guarded(monkeypatch)
    monkeypatch.setenv(name, value)
    terminal.show_verdict("verified", ExitCode.OK)
    assert seen.getvalue() == "verified\n"


def test_a_file_gets_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_verdict("origin: a\nverified", ExitCode.OK)
    assert capsys.readouterr().out == "origin: a\nverified\n"
