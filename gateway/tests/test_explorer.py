"""The auditor's page: its files, their types, and the headers of the whole port."""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import auditor_double
import pytest
from conftest import HTTP, PATIENCE_SECONDS, serving
from fastapi import FastAPI
from signing import AUDITOR, VKEY
from starlette.exceptions import HTTPException

from proofgate import _core, explorer
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.http_errors import ApiError, handle_api_error, handle_http_exception

pytestmark = pytest.mark.usefixtures("fake_auditor")

STATIC = Path(str(resources.files(explorer))) / "static"


@pytest.fixture
def url() -> Iterator[str]:
    key = AUDITOR.signing
    double = auditor_double.Auditor("ledger", "state", key, VKEY, 1, 1, 1, True)
    with serving(create_app(LedgerWatcher(cast("_core.Auditor", double), 1 << 20))) as url:
        yield url


def raw(url: str, path: str) -> int:
    """The status of the response for a path that is sent unchanged."""
    place = urlsplit(url)
    with socket.create_connection(
        (str(place.hostname), int(place.port or 0)), timeout=PATIENCE_SECONDS
    ) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return int(connection.makefile("rb").readline().split()[1])


def test_the_page_and_each_of_its_files_has_the_type_of_its_content(url: str) -> None:
    page = HTTP.get(f"{url}/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.content == (STATIC / "index.html").read_bytes()
    types = {
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".svg": "image/svg+xml",
    }
    files = [file for file in STATIC.iterdir() if file.suffix in types]
    assert len(files) > 10
    for file in files:
        answer = HTTP.get(f"{url}/explorer/{file.name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, types[file.suffix]), file
        assert answer.content == file.read_bytes()


def test_a_file_is_sent_again_only_when_it_has_changed(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "verifier.wasm").write_bytes(b"\0asm")
    (tmp_path / "notes.txt").write_text("of no known type")
    (tmp_path / "verifier.js").mkdir()
    app = FastAPI()
    app.add_exception_handler(ApiError, handle_api_error)
    app.add_exception_handler(HTTPException, handle_http_exception)
    double = auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+a", VKEY, 1, 1, 1, True)
    explorer.add_explorer_routes(app, double, explorer.static_files(tmp_path))
    with serving(app) as url:
        first = HTTP.get(f"{url}/explorer/verifier.wasm")
        assert (first.headers["content-type"], first.content) == ("application/wasm", b"\0asm")
        assert first.headers["cache-control"] == "no-cache"
        again = {"If-None-Match": first.headers["etag"]}
        assert HTTP.get(f"{url}/explorer/verifier.wasm", headers=again).status_code == 304
        assert HTTP.get(f"{url}/", headers=again).status_code == 200
        assert HTTP.get(f"{url}/explorer/notes.txt").status_code == 404
        assert HTTP.get(f"{url}/explorer/verifier.js").status_code == 404


def test_every_answer_of_the_port_has_the_headers_of_the_page_and_no_cookie(url: str) -> None:
    paths = (
        "/",
        "/explorer/app.js",
        "/explorer/nothing.js",
        "/status",
        "/tile/0/000.p/2",
        "/nothing",
        "/metrics",
    )
    for path in paths:
        answer = HTTP.get(f"{url}{path}")
        assert {name: answer.headers.get(name) for name in explorer.HEADERS} == explorer.HEADERS, path
        assert "set-cookie" not in answer.headers
    policy = dict(part.strip().split(" ", 1) for part in explorer.CONTENT_SECURITY_POLICY.split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert "unsafe-inline" not in explorer.CONTENT_SECURITY_POLICY
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"


@pytest.mark.parametrize(
    "path",
    [
        "/explorer/",
        "/explorer/nothing.js",
        "/explorer/__init__.py",
        "/explorer/../__init__.py",
        "/explorer/..%2f__init__.py",
        "/explorer/%2e%2e/%2e%2e/cli.py",
        "/explorer/static/app.js",
        "/explorer//etc/passwd",
        "/explorer/app.js%00",
        "/index.html",
    ],
)
def test_no_path_leads_out_of_the_files_of_the_page(url: str, path: str) -> None:
    assert raw(url, path) == 404


def test_the_keys_are_told_as_the_auditor_has_them(url: str) -> None:
    told = HTTP.get(f"{url}/explorer/keys").json()
    own = {"aggregate": AUDITOR.verifying, "ledger": VKEY}
    assert told == own | {"statements": []}


def test_nothing_of_the_page_is_inline_or_comes_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text()
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in page.replace(" one", "").split("<body>")[0]
    assert page.count("<script") == len(re.findall(r'<script (type="module"|defer) src="explorer/', page))
    # The third-party script is pinned; it gets only numbers, and draws them on a canvas.
    for file in {*STATIC.glob("*.js")} - {STATIC / "uplot.min.js"}:
        text = file.read_text()
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert word not in text, (file, word)
        assert "https://" not in text, file


def test_the_files_of_others_are_the_pinned_ones() -> None:
    text = (STATIC.parent / "THIRD_PARTY.md").read_text()
    pinned = dict(re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", text, re.MULTILINE))
    assert sorted(pinned) == ["uplot.min.css", "uplot.min.js"]
    for name, digest in pinned.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest, name
