"""A transport for httpx and httpx2 that takes note of what is sent and received, and has it proved
afterwards.

The official clients take it as
`http_client=httpx2.Client(transport=WitnessedTransport(httpx2.HTTPTransport(), witness))`. It imports neither
library: it makes what it needs of the one that it is given. It hashes bodies on their way and changes
nothing; what it finds out never reaches the exchange, which is over by then.
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

# The fields in which clients send their keys, and what chooses the dialect of errors.
_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_API_PATH = re.compile(r"(?P<before>.*?)/v1(?:beta)?/")


@dataclass
class WitnessedExchange:
    """One exchange that was seen, and what its receipt proved."""

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
    """Sends by another transport, and verifies each POST with `witness` once its answer was read or closed.

    With `at_once` that happens before the answer is closed; otherwise when `verify_all` is called. Either way
    `seen` says what came of it, and only `verify_all` raises: clients take an exception in an exchange for a
    reason to send it again.

    What is compared are the bytes of HTTP/1.1 bodies without content coding, in both directions, which is
    what the gateway sends. Whatever lies between and encodes them is told as such.
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
        """The exchanges that are over, in the order of their ends."""
        with self._lock:
            return list(self._seen)

    def verify_all(self) -> list[VerifiedReceipt]:
        """Verifies what waits for it, and returns what was proved since the last call.

        Raises the first EvidenceError, when all have been looked at; `seen` has all of them.
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
        """Sends one request; called by the client."""
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
            # Which bodies there are commitments to is known only now.
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
        """Closes the transport that sends."""
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
    """Whether the client has the whole answer: it may close a stream at its last event, before its end."""
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
    """The gateway that an exchange was had with, asked with the same key over the same transport."""

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
        except Exception as error:  # of whichever library it is
            raise EvidenceError(f"the gateway does not return the receipt: {error!r}") from None
        if len(body) > MAX_RESPONSE_BYTES:
            raise EvidenceError("the gateway's response is too long for a receipt")
        return GatewayResponse(response.status_code, body, response.headers.get("retry-after"))


@cache
def _hashing_stream_type(module: str) -> Any:
    """A stream of the library that has this module, which hashes what is read of another."""
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
