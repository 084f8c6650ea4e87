"""A probe of the whole request path: the agent sends HAProxy a request like a client's, which a worker
answers.

The request is `GET /`, which needs no key and leaves no record. It covers HAProxy's listener, its TLS, the
choice of a worker, and the PROXY header.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from dataclasses import dataclass

log = logging.getLogger("proofgate.haproxy-sidecar")

PROBE_INTERVAL_SECONDS = 5.0
# Seconds for one probe: more than HAProxy waits for a connection to a worker, including retries.
_PROBE_TIMEOUT_SECONDS = 15.0
_HANDSHAKE_SECONDS = 5.0
# Number of successive failures that are reported. Single failures are normal while a worker is replaced.
_FAILURE_THRESHOLD = 3
_REQUEST = b"GET / HTTP/1.1\r\nHost: haproxy-sidecar\r\nConnection: close\r\n\r\n"
_MAX_RESPONSE_BYTES = 16384
_OK_STATUS_LINE = re.compile(rb"HTTP/1\.[01] 200 [^\n]*\n")
_NO_WORKER = b"no_worker_available"


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe. `reason` is empty if the request was answered."""

    reason: str = ""
    message: str = ""


class ProbeError(Exception):
    """A request was not answered correctly. The error has a reason code and a message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = ProbeResult(reason, message)


class TrafficProbe:
    """Probes HAProxy at an address repeatedly. `tls`: HAProxy uses TLS. `proxied`: HAProxy expects a PROXY
    header (version 1) at the start of each connection."""

    def __init__(self, address: tuple[str, int], *, tls: bool = False, proxied: bool = False) -> None:
        self._address = address
        self._context = _context() if tls else None
        self._proxied = proxied
        self._failures = 0
        self._last: ProbeResult | None = None

    async def run(self) -> None:
        """Probes in an endless loop."""
        while True:
            try:
                await self.probe()
            except Exception:
                # After any error, the next request may succeed.
                log.exception("no request could be sent through HAProxy")
            await asyncio.sleep(PROBE_INTERVAL_SECONDS)

    async def probe(self) -> None:
        """Sends one probe."""
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_SECONDS):
                await self._send_request()
        except TimeoutError:
            self._record_failure(
                ProbeResult("NotAnswered", f"no response arrived within {_PROBE_TIMEOUT_SECONDS:.0f} s")
            )
        except ProbeError as error:
            self._record_failure(error.answer)
        except OSError as error:
            self._record_failure(
                ProbeResult(
                    "NotReached",
                    f"HAProxy accepts no connection: {error.strerror or 'the connection was closed'}",
                )
            )
        else:
            self._failures, self._last = 0, ProbeResult()

    def status(self) -> dict[str, object]:
        """The status for the operator. `answered` is null until it is known."""
        if self._last is None:
            return {"answered": None, "reason": "", "message": ""}
        return {"answered": not self._last.reason, "reason": self._last.reason, "message": self._last.message}

    def _record_failure(self, answer: ProbeResult) -> None:
        self._failures += 1
        if self._failures >= _FAILURE_THRESHOLD:
            self._last = answer

    async def _send_request(self) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            if self._proxied:
                writer.write(b"PROXY UNKNOWN\r\n")
            if self._context is not None:
                await _start_tls(writer, self._context)
            writer.write(_REQUEST)
            await writer.drain()
            _check_response(await _read_response(reader))
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                await writer.wait_closed()


def _context() -> ssl.SSLContext:
    """The TLS context for the local HAProxy. The names in the certificate are not checked, which is the task
    of clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _start_tls(writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
    try:
        await writer.start_tls(context, ssl_handshake_timeout=_HANDSHAKE_SECONDS)
    except (ssl.SSLError, OSError) as error:
        what = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise ProbeError("TLSFails", f"the TLS handshake with HAProxy failed: {what}") from None


async def _read_response(reader: asyncio.StreamReader) -> bytes:
    """Reads the necessary part of the response: only the head of a successful one."""
    answer = b""
    while len(answer) < _MAX_RESPONSE_BYTES and not _OK_STATUS_LINE.match(answer):
        try:
            piece = await reader.read(_MAX_RESPONSE_BYTES)
        except OSError:
            break
        if not piece:
            break
        answer += piece
    return answer


def _check_response(answer: bytes) -> None:
    """Raises ProbeError if the response is not from a worker."""
    line, end, rest = answer.partition(b"\r\n")
    words = line.split(b" ", 2)
    if not answer:
        raise ProbeError("NotAnswered", "the connection was closed without an answer")
    if not end or len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ProbeError("NotAnswered", "the response is not HTTP")
    status = int(words[1])
    if _NO_WORKER in rest:
        raise ProbeError("NoWorkerUp", f"HAProxy has no worker that is up, and answers {status}")
    if status != 200:
        raise ProbeError("WorkerFails", f"GET / is answered with {status}")
