"""The operator's log as JSON, in the format of the processes it runs (gateway/src/proofgate/logs.py)."""

import json
import logging
import time
from typing import Any


class JsonFormatter(logging.Formatter):
    """Formats one JSON object per line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, `context` and
    `exception`.

    `context` contains the object that kopf names for a line.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
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
        # JSON itself requires escapes only for the first 32 control characters.
        return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def use_json() -> None:
    """Make the root logger's handlers write JSON from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter())
