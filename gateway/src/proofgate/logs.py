"""The log of a process on standard error: one line per event, as text or as JSON.

A JSON line has `time` (RFC 3339, UTC), `level`, `logger`, `message`, `context` (the kind of process, and the
event's `extra={"context": …}`), and `exception` if there is one. The core writes its own lines in the same
two formats (rust-core/crates/log).
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
    """The environment names an unknown format."""


def configure(component: str) -> None:
    """Configures the log of this process in the format that the environment names.

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
    """Formats time, level, logger and message; the time in UTC as in RFC 3339."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it
        """Formats a single line, because a message may contain foreign text, such as file names or responses
        of providers."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging calls it
        """Formats a traceback in several lines."""
        return escape_unprintable(super().formatException(ei))


class JsonFormatter(TextFormatter):
    """Formats the same as a JSON object with `context`. An exception is in the same line."""

    def __init__(self, context: dict[str, Any]) -> None:
        super().__init__()
        self._context = context

    def format(self, record: logging.LogRecord) -> str:
        """Formats one line of JSON."""
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
        # The JSON encoder escapes only the first 32 control characters.
        return text if text.isprintable() else "".join(map(_escape_json, text))


def _escape_json(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]
