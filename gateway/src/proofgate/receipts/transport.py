"""A transport for httpx and httpx2 that records the digests of sent and received bodies, and verifies their
receipts afterwards.

The official clients accept it as
`http_client=httpx2.Client(transport=WitnessedTransport(httpx2.HTTPTransport(), witness))`. It imports neither
library, but uses the library of the given transport. It hashes bodies during their transfer and changes
nothing. The verification never affects the exchange, which has ended before.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Any, Self

from proofgate.evidence import EvidenceError
from proofgate.receipts.fetch import MAX_RESPONSE_BYTES, GatewayResponse
from proofgate.receipts.verified_receipt import ContradictedError, VerifiedReceipt, verify
from proofgate.receipts.witness import Witness

# The header fields in which clients send their keys, and the field that selects the format of errors.
_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_API_PATH = re.compile(r"(?P<before>.*?)/v1(?:beta)?/")


@dataclass
class WitnessedExchange:
    """One observed exchange, and the result of its receipt."""

    id: str
    """The value of `x-request-id`; empty if the response has no such header."""
    status: int
    request: bytes
    """SHA-256 of the request body."""
    response: bytes
    """SHA-256 of the response body, as far as the body was read."""
    received: int = 0
    """Number of bytes of the response body that were read."""
    ended: bool = False
    """Whether the response body was read to its end."""
    verified: VerifiedReceipt | None = None
    error: EvidenceError | None = None
    """Why the receipt could not be verified."""
    _source: _TransportSource | None = field(default=None, repr=False)


class WitnessedTransport:
    """Sends with another transport, and verifies each POST with `witness` after its response was read or
    closed.

    With `at_once`, the verification happens before the response is closed; otherwise when `verify_all` is
    called. In both cases `exchanges` has the result, and only `verify_all` raises, because clients retry a
    request after an exception.

    It compares the bytes of HTTP/1.1 bodies without content coding, in both directions, as the gateway sends
    and receives them. A content coding by an intermediary is reported as such.
    """

    def __init__(
        self, inner: Any, witness: Witness, *, at_once: bool = False, timeout_seconds: float = 10
    ) -> None:
        """`inner` is an `HTTPTransport` of httpx or httpx2."""
        self._inner = inner
        self._witness = witness
        self._at_once = at_once
        self._timeout = timeout_seconds
        self._lock = threading.Lock()
        self._seen: list[WitnessedExchange] = []
        self._waiting: list[WitnessedExchange] = []

    @property
    def exchanges(self) -> list[WitnessedExchange]:
        """The ended exchanges, in the order of their ends."""
        with self._lock:
            return list(self._seen)

    def verify_all(self) -> list[VerifiedReceipt]:
        """Verifies the pending exchanges, and returns the results since the last call.

        After all are checked, raises the first EvidenceError; `exchanges` has all errors.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for exchange in waiting:
            self._verify(exchange)
        for exchange in waiting:
            if exchange.error is not None:
                raise exchange.error
        return [exchange.verified for exchange in waiting if exchange.verified is not None]

    def handle_request(self, request: Any) -> Any:
        """Sends one request. Called by the client."""
        if request.method != "POST":
            return self._inner.handle_request(request)
        body, nothing = hashlib.sha256(request.read()).digest(), hashlib.sha256().digest()
        response = self._inner.handle_request(request)
        exchange = WitnessedExchange(
            response.headers.get("x-request-id", ""), response.status_code, body, nothing
        )
        exchange._source = _TransportSource(self._inner, request)
        coding = response.headers.get("content-encoding", "identity").lower()
        if not exchange.id:
            exchange.error = EvidenceError("the response has no x-request-id: it did not come from a gateway")
        elif coding != "identity":
            exchange.error = EvidenceError(
                f"the response has the content coding {coding}, which the gateway does not "
                "apply: its bytes were changed on the way"
            )
        response.stream = _hashing_stream_type(type(request).__module__)(
            response.stream, exchange, self._finish
        )
        return response

    def _finish(self, exchange: WitnessedExchange) -> None:
        if self._at_once:
            self._verify(exchange)
        with self._lock:
            self._seen.append(exchange)
            self._waiting.append(exchange)

    def _verify(self, exchange: WitnessedExchange) -> None:
        if exchange.error is not None or exchange.verified is not None or exchange._source is None:
            return
        try:
            verified = self._witness.fetch(exchange._source, exchange.id, timeout_seconds=self._timeout)
            # Only the verified records show which bodies have commitments.
            admission, end = verified.record_of_kind("admission"), verified.record_of_kind("completion")
            if admission is not None:
                was_read = end is not None and _was_fully_read(exchange, end.facts)
                response = exchange.response if was_read else None
                verified = verify(verified.receipt, self._witness.vkey, exchange.request, response)
            _require_status(exchange, verified)
            exchange.verified = verified
        except EvidenceError as error:
            exchange.error = error

    def close(self) -> None:
        """Closes the inner transport."""
        self._inner.close()

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._inner.__exit__(kind, error, trace)


def _was_fully_read(exchange: WitnessedExchange, end: dict[str, Any]) -> bool:
    """Whether the client has read the whole response. A client may close a stream after the last event,
    before the end of the body."""
    return exchange.ended or exchange.received >= int(end.get("bytes", 0))


def _require_status(exchange: WitnessedExchange, verified: VerifiedReceipt) -> None:
    end = verified.record_of_kind("completion") or verified.record_of_kind("rejection")
    if end is None:
        if exchange.ended:
            raise ContradictedError(f"{exchange.id} was answered completely, but its end is not recorded")
    elif end.facts.get("status") != exchange.status:
        raise ContradictedError(
            f"{exchange.id} was answered with status {exchange.status}, but recorded with "
            f"{end.facts.get('status')}"
        )


class _TransportSource:
    """The gateway of an exchange, with the same key and the same transport."""

    def __init__(self, inner: Any, request: Any) -> None:
        self._inner = inner
        self._make = type(request)
        self._url = request.url
        self._headers = [
            (name, request.headers[name]) for name in _CREDENTIAL_HEADERS if name in request.headers
        ]

    def get(self, path: str, timeout_seconds: float) -> GatewayResponse:
        found = _API_PATH.match(self._url.path)
        if found is None:
            raise EvidenceError(f"{self._url.path} is not a path of the gateway")
        target = (found["before"] + path).encode()
        phases = dict.fromkeys(("connect", "read", "write", "pool"), timeout_seconds)
        request = self._make(
            "GET",
            self._url.copy_with(raw_path=target),
            headers=[*self._headers, ("accept-encoding", "identity")],
            extensions={"timeout": phases},
        )
        try:
            response = self._inner.handle_request(request)
            try:
                body = b"".join(response.stream)
            finally:
                response.stream.close()
        except Exception as error:  # the exceptions depend on the library
            raise EvidenceError(f"the gateway does not return the receipt: {error!r}") from None
        if len(body) > MAX_RESPONSE_BYTES:
            raise EvidenceError("the gateway's response is too long for a receipt")
        return GatewayResponse(response.status_code, body, response.headers.get("retry-after"))


@cache
def _hashing_stream_type(module: str) -> Any:
    """Returns a stream class for the library with this module. It hashes the bytes that are read from another
    stream."""
    library: Any = sys.modules[module.partition(".")[0]]

    class Hashing(library.SyncByteStream):  # type: ignore[misc]
        def __init__(
            self, stream: Any, exchange: WitnessedExchange, end: Callable[[WitnessedExchange], None]
        ) -> None:
            self._stream = stream
            self._exchange = exchange
            self._digest = hashlib.sha256()
            self._end: Callable[[WitnessedExchange], None] | None = end

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._stream:
                self._digest.update(piece)
                self._exchange.received += len(piece)
                yield piece
            self._exchange.ended = True

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                end, self._end = self._end, None
                if end is not None:
                    self._exchange.response = self._digest.digest()
                    end(self._exchange)

    return Hashing
