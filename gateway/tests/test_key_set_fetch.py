"""Fetching a key set: rejected answers, and timeouts. All servers are on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler as Handler
from pathlib import Path

import pytest
from certificates import write_identity
from conftest import PATIENCE_SECONDS, refusing_port
from loopback import answer, answering

from proofgate.key_set_fetch import MAX_BYTES, KeySetFetchError, fetch_key_set

JWKS = b'{"keys": []}'


def failure(url: str, timeout: float = PATIENCE_SECONDS) -> str:
    with pytest.raises(KeySetFetchError) as caught:
        fetch_key_set(url, timeout)
    assert "sk-very-secret" not in str(caught.value)
    return caught.value.code


def test_a_key_set_is_one_get_of_the_whole_url() -> None:
    seen: list[tuple[str, str | None]] = []

    def respond(handler: Handler) -> None:
        seen.append((handler.path, handler.headers["Accept"]))
        answer(JWKS)(handler)

    with answering(respond) as url:
        assert fetch_key_set(url, PATIENCE_SECONDS) == JWKS.decode()
    assert seen == [("/jwks?version=1", "application/json")]


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    def respond(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(JWKS)

    with answering(respond) as url:
        assert fetch_key_set(url, PATIENCE_SECONDS) == JWKS.decode()


@pytest.mark.parametrize(
    ("respond", "code"),
    [
        (answer(b"sk-very-secret", status=301), "redirect"),
        (answer(b"sk-very-secret", status=404), "http_status"),
        (answer(b"sk-very-secret", status=503), "http_status"),
        (answer(b" " * (MAX_BYTES + 1)), "too_large"),
        (answer(JWKS, length=len(JWKS) + 1), "bad_answer"),
        (answer(b"\xff"), "bad_answer"),
        (lambda handler: handler.wfile.write(b"SSH-2.0-sk-very-secret\r\n"), "bad_answer"),
    ],
)
def test_an_answer_that_is_no_key_set_is_refused(respond: Callable[[Handler], None], code: str) -> None:
    with answering(respond) as url:
        assert failure(url) == code


def test_an_answer_of_the_largest_size_is_read() -> None:
    with answering(answer(b" " * MAX_BYTES)) as url:
        assert len(fetch_key_set(url, PATIENCE_SECONDS)) == MAX_BYTES


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"])
def test_an_answer_that_drips_is_given_up_in_time(start: bytes) -> None:
    # Each byte arrives within the timeout of a single read, so only a total deadline ends the request.
    given_up = threading.Event()

    def respond(handler: Handler) -> None:
        handler.wfile.write(start)
        while not given_up.wait(0.02):
            handler.wfile.write(b"H" if start else b" ")

    with answering(respond) as url:
        try:
            assert failure(url, timeout=0.3) == "timeout"
        finally:
            given_up.set()


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    given_up = threading.Event()

    def respond(_: Handler) -> None:
        given_up.wait()

    with answering(respond) as url:
        try:
            assert failure(url, timeout=0.1) == "timeout"
        finally:
            given_up.set()


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with refusing_port() as port:
        assert failure(f"http://127.0.0.1:{port}/jwks") == "unreachable"


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_has_no_address_is_unreachable(host: str) -> None:
    assert failure(f"http://{host}/") == "unreachable"


def test_https_wants_a_certificate_that_the_system_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = write_identity(tmp_path)
    with answering(answer(JWKS), (certificate, key)) as url:
        assert failure(url) == "tls"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert fetch_key_set(url, PATIENCE_SECONDS) == JWKS.decode()
        assert failure(url.replace("127.0.0.1", "localhost")) == "tls"


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(answer(JWKS)) as url:
        assert fetch_key_set(url, PATIENCE_SECONDS) == JWKS.decode()
