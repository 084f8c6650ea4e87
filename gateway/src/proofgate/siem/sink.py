"""The interface of a sink for events, and its error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from proofgate.siem.events import ExchangeEvent

_MAX_SECRET_BYTES = 4096


class SinkError(Exception):
    """Events were not accepted, or it is unknown whether they were. The message says why and contains no
    secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EventSink(Protocol):
    """A receiver of events. For use by one thread."""

    name: str
    """The address of the sink as configured, without secrets."""

    def send(self, events: Sequence[ExchangeEvent]) -> None:
        """Sends events in order. On return, the sink has accepted them, as far as the protocol shows.

        Raises SinkError.
        """


def is_notable(event: ExchangeEvent) -> bool:
    """Whether rules affected the exchange, or it was refused, or it did not end successfully."""
    return event.facts.get("verdict") != "allowed" or event.facts.get("outcome") != "complete"


def read_secret(path: Path) -> str:
    """Reads the value of a header field from a file, on each call. Raises SinkError."""
    try:
        with path.open("rb") as file:
            value = file.read(_MAX_SECRET_BYTES + 1).decode("ascii", errors="replace").strip()
    except OSError as error:
        raise SinkError("siem_credentials", f"{path} cannot be read: {error.strerror}") from None
    if not re.fullmatch(rf"[ -~]{{1,{_MAX_SECRET_BYTES}}}", value):
        raise SinkError("siem_credentials", f"{path} must contain one line of printable ASCII")
    return value
