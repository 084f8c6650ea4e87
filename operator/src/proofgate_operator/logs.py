"""The operator's log as JSON, in the form of the processes that it runs (gateway/src/proofgate/logs.py)."""

import json
import logging
import time
from typing import Any


class JsonFormatter(logging.Formatter):
    """One object a line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, `context`, and `exception`.

    The context has the object that kopf says a line is about.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        context: dict[str, Any] = {"component": "operator"}
        if found := getattr(record, "k8s_ref", None):
            context["object"] = found
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "context": context,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        # JSON itself has escapes for the first 32 control characters alone.
        return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def use_json() -> None:
    """Format what the root logger's handlers write as JSON from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter())
