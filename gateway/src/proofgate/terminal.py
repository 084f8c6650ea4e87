"""Safe output to a terminal. Much of the text comes from clients, providers or files: a control character in
it could rewrite the screen, set the title or send input in the user's name.

`install_escaping` escapes the output of every command; `show_bytes` writes raw bytes to standard output.
Verdicts and errors are in colour on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
"""

from __future__ import annotations

import io
import os
import sys
from enum import Enum
from typing import Any, TextIO


class Colour(Enum):
    """Colours by meaning. The values are from ECMA-48, select graphic rendition."""

    GOOD = "1;32"
    WARNING = "1;33"
    BAD = "1;31"


_ALLOWED_CONTROLS = {"\n", "\t"}


def escape_unprintable(text: str) -> str:
    """Escapes every unprintable character except line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in _ALLOWED_CONTROLS or c.isprintable() else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """Returns the text as one line, with every unprintable character escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class _EscapingStream(io.TextIOBase):
    """A text stream that escapes unprintable characters for a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_unprintable(text))
        return len(text)

    def write_in_colour(self, colour: Colour, text: str) -> None:
        """Writes a text in a colour. The text cannot end the colour, because it is escaped."""
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
    """Escapes unprintable characters in all further output to a terminal. Output to files and pipes is
    unchanged."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _EscapingStream) and stream.isatty():
            setattr(sys, name, _EscapingStream(stream))


def rewrite_line(text: str, width: int) -> int:
    """Overwrites the last line on standard error, which has `width` characters. Returns the new width."""
    stream = sys.stderr._stream if isinstance(sys.stderr, _EscapingStream) else sys.stderr
    line = escape_unprintable(text)
    stream.write(f"\r{line.ljust(width)}")
    stream.flush()
    return len(line)


def show(text: str, colour: Colour, *, before: str = "", stream: TextIO | None = None) -> None:
    """Prints a line: `before` without colour, and the text in a colour if the terminal supports colours."""
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
    """Prints the lines of a report. The last line, the verdict, has the colour of its exit code."""
    lines, newline, verdict = text.rpartition("\n")
    colour = {0: Colour.GOOD, 10: Colour.WARNING}.get(code, Colour.BAD)
    show(verdict, colour, before=f"{lines}{newline}")


def show_bytes(content: bytes, *, raw: bool = False) -> None:
    """Writes bytes to standard output: unchanged to a file or a pipe or with `raw`, escaped to a terminal."""
    if raw or not sys.stdout.isatty():
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(escape_unprintable(content.decode("utf-8", "backslashreplace")))
    sys.stdout.flush()
