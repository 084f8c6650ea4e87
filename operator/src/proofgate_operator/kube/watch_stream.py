"""The query of a watch, and the decoder of its events."""

import json
import random
from collections.abc import Iterator

from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.errors import ApiError

#: Minimum seconds after which the API server ends a watch, and seconds of silence after which a watch is
#: closed: the server sends a bookmark about once a minute.
_WATCH_SECONDS = 300
IDLE_TIMEOUT_SECONDS = 120


def watch_query(selector: str, version: str) -> dict[str, str]:
    """Return the query of a watch for the events from a version on, including bookmarks."""
    query = {"labelSelector": selector} if selector else {}
    return query | {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(int(_WATCH_SECONDS * random.uniform(1, 2))),
        "resourceVersion": version,
    }


class EventDecoder:
    """Decodes the chunks of a response into events; each event is one line of JSON.

    An object may be longer than the line limit of the stream's own reader.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[Manifest]:
        """Yield the events that end in a chunk; raises `ApiError` for an error event."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            text = b"".join([*self._pieces, line])
            self._pieces.clear()
            if text:
                yield _event(text)
        if rest:
            self._pieces.append(rest)


def _event(line: bytes) -> Manifest:
    event: Manifest = json.loads(line)
    if event["type"] == "ERROR":
        told = event["object"]
        raise ApiError(told.get("code", 500), told.get("reason", "Unknown"), told.get("message", ""))
    return event
