"""A policy that an HTTP service evaluates."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from certificates import write_identity
from conftest import PATIENCE_SECONDS, refusing_port

from proofgate.policy import Allow, Deny, Flag, PolicyRequest, PolicyText, Replace, Replacement
from proofgate.policy.http_hook import HttpHook, HttpHookError

REQUEST = PolicyRequest("acme", "gpt", "/v1/chat/completions", (PolicyText("hello", "text", True),))
Answer = tuple[int, bytes]


class Service:
    """A guardrail service on loopback with the test's answers; records `bodies` and `tokens` of requests."""

    def __init__(self, answer: Callable[[], Answer], context: ssl.SSLContext | None = None) -> None:
        self.bodies: list[Any] = []
        self.tokens: list[str | None] = []
        self.connections = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                service.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.bodies.append(json.loads(body))
                service.tokens.append(self.headers["Authorization"])
                status, content = answer()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port


@contextlib.contextmanager
def serving(answer: Any, status: int = 200, context: ssl.SSLContext | None = None) -> Iterator[Service]:
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    service = Service(lambda: (status, content), context)
    thread = threading.Thread(target=service.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        thread.join()
        service.server.server_close()


def hook(port: int, scheme: str = "http", **more: Any) -> HttpHook:
    options = {"seconds": PATIENCE_SECONDS, "ca_file": None, "token_file": None} | more
    return HttpHook("guard", f"{scheme}://127.0.0.1:{port}/v1?x=1", **options)


def verdicts(*found: dict[str, Any]) -> dict[str, Any]:
    return {"verdicts": list(found)}


def test_a_batch_is_one_post_and_its_answer_the_verdicts() -> None:
    answer = verdicts(
        {"verdict": "allow"},
        {"verdict": "deny", "code": "c", "reason": "R."},
        {"verdict": "flag", "rule": "r", "score": 7},
        {"verdict": "replace", "rule": "r", "replacements": [{"text": 0, "start": 1, "end": 2, "by": "x"}]},
        {"verdict": "replace", "rule": "r", "replacements": [], "reversible": True},
    )
    with serving(answer) as service, contextlib.closing(hook(service.port)) as policy:
        found = policy.evaluate([REQUEST] * 5)
    assert found == [
        Allow(),
        Deny("c", "R."),
        Flag("r", 7),
        Replace("r", [Replacement(0, 1, 2, "x")]),
        Replace("r", [], True),
    ]
    [sent] = service.bodies
    assert (sent["version"], sent["policy"], len(sent["requests"])) == (1, "guard", 5)
    assert sent["requests"][0] == {
        "tenant": "acme",
        "model": "gpt",
        "endpoint": "/v1/chat/completions",
        "texts": [{"text": "hello", "kind": "text", "is_instructions": True}],
    }
    assert service.tokens == [None]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"{", 200),
        (b"[" * 100_000, 200),
        ([], 200),
        ({"verdicts": {}}, 200),
        (verdicts({"verdict": "maybe"}), 200),
        (verdicts({"verdict": "deny", "code": "c"}), 200),
        (verdicts({"verdict": "allow", "deny": True}), 200),
        (verdicts({"verdict": "flag", "rule": "r", "score": "7"}), 200),
        (verdicts({"verdict": "replace", "rule": "r", "replacements": [{"text": 0}]}), 200),
        (verdicts({"verdict": "replace", "rule": "r", "replacements": [], "reversible": 1}), 200),
        (verdicts({"verdict": "allow"}), 500),
        (verdicts({"verdict": "allow"}), 302),
    ],
)
def test_what_is_no_answer_is_an_error_that_quotes_nothing_of_it(answer: Any, status: int) -> None:
    with (
        serving(answer, status) as service,
        contextlib.closing(hook(service.port)) as policy,
        pytest.raises(HttpHookError) as caught,
    ):
        policy.evaluate([REQUEST])
    assert "maybe" not in str(caught.value)


def test_the_token_is_read_for_each_batch_and_the_connection_is_kept(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with (
        serving(verdicts({"verdict": "allow"})) as service,
        contextlib.closing(hook(service.port, token_file=token)) as policy,
    ):
        for text in ("first\n", "second"):
            token.write_text(text)
            assert policy.evaluate([REQUEST]) == [Allow()]
    assert service.tokens == ["Bearer first", "Bearer second"]
    assert service.connections == 1


def test_a_connection_that_the_service_has_closed_is_made_anew() -> None:
    with serving(verdicts({"verdict": "allow"})) as service, contextlib.closing(hook(service.port)) as policy:
        assert policy.evaluate([REQUEST]) == [Allow()]
        assert policy._connection is not None
        policy._connection.sock.shutdown(2)
        assert policy.evaluate([REQUEST]) == [Allow()]
    assert service.connections == 2


def test_only_a_service_with_a_certificate_of_the_file_is_asked(tmp_path: Path) -> None:
    certificate, key = write_identity(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(verdicts({"verdict": "allow"}), context=context) as service:
        with contextlib.closing(hook(service.port, "https", ca_file=certificate)) as policy:
            assert policy.evaluate([REQUEST]) == [Allow()]
        with (
            contextlib.closing(hook(service.port, "https")) as policy,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            policy.evaluate([REQUEST])


def test_a_service_that_is_not_there_is_an_error() -> None:
    with (
        refusing_port() as port,
        contextlib.closing(hook(port)) as policy,
        pytest.raises(OSError, match="refused"),
    ):
        policy.evaluate([REQUEST])
