"""What a terminal is shown. Much of it was chosen by clients, providers or whoever wrote a file: a control
character in it could rewrite the screen, set the title or answer in the user's name.

`guard` makes it for every command at once; bytes that go to standard output as they are have `show_bytes`.
Verdicts and errors are in colour on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
"""

from __future__ import annotations

import io
import os
import sys
from enum import Enum
from typing import Any, TextIO


class Colour(Enum):
    """Colours by what they mean; the values are those of ECMA-48, select graphic rendition."""

    GOOD = "1;32"
    WARNING = "1;33"
    BAD = "1;31"


_ALLOWED_CONTROLS = {"\n", "\t"}


def escape_unprintable(text: str) -> str:
    """The text with every character that is not printed written as an escape; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c in _ALLOWED_CONTROLS or c.isprintable() else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """The text as one line: every character that is not printed is written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class _EscapingStream(io.TextIOBase):
    """A text stream that writes to a terminal only what is visible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_unprintable(text))
        return len(text)

    def write_in_colour(self, colour: Colour, text: str) -> None:
        """Writes a text in a colour. Nothing in the text ends it."""
        self._stream.write(f"\x1b[{colour.value}m{escape_unprintable(text)}\x1b[0m")

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def install_escaping() -> None:
    """From here on, what is printed on a terminal is visible. Files and pipes get what they always got."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _EscapingStream) and stream.isatty():
            setattr(sys, name, _EscapingStream(stream))


def rewrite_line(text: str, width: int) -> int:
    """Writes a line over the last one on standard error, of `width` characters. Returns the new width."""
    stream = sys.stderr._stream if isinstance(sys.stderr, _EscapingStream) else sys.stderr
    line = escape_unprintable(text)
    stream.write(f"\r{line.ljust(width)}")
    stream.flush()
    return len(line)


def show(text: str, colour: Colour, *, before: str = "", stream: TextIO | None = None) -> None:
    """Prints a line: `before` as it is, and the text in a colour where a terminal has colours."""
    out = sys.stdout if stream is None else stream
    if (
        isinstance(out, _EscapingStream)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    ):
        out.write(before)
        out.write_in_colour(colour, text)
        out.write("\n")
    else:
        print(f"{before}{text}", file=out)


def show_verdict(text: str, code: int) -> None:
    """Prints the lines of a report, and its last one, the verdict, in the colour of its exit code."""
    lines, newline, verdict = text.rpartition("\n")
    colour = {0: Colour.GOOD, 10: Colour.WARNING}.get(code, Colour.BAD)
    show(verdict, colour, before=f"{lines}{newline}")


def show_bytes(content: bytes, *, raw: bool = False) -> None:
    """Writes bytes to standard output: as they are into a file or a pipe, and to a terminal visibly, unless
    they are asked for `raw`."""
    if raw or not sys.stdout.isatty():
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(escape_unprintable(content.decode("utf-8", "backslashreplace")))
    sys.stdout.flush()
