"""One watch of the API server: how it is asked for, and the events that its answer is made of."""

import json
import random
from collections.abc import Iterator

from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.errors import ApiError

#: Seconds after which the API server ends a watch, at least, and after which one without a word is given up:
#: the server sends a bookmark about once a minute.
_WATCH_SECONDS = 300
IDLE_TIMEOUT_SECONDS = 120


def watch_query(selector: str, version: str) -> dict[str, str]:
    """Return what asks for the events from a version on, bookmarks among them."""
    query = {"labelSelector": selector} if selector else {}
    return query | {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(int(_WATCH_SECONDS * random.uniform(1, 2))),
        "resourceVersion": version,
    }


class EventDecoder:
    """Makes events of the pieces in which an answer arrives; each event is one line of JSON.

    An object may be longer than any line that the stream's own reader takes.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[Manifest]:
        """Yield the events that end in a piece; raises `ApiError` for one that tells of an error."""
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
