"""A stand-in for stored payloads: it contains only what a test puts into `STORED`."""

from __future__ import annotations

from typing import Self, final

_NOT_STORED = ("payload_not_stored", "it was not stored: committed")


@final
class StoredExchange:
    def __init__(self, request: bytes | None = None, response: bytes | None = None) -> None:
        self._request, self._response = request, response

    @property
    def directory(self) -> str:
        return "ledger/0/01M89PCZT1JE2K4A4FYY15YK69"

    @property
    def admission(self) -> bytes:
        return b'{"kind":"admission"}'

    @property
    def end(self) -> bytes | None:
        return None

    @property
    def request(self) -> bytes | None:
        return self._request

    @property
    def response(self) -> bytes | None:
        return self._response

    @property
    def no_request(self) -> tuple[str, str] | None:
        return _NOT_STORED if self._request is None else None

    @property
    def no_response(self) -> tuple[str, str] | None:
        return _NOT_STORED if self._response is None else None


#: The stored payloads, by request id.
STORED: dict[str, StoredExchange] = {}


@final
class StoredPayloads:
    def __init__(self, ledger: str, verifying_key: str, shred_keys: str | None = None) -> None:
        del ledger, verifying_key, shred_keys
        self._left = iter(STORED.values())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StoredExchange:
        return next(self._left)


def stored_payload(
    ledger: str, verifying_key: str, request_id: str, shred_keys: str | None = None
) -> StoredExchange:
    del ledger, verifying_key, shred_keys
    return STORED[request_id]
