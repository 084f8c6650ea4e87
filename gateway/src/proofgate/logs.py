"""The log of a process on standard error: one line for one event, as text or as JSON.

A line of JSON has `time` (RFC 3339, UTC), `level`, `logger`, `message`, `context` (what the process is, and
what the event adds as `extra={"context": …}`), and `exception` where there is one. The core writes its own
lines in the same two forms (rust-core/crates/log).
"""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any, Literal, get_args

from proofgate import _core
from proofgate.terminal import escape_unprintable, one_line

#: Environment variable with the log format (default: text).
FORMAT_VARIABLE = "PROOFGATE_LOG_FORMAT"
LogFormat = Literal["json", "text"]


class UnknownLogFormatError(ValueError):
    """The environment names a format that there is not."""


def configure(component: str) -> None:
    """Writes the log of this process from now on, in the form that the environment names.

    Raises UnknownLogFormatError.
    """
    named = os.environ.get(FORMAT_VARIABLE) or "text"
    if named not in get_args(LogFormat):
        raise UnknownLogFormatError(f"${FORMAT_VARIABLE} is {named!r}: set it to json or text")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter({"component": component}) if named == "json" else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    _core.use_json_log(named == "json")


class TextFormatter(logging.Formatter):
    """Time, level, logger and message; the time in UTC as RFC 3339 has it."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it
        """One line. What others wrote can be in a message: names of files, answers of providers."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging calls it
        """A traceback, in lines."""
        return escape_unprintable(super().formatException(ei))


class JsonFormatter(TextFormatter):
    """The same as an object, with `context`; all of an exception is in one line."""

    def __init__(self, context: dict[str, Any]) -> None:
        super().__init__()
        self._context = context

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "context": self._context | getattr(record, "context", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        # JSON itself has escapes for the first 32 control characters alone.
        return text if text.isprintable() else "".join(map(_escape_json, text))


def _escape_json(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]
