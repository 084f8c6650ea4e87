"""Asks the witnesses of a policy to cosign the aggregate log (c2sp.org/tlog-witness), each in its own thread.

The core decides on requests, witnesses and times, and evaluates responses; this module has the connections. A
witness that hangs, lies or floods delays no other witness.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofgate_schema.urls import is_loopback, split_url

from proofgate import _core
from proofgate.timed_request import HttpRequestError, HttpRequestLimits, send_http_request

log = logging.getLogger("proofgate.auditor")

HTTP_LIMITS = HttpRequestLimits(seconds=5.0, max_response_bytes=1 << 16)
#: Seconds between two checks for new requests to witnesses.
CHECK_INTERVAL_SECONDS = 0.5
_COSIGNED = "cosigned"
_CONFLICT = "conflict"
#: Results that indicate a problem of the log, and not only of the witness.
_SECURITY_RESULTS = {"rollback", "fork"}
_RESULT_TEXTS = {
    _COSIGNED: "it cosigns",
    "rollback": "it reports that it cosigned a larger size than this log has",
    "fork": "it reports that it cosigned a different history of this log",
    "bad_cosignature": "its response is not a cosignature of this checkpoint by its key",
    "bad_answer": "its response does not follow the protocol",
    "unknown_log": "it does not know this log: its administrator has to add the auditor's verifying key",
    "unknown_key": "it knows this log under another key",
    "refused": "it refuses",
    "redirect": "it responds with a redirect, which is not followed",
    "too_large": "its response is too large",
    "timeout": "it does not answer in time",
    "tls": "its certificate is not trusted, or TLS fails",
    "unreachable": "it is not reachable",
    "state": "its response could not be stored",
}


class WitnessUrlError(ValueError):
    """The URL of a witness cannot be used."""


def check_urls(witnesses: Sequence[tuple[str, str | None]], allow_http: bool) -> list[str | None]:
    """Returns the URLs of the witnesses, in the order of the policy. Raises WitnessUrlError."""
    return [None if url is None else _check_url(name, url, allow_http) for name, url in witnesses]


def _check_url(name: str, text: str, allow_http: bool) -> str:
    try:
        url = split_url(text, "https://witness.example.com")
    except ValueError as error:
        raise WitnessUrlError(f"the URL of the witness {name}: {error}") from None
    if url.query or url.fragment:
        raise WitnessUrlError(f"the URL of the witness {name}: remove '?' or '#' and everything after it")
    if url.scheme != "https" and not allow_http and not is_loopback(url.hostname or ""):
        raise WitnessUrlError(
            f"the URL of the witness {name}: use https, or --allow-http-witnesses in a network that you trust"
        )
    return text.rstrip("/")


@dataclass
class Witnesses:
    """The witnesses of one auditor, and the threads that send them requests. `urls` is in the order of the
    policy. `authorities` is a file with certificates to trust instead of the system's."""

    auditor: _core.Auditor
    urls: Sequence[str | None]
    limits: HttpRequestLimits = HTTP_LIMITS
    authorities: Path | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _last_reported: dict[int, str] = field(default_factory=dict)

    def start(self) -> None:
        """Starts the threads, which send due requests until `stop`."""
        for number, url in enumerate(self.urls):
            if url is not None:
                self._thread(number, self._follow).start()

    def stop(self) -> None:
        """Stops sending requests, without waiting for running ones."""
        self._stop.set()

    def request_due(self) -> None:
        """Sends due requests to all witnesses in parallel, and waits at most until their deadline."""
        threads = [self._thread(number, self._request_and_log) for number, url in enumerate(self.urls) if url]
        for thread in threads:
            thread.start()
        # Time to connect and to exchange messages, both repeated after a conflict, and to resolve names.
        deadline = time.monotonic() + 5 * self.limits.seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _thread(self, number: int, work: Callable[[int], None]) -> threading.Thread:
        # A daemon thread, because a name server that does not answer would delay the end of the process.
        return threading.Thread(target=work, args=(number,), name=f"witness-{number}", daemon=True)

    def _follow(self, number: int) -> None:
        while not self._stop.wait(CHECK_INTERVAL_SECONDS):
            try:
                self._request_and_log(number)
            except Exception:
                log.exception("cannot process a witness now, will retry")

    def _request_and_log(self, number: int) -> None:
        while not self._stop.is_set() and self.request_cosignature(number) == _CONFLICT:
            pass

    def request_cosignature(self, number: int) -> str | None:
        """Sends one witness one request and returns the result; None if no request was due."""
        url = self.urls[number]
        try:
            question = self.auditor.next_witness_request(number, _monotonic_microseconds())
            if question is None or url is None:
                return None
            result = self._send_request(number, url, question.encode())
        except _core.ProofgateError as error:
            self._report(number, "state", str(error))
            return "state"
        self._report(number, result)
        return result

    def _send_request(self, number: int, url: str, question: bytes) -> str:
        failure = "unreachable"
        try:
            answer = send_http_request(
                "POST",
                f"{url}/add-checkpoint",
                {"Content-Type": "text/plain"},
                self.limits,
                question,
                self.authorities,
            )
            failure = "redirect" if 300 <= answer.status < 400 else ""
        except HttpRequestError as error:
            failure = error.code
        finally:
            # The core expects a result for each request that it handed out.
            if failure:
                failed = self.auditor.witness_failed(number, failure, _monotonic_microseconds())
        if failure:
            return failed
        return self.auditor.witness_answer(
            number, answer.status, answer.media_type, answer.body, _monotonic_microseconds(), int(time.time())
        )

    def _report(self, number: int, result: str, detail: str = "") -> None:
        if result in (_CONFLICT, self._last_reported.get(number)):
            return
        self._last_reported[number] = result
        name = self.auditor.witness_urls()[number][0]
        level = logging.ERROR if result in _SECURITY_RESULTS else logging.WARNING
        if result == _COSIGNED:
            level = logging.INFO
        log.log(level, "witness %s: %s [%s]", name, detail or _RESULT_TEXTS.get(result, result), result)


def _monotonic_microseconds() -> int:
    return time.monotonic_ns() // 1000
