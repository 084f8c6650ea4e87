"""Whether requests are answered: the agent asks HAProxy what a client could, and a worker answers.

`GET /` needs no key and leaves no record. It goes the whole way: HAProxy's listener, its TLS, the choice of
a worker, the PROXY header.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from dataclasses import dataclass

log = logging.getLogger("proofgate.haproxy-sidecar")

ASK_SECONDS = 5.0
# Longer than HAProxy waits for a connection to a worker, with its retries.
_PATIENCE_SECONDS = 15.0
_HANDSHAKE_SECONDS = 5.0
# A worker that is replaced may be missed now and then: what fails so often in a row is told.
_FAILURES = 3
_REQUEST = b"GET / HTTP/1.1\r\nHost: haproxy-sidecar\r\nConnection: close\r\n\r\n"
_MOST_BYTES = 16384
_GOOD = re.compile(rb"HTTP/1\.[01] 200 [^\n]*\n")
_NO_WORKER = b"no_worker_available"


@dataclass(frozen=True)
class Answer:
    """What became of a request: `reason` is empty when it was answered."""

    reason: str = ""
    message: str = ""


class AnswersError(Exception):
    """A request that was not answered as it should be: why, in a word and in a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = Answer(reason, message)


class Answers:
    """Asks HAProxy at an address again and again. `tls`: it shows a certificate; `proxied`: it wants a PROXY
    header (version 1) in front of each connection."""

    def __init__(self, address: tuple[str, int], *, tls: bool = False, proxied: bool = False) -> None:
        self._address = address
        self._context = _context() if tls else None
        self._proxied = proxied
        self._failures = 0
        self._last: Answer | None = None

    async def run(self) -> None:
        """Asks for ever."""
        while True:
            try:
                await self.ask()
            except Exception:
                # Whatever it is, the next request may end otherwise.
                log.exception("no request could be sent through HAProxy")
            await asyncio.sleep(ASK_SECONDS)

    async def ask(self) -> None:
        """Asks once."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._request()
        except TimeoutError:
            self._failed(Answer("NotAnswered", f"no response arrived within {_PATIENCE_SECONDS:.0f} s"))
        except AnswersError as error:
            self._failed(error.answer)
        except OSError as error:
            self._failed(
                Answer("NotReached", f"HAProxy accepts no connection: {error.strerror or 'it was closed'}")
            )
        else:
            self._failures, self._last = 0, Answer()

    def status(self) -> dict[str, object]:
        """What the operator asks for: `answered` is null until it is known."""
        if self._last is None:
            return {"answered": None, "reason": "", "message": ""}
        return {"answered": not self._last.reason, "reason": self._last.reason, "message": self._last.message}

    def _failed(self, answer: Answer) -> None:
        self._failures += 1
        if self._failures >= _FAILURES:
            self._last = answer

    async def _request(self) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            if self._proxied:
                writer.write(b"PROXY UNKNOWN\r\n")
            if self._context is not None:
                await _start_tls(writer, self._context)
            writer.write(_REQUEST)
            await writer.drain()
            _judge(await _read(reader))
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                await writer.wait_closed()


def _context() -> ssl.SSLContext:
    """TLS to the HAProxy beside this process: whom the certificate names is for clients to judge."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _start_tls(writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
    try:
        await writer.start_tls(context, ssl_handshake_timeout=_HANDSHAKE_SECONDS)
    except (ssl.SSLError, OSError) as error:
        what = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise AnswersError("TLSFails", f"the TLS handshake with HAProxy failed: {what}") from None


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The answer, as far as it matters: of one that is good, its head."""
    answer = b""
    while len(answer) < _MOST_BYTES and not _GOOD.match(answer):
        try:
            piece = await reader.read(_MOST_BYTES)
        except OSError:
            break
        if not piece:
            break
        answer += piece
    return answer


def _judge(answer: bytes) -> None:
    """Raises AnswersError unless a worker has answered."""
    line, end, rest = answer.partition(b"\r\n")
    words = line.split(b" ", 2)
    if not answer:
        raise AnswersError("NotAnswered", "the connection was closed without an answer")
    if not end or len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise AnswersError("NotAnswered", "the response is not HTTP")
    status = int(words[1])
    if _NO_WORKER in rest:
        raise AnswersError("NoWorkerUp", f"HAProxy has no worker that is up, and answers {status}")
    if status != 200:
        raise AnswersError("WorkerFails", f"GET / is answered with {status}")
