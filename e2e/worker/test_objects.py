"""The official client's files and batches, with a stand-in that does not separate its callers, like real providers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from openai import APIStatusError, OpenAI

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.loopback_server import loopback_server, url_of
from e2e.programs import PATIENCE
from e2e.worker.test_uploads import parts_of, records_of

FILES, BATCHES = "/v1/files", "/v1/batches"


def request_line(content: str, model: str = MODEL) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    line = {"custom_id": f"id of {content}", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(line) + "\n"


#: More than the worker buffers of a form.
INPUT = "".join(request_line(f"Hello {number}.") for number in range(4000)).encode()


@dataclass
class ObjectProvider:
    """A provider with one key, and therefore with one list of files and one of batches."""

    url: str = ""
    files: dict[str, tuple[dict[str, Any], bytes]] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def upload(self, kind: str, body: bytes) -> dict[str, Any]:
        parts = {name: (file_name, content) for name, file_name, content in parts_of(kind, body)}
        (file_name, content), (_, purpose) = parts["file"], parts["purpose"]
        file: dict[str, Any] = {
            **{"id": f"file-{len(self.asked)}", "object": "file", "bytes": len(content), "created_at": 1},
            **{"filename": file_name, "purpose": purpose.decode(), "status": "processed"},
        }
        self.files[str(file["id"])] = (file, content)
        return file

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        batch: dict[str, Any] = {
            **{"id": f"batch_{len(self.asked)}", "object": "batch", "status": "in_progress", "created_at": 1},
            **asked,
        }
        self.batches[str(batch["id"])] = batch
        return batch

    def answer(self, method: str, path: str, kind: str, body: bytes) -> dict[str, Any] | bytes | None:
        self.asked.append(f"{method} {path}")
        match (method, path.partition("?")[0].removeprefix("/v1/").split("/")):
            case ("POST", ["files"]):
                return self.upload(kind, body)
            case ("GET", ["files"]):
                return {"object": "list", "data": [file for file, _ in self.files.values()], "has_more": False}
            case ("GET", ["files", name]) if name in self.files:
                return self.files[name][0]
            case ("GET", ["files", name, "content"]) if name in self.files:
                return self.files[name][1]
            case ("DELETE", ["files", name]) if name in self.files:
                del self.files[name]
                return {"id": name, "object": "file", "deleted": True}
            case ("POST", ["batches"]):
                return self.create(json.loads(body))
            case ("GET", ["batches"]):
                return {"object": "list", "data": list(self.batches.values()), "has_more": False}
            case ("GET", ["batches", name]) if name in self.batches:
                return self.batches[name]
            case ("POST", ["batches", name, "cancel"]) if name in self.batches and not body:
                return self.batches[name] | {"status": "cancelling"}
        return None


@pytest.fixture(scope="module")
def provider() -> Iterator[ObjectProvider]:
    provider = ObjectProvider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:
                return  # The request was incomplete.
            found = provider.answer(self.command, self.path, self.headers.get("Content-Type", ""), body)
            error = {
                "error": {"message": "No such object.", "type": "invalid_request_error", "code": None, "param": None}
            }
            answer = found if isinstance(found, bytes) else json.dumps(found or error).encode()
            self.send_response(404 if found is None else 200)
            kind = "application/octet-stream" if isinstance(found, bytes) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_DELETE = respond

        def log_message(self, format: str, *args: object) -> None:
            pass

    with loopback_server(Handler) as server:
        provider.url = f"{url_of(server)}/v1"
        yield provider


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, provider: ObjectProvider) -> Iterator[LocalGateway]:
    rule = {
        **{"id": "word", "literals": ["johndoe"], "action": "Block", "score": 100},
        **{"reason": "A word.", "target": "Request"},
    }
    settings = {
        "providers": [{"name": "mock", "type": "OpenAI", "baseURL": provider.url, "objectsOf": "acme"}],
        "models": [
            {"name": MODEL, "provider": "mock"},
            {"name": "alias", "provider": "mock", "upstreamModel": MODEL},
        ],
        "policy": {"mode": "Enforce", "rules": [rule]},
    }
    with local_gateway(tmp_path_factory.mktemp("objects"), settings=settings) as running:
        yield running


def test_a_batch_from_its_input_to_its_output(gateway: LocalGateway, client: OpenAI, provider: ObjectProvider) -> None:
    raw = client.files.with_raw_response.create(file=("input.jsonl", INPUT), purpose="batch")
    file = raw.parse()
    assert provider.files[file.id][1] == INPUT
    batch = client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"of": "acme"},
    )
    assert client.batches.retrieve(batch.id).input_file_id == file.id
    assert [found.id for found in client.batches.list(limit=10)] == [batch.id]
    assert client.batches.cancel(batch.id).status == "cancelling"
    assert [found.id for found in client.files.list(purpose="batch", limit=100, order="asc")] == [file.id]
    assert client.files.retrieve(file.id).filename == "input.jsonl"
    with client.files.with_streaming_response.content(file.id) as content:
        assert b"".join(content.iter_bytes()) == INPUT
        content_id = content.headers["x-request-id"]
    deleted = client.files.with_raw_response.delete(file.id)
    assert deleted.parse().deleted and not provider.files

    uploaded = records_of(gateway, raw.headers["x-request-id"])
    assert uploaded["admission"]["endpoint"] == f"POST {FILES}" and "coming" in uploaded["admission"]
    downloaded = records_of(gateway, content_id)
    assert downloaded["admission"]["endpoint"] == f"GET {FILES}/{file.id}/content"
    assert downloaded["completion"]["bytes"] == len(INPUT)
    ended = records_of(gateway, deleted.headers["x-request-id"])
    assert ended["admission"]["endpoint"] == f"DELETE {FILES}/{file.id}"
    assert ended["completion"]["outcome"] == "complete"


@pytest.mark.parametrize("before", [True, False], ids=["purpose first", "file first"])
def test_a_batch_is_judged_wherever_the_client_puts_its_purpose(
    gateway: LocalGateway, provider: ObjectProvider, before: bool
) -> None:
    def upload(content: bytes) -> httpx.Response:
        purpose: tuple[str, Any] = ("purpose", (None, "batch"))
        file: tuple[str, Any] = ("file", ("input.jsonl", content))
        return httpx.post(
            f"{gateway.base_url}/files",
            headers={"Authorization": f"Bearer {KEYS['acme']}"},
            files=[purpose, file] if before else [file, purpose],
            timeout=PATIENCE,
        )

    kept = upload(INPUT)
    assert kept.status_code == 200 and provider.files.pop(kept.json()["id"])[1] == INPUT
    for bad, status, code in (
        (request_line("johndoe"), 403, "policy_blocked"),
        (request_line("Hello", "alias"), 400, "batch_model_renamed"),
        (request_line("Hello", "unknown"), 404, "model_not_found"),
        ('{"prompt": "Hello"}\n', 400, "unserved_field"),
    ):
        for content in (bad.encode(), INPUT + bad.encode() + INPUT):
            refused = upload(content)
            assert (refused.status_code, refused.json()["error"]["code"]) == (status, code), bad
            assert f"Line {1 if len(content) < len(INPUT) else 4001} of the file" in refused.text
    assert not provider.files


def test_nobody_else_reaches_them(gateway: LocalGateway, client: OpenAI, provider: ObjectProvider) -> None:
    file = client.files.create(file=("notes.pdf", b"%PDF- johndoe"), purpose="user_data")
    asked = len(provider.asked)
    with OpenAI(base_url=gateway.base_url, api_key=KEYS["globex"], max_retries=0) as globex:
        for ask in (
            lambda: globex.files.retrieve(file.id),
            lambda: globex.files.content(file.id),
            lambda: globex.files.delete(file.id),
            lambda: globex.files.list(),
            lambda: globex.batches.list(),
            lambda: globex.files.create(file=b"x", purpose="user_data"),
        ):
            with pytest.raises(APIStatusError) as refused:
                ask()
            assert (refused.value.status_code, refused.value.code) == (403, "objects_not_configured")
    assert len(provider.asked) == asked
    assert client.files.delete(file.id).deleted


def test_what_is_not_there_is_told_by_the_provider(client: OpenAI) -> None:
    with pytest.raises(APIStatusError) as missing:
        client.files.retrieve("file-none")
    assert missing.value.status_code == 404 and "No such object." in missing.value.message


def test_the_ledger_of_objects_verifies(gateway: LocalGateway, client: OpenAI) -> None:
    client.files.list()
    assert gateway.worker is not None
    gateway.worker.stop()
    checked = proofgate("ledger", "fsck", gateway.ledger, "--key", gateway.verifying_key)
    gateway.start_worker()
    assert checked.returncode == 0, checked.stdout + checked.stderr
