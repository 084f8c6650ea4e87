"""Fetches a JSON Web Key Set: one GET with limits on time and size, authenticated only by TLS."""

from __future__ import annotations

import http

from proofgate.timed_request import HttpRequestError, HttpRequestLimits, HttpResponse, send_http_request

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 262_144


class KeySetFetchError(HttpRequestError):
    """A key set could not be fetched. The message says why, without any text of the response."""


def fetch_key_set(url: str, timeout: float = TIMEOUT_SECONDS) -> str:
    """Returns the text at an http(s) URL; https uses the system's root certificates. Blocks; raises
    KeySetFetchError.

    The connection may take `timeout` seconds for each address, and the whole exchange another `timeout`
    seconds.
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
