"""A provider that uses HTTP/2, with a different implementation than the worker's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import OpenAI

from e2e.http2_upstream import Http2Upstream, http2_upstream
from e2e.local_gateway import KEYS, MODEL, LocalGateway
from e2e.worker.test_tls_http2 import write_certificate

HELLO: list[Any] = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http2Upstream]:
    folder = tmp_path_factory.mktemp("provider")
    write_certificate(folder)
    with http2_upstream(folder / "tls.crt", folder / "tls.key") as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: Http2Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    provider = {
        "name": "mock",
        "type": "OpenAI",
        "baseURL": upstream.url,
        "caFile": str(upstream.certificate),
        "http": "Http2",
    }
    gateway.settings = {"providers": [provider]}
    gateway.write_configuration()
    gateway.start_worker()
    try:
        yield gateway
    finally:
        gateway.stop()


def test_clients_are_answered_over_one_session_of_http_2(upstream: Http2Upstream, gateway: LocalGateway) -> None:
    with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:

        def unary(_: int) -> str | None:
            return client.chat.completions.create(model=MODEL, messages=HELLO).choices[0].message.content

        def streamed(_: int) -> str:
            chunks = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

        with ThreadPoolExecutor(8) as pool:
            answers = [*pool.map(unary, range(16)), *pool.map(streamed, range(16))]
    assert answers == ["Hello"] * 32
    assert [len(session) for session in upstream.sessions] == [32]
    assert {request[":path"] for request in upstream.sessions[0]} == {"/v1/chat/completions"}
    completions = [record for record in gateway.records() if record["kind"] == "completion"]
    assert [record["outcome"] for record in completions] == ["complete"] * 32
    assert all(record["usage"]["completion_tokens"] == 2 for record in completions)
