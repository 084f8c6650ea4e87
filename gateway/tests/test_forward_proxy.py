"""The egress proxy: destinations that bypass it, its configuration, and exchanges through it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler as Handler
from http.server import ThreadingHTTPServer

import pytest
from conftest import PATIENCE_SECONDS, ConfigDirectory, refusing_port
from pydantic import SecretStr

from proofgate.config import load
from proofgate.forward_proxy import ForwardProxy, NoProxyRule
from proofgate.timed_request import HttpRequestError, HttpRequestLimits, send_http_request, use_proxy

SECRET = "Basic c2VjcmV0"
JWKS = b'{"keys": []}'


def proxy(*entries: str, port: int = 3128) -> ForwardProxy:
    exempt = tuple(NoProxyRule.parse(entry) for entry in entries)
    return ForwardProxy("127.0.0.1", port, exempt, SecretStr(SECRET))


@pytest.mark.parametrize(
    ("entry", "exempt", "served"),
    [
        ("example.com", ["example.com", "api.EXAMPLE.com", "example.com.:8443"], ["notexample.com", "com"]),
        (".example.com", ["api.example.com"], ["example.com"]),
        ("*.example.com", ["api.example.com"], ["example.com"]),
        ("example.com:8443", ["example.com:8443", "a.example.com:8443"], ["example.com"]),
        ("svc.cluster.local", ["vllm.default.svc.cluster.local"], ["vllm.default.svc"]),
        ("10.0.0.0/8", ["10.1.2.3", "10.1.2.3:8000"], ["11.0.0.1", "host-in-10.example.com"]),
        ("10.1.2.3", ["10.1.2.3"], ["10.1.2.4"]),
        ("10.1.2.3:443", ["10.1.2.3"], ["10.1.2.3:8000"]),
        ("2001:db8::/32", ["[2001:db8::1]"], ["[2001:db9::1]", "10.1.2.3"]),
        ("[2001:db8::1]:443", ["[2001:db8::1]"], ["[2001:db8::1]:80"]),
        ("*", ["example.com", "8.8.8.8"], []),
    ],
)
def test_no_proxy_is_read_as_curl_and_go_read_it(entry: str, exempt: list[str], served: list[str]) -> None:
    found = proxy(entry)
    assert [host for host in exempt if found.applies_to(f"https://{host}/v1")] == []
    assert [host for host in served if not found.applies_to(f"https://{host}/v1")] == []


def test_this_machine_and_what_answers_it_alone_is_never_behind_a_proxy() -> None:
    for host in (
        *("127.0.0.1", "localhost", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"),
        *("169.254.170.23", "[fe80::1]", "[fd00:ec2::23]", "metadata.google.internal"),
    ):
        assert not proxy().applies_to(f"http://{host}:8000/v1"), host
    assert proxy().applies_to("http://192.0.2.1/v1")


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.1/8", "a b", "http://a", "example.com:0", "a:70000", "*a", "a*b"]
)
def test_an_entry_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"write|port"):
        NoProxyRule.parse(entry)


@contextmanager
def answering_tunnels(answer: Callable[[Handler], None]) -> Iterator[int]:
    """Runs a forward proxy that answers with `answer`, also inside its tunnel; yields its port."""

    class Proxy(Handler):
        do_CONNECT = do_GET = answer  # noqa: N815 - named by the library

        def log_message(self, *args: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_SECONDS)


def fetched(through_proxy: ForwardProxy | None, url: str = "http://keys.example.com/jwks?v=1") -> bytes:
    with use_proxy(through_proxy):
        return send_http_request("GET", url, {}, HttpRequestLimits(PATIENCE_SECONDS, 1 << 16)).body


def test_an_exchange_goes_through_a_tunnel_and_its_credentials_stay_with_the_proxy() -> None:
    seen: list[tuple[str, str, str | None, str | None]] = []

    def respond(handler: Handler) -> None:
        headers = handler.headers
        seen.append((handler.command, handler.path, headers["Host"], headers["Proxy-Authorization"]))
        handler.send_response(200)
        if handler.command == "GET":
            handler.send_header("Content-Length", str(len(JWKS)))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(JWKS)
        else:
            handler.close_connection = False  # the tunnel uses this connection

    with answering_tunnels(respond) as port:
        assert fetched(proxy(port=port)) == JWKS
    assert [(command, path, shown) for command, path, _, shown in seen] == [
        ("CONNECT", "keys.example.com:80", SECRET),
        ("GET", "/jwks?v=1", None),
    ]
    assert seen[1][2] == "keys.example.com"


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_refusal_of_the_proxy_names_its_status_and_no_secret(status: int) -> None:
    def refuse(handler: Handler) -> None:
        handler.send_response(status, "no c2VjcmV0 for you")
        handler.end_headers()

    with answering_tunnels(refuse) as port, pytest.raises(HttpRequestError) as caught:
        fetched(proxy(port=port))
    assert caught.value.code == "proxy"
    assert str(caught.value) == f"the egress proxy answers {status}"


def test_a_proxy_that_is_away_or_whose_credentials_are_is_an_error_of_its_own() -> None:
    with refusing_port() as port, pytest.raises(HttpRequestError) as caught:
        fetched(proxy(port=port))
    assert caught.value.code == "unreachable"
    unusable = ForwardProxy("127.0.0.1", 1, is_usable=False)
    with pytest.raises(HttpRequestError) as caught:
        fetched(unusable)
    assert caught.value.code == "proxy"
    # Without the proxy, the server is contacted directly.
    with refusing_port() as port, pytest.raises(HttpRequestError) as caught:
        fetched(None, f"http://127.0.0.1:{port}/")
    assert caught.value.code == "unreachable"


def configured(directory: ConfigDirectory, proxy: str, **files: str) -> None:
    for name, text in files.items():
        (directory.path / name).write_text(text)
    directory.replace("models:\n", f"egress: {{proxy: {{{proxy}}}}}\nmodels:\n")


def test_the_core_gets_the_proxy_and_which_providers_it_serves(config_directory: ConfigDirectory) -> None:
    text = "url: 'http://proxy.example.com:3128/', usernameFile: user, passwordFile: password"
    configured(config_directory, text, user="gate\n", password="s3cret:x\n")
    config = load(config_directory.file)
    core = json.loads(config.to_core_json(0))
    assert core["egress"]["proxy"] == {
        "url": "http://proxy.example.com:3128",
        "authorization": "Basic Z2F0ZTpzM2NyZXQ6eA==",
    }
    assert [provider["proxied"] for provider in core["providers"]] == [True]
    assert core["egress"]["allow"] is None
    assert "Z2F0ZTpzM2NyZXQ6eA" not in config.public_json().decode() + repr(config)
    direct = "url: 'http://proxy.example.com', noProxy: [api.openai.com]"
    (config_directory.path / "gateway.yaml").write_text(
        (config_directory.path / "gateway.yaml").read_text().replace(text, direct)
    )
    core = json.loads(load(config_directory.file).to_core_json(0))
    assert core["egress"]["proxy"] == {"url": "http://proxy.example.com", "authorization": None}
    assert [provider["proxied"] for provider in core["providers"]] == [False]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("url: 'https://proxy.example.com:3128'", "config_invalid_value"),
        ("url: 'socks5://proxy.example.com:1080'", "config_invalid_value"),
        ("url: 'http://user:s3cret@proxy.example.com'", "config_invalid_value"),
        ("url: 'http://proxy.example.com/path'", "config_invalid_value"),
        ("url: 'http://proxy.example.com:99999'", "config_invalid_value"),
        ("url: proxy.example.com", "config_invalid_value"),
        ("url: 'http://proxy.example.com', noProxy: ['10.0.0.1/8']", "config_invalid_value"),
        ("url: 'http://proxy.example.com', usernameFile: user", "config_proxy_credentials"),
    ],
)
def test_a_proxy_that_is_none_is_refused(config_directory: ConfigDirectory, text: str, code: str) -> None:
    configured(config_directory, text, user="gate")
    assert config_directory.codes() == [code]
    assert "s3cret" not in str(config_directory.problems())


@pytest.mark.parametrize(("user", "password"), [("a:b", "x"), ("a", ""), ("a", "x\ny")])
def test_credentials_that_cannot_be_used_cost_what_the_proxy_is_for(
    config_directory: ConfigDirectory, user: str, password: str
) -> None:
    text = "url: 'http://proxy.example.com', usernameFile: user, passwordFile: password"
    configured(config_directory, text, user=user, password=password)
    config = load(config_directory.file)
    assert config.proxy is not None
    assert not config.proxy.is_usable
    assert json.loads(config.to_core_json(0))["providers"][0]["keyMissing"]
    (warning,) = config.warnings
    assert warning.message.endswith("requests that need the egress proxy are not sent")
