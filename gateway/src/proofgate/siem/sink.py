"""Where events go: what takes them, and how it says that it does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from proofgate.siem.events import ExchangeEvent

_MAX_SECRET_BYTES = 4096


class SinkError(Exception):
    """Events were not taken, or nobody knows whether they were. Says why, without a secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EventSink(Protocol):
    """Takes events. One thread uses it."""

    name: str
    """The address of the sink as configured, without secrets."""

    def send(self, events: Sequence[ExchangeEvent]) -> None:
        """Sends events, in their order; when it returns, they were taken, as far as the protocol tells.

        Raises SinkError.
        """


def is_notable(event: ExchangeEvent) -> bool:
    """Whether rules touched the exchange, or it was refused, or did not end well."""
    return event.facts.get("verdict") != "allowed" or event.facts.get("outcome") != "complete"


def read_secret(path: Path) -> str:
    """The value of a header field, from a file, read anew each time. Raises SinkError."""
    try:
        with path.open("rb") as file:
            value = file.read(_MAX_SECRET_BYTES + 1).decode("ascii", errors="replace").strip()
    except OSError as error:
        raise SinkError("siem_credentials", f"{path} cannot be read: {error.strerror}") from None
    if not re.fullmatch(rf"[ -~]{{1,{_MAX_SECRET_BYTES}}}", value):
        raise SinkError("siem_credentials", f"{path} must contain one line of printable ASCII")
    return value
