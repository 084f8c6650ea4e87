"""A stand-in for the core's recorded exchanges and their replay, with results from the test."""

# ruff: noqa: ARG002 - the arguments are those of the real ones

from __future__ import annotations

import json
from typing import Any

from proofgate import _core


class RecordedExchange:
    """An exchange's records, and its bodies or the reasons why they are missing."""

    def __init__(
        self,
        begin: dict[str, Any],
        completion: dict[str, Any] | None = None,
        configuration: str | None = None,
        version: str = _core.__version__,
        origin: str = "a/0/X",
        **bodies: bytes | str,
    ) -> None:
        self._begin, self._completion = begin, completion
        self._configuration, self._version, self._bodies = configuration, version, bodies
        self._origin = origin
        self.committed: dict[str, bytes] = {}

    @property
    def first_record(self) -> bytes:
        return json.dumps(self._begin).encode()

    @property
    def completion(self) -> bytes | None:
        return None if self._completion is None else json.dumps(self._completion).encode()

    @property
    def configuration(self) -> str | None:
        return self._configuration

    @property
    def version(self) -> str:
        return self._version

    @property
    def origin(self) -> str:
        return self._origin

    def stored(self, answer: bool) -> bytes | str:
        return self._bodies.get("response" if answer else "request", "not_stored")

    def commits_to(self, answer: bool, body: bytes) -> str | None:
        return None if self.committed["response" if answer else "request"] == body else "other_body"


class RecordedExchanges:
    """The exchanges that the test has added."""

    held: tuple[RecordedExchange, ...] = ()

    def __init__(
        self,
        ledger: str,
        verifying_key: str,
        keeping_key: str | None = None,
        shred_keys: str | None = None,
        since_us: int | None = None,
        until_us: int | None = None,
        tenant: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> None:
        self._left = list(self.held)

    def take(self, most: int) -> list[RecordedExchange]:
        taken, self._left = self._left[:most], self._left[most:]
        return taken

    @property
    def problems(self) -> list[str]:
        return []

    @property
    def unverified(self) -> int:
        return 0


class Replayer:
    """Returns the results in the configuration, which is JSON: `{"request": ..., "response": ...}`."""

    compiled = 0

    def __init__(self, configuration: bytes, other: bool = False) -> None:
        Replayer.compiled += 1
        self._said = json.loads(configuration)

    def request(self, exchange: RecordedExchange, body: bytes | None) -> str | None:
        return self._compared("request", body)

    def response(self, exchange: RecordedExchange, body: bytes | None) -> str | None:
        return self._compared("response", body)

    def _compared(self, direction: str, body: bytes | None) -> str | None:
        said = self._said.get(direction)
        if said is not None and body is None:
            said = {"result": "not_replayable", "reason": "not_stored", "recorded": said["recorded"]}
        return None if said is None else json.dumps(said)
