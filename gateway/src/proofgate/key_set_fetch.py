"""Fetching a JSON Web Key Set: one GET, bounded in time and size, believed only as far as TLS goes."""

from __future__ import annotations

import http

from proofgate.timed_request import HttpRequestError, HttpRequestLimits, HttpResponse, send_http_request

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 262_144


class KeySetFetchError(HttpRequestError):
    """A key set could not be fetched. Says why, without a word of the answer."""


def fetch_key_set(url: str, timeout: float = TIMEOUT_SECONDS) -> str:
    """The text at an http(s) URL; https with the system's roots. Blocks; raises KeySetFetchError.

    Connecting may take `timeout` seconds for each address, the exchange as a whole `timeout` seconds more.
    """
    try:
        answer = send_http_request(
            "GET", url, {"Accept": "application/json"}, HttpRequestLimits(timeout, MAX_BYTES)
        )
    except HttpRequestError as error:
        raise KeySetFetchError(error.code, str(error)) from None
    return _text(answer)


def _text(answer: HttpResponse) -> str:
    if 300 <= answer.status < 400:
        raise KeySetFetchError("redirect", "redirects are not followed: set jwksURL to the final URL")
    if answer.status != http.HTTPStatus.OK:
        raise KeySetFetchError("http_status", f"the response has status {answer.status}")
    try:
        return answer.body.decode()
    except UnicodeDecodeError:
        raise KeySetFetchError("bad_answer", "the response is not UTF-8 text") from None
