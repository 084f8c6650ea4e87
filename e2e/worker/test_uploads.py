"""The official client's uploads, as a different form parser reads them at the provider."""

from __future__ import annotations

import email.parser
import email.policy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import APIStatusError, OpenAI

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.loopback_server import loopback_server, url_of
from e2e.programs import PATIENCE

RECORDING = random.Random(7).randbytes(5 << 20)
PICTURES = [("one.png", random.Random(1).randbytes(70_000)), ("two.png", random.Random(2).randbytes(400_000))]
TRANSCRIPT = {
    "text": "Hello.",
    "usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 3, "total_tokens": 17},
}
PICTURE = {
    "created": 1,
    "data": [{"b64_json": "QQ=="}],
    "usage": {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11},
}
#: A part: its name, its file's name, its content.
Part = tuple[str, str | None, bytes]


@dataclass
class Provider:
    """A stand-in that reads forms with the standard library's email parser."""

    url: str = ""
    forms: list[tuple[str, list[Part]]] = field(default_factory=list)


def parts_of(kind: str, body: bytes) -> list[Part]:
    """The parts of a form, as Python's `email` reads them."""
    message = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(
        b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body
    )
    assert message.is_multipart() and not message.defects
    found: list[Part] = []
    for part in list(message.walk())[1:]:
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        name = part.get_param("name", header="content-disposition")
        found.append((str(name), part.get_filename(), content))
    return found


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            provider.forms.append((self.path, parts_of(self.headers["Content-Type"], body)))
            answer = json.dumps(PICTURE if "images" in self.path else TRANSCRIPT).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with loopback_server(Handler) as server:
        provider.url = f"{url_of(server)}/v1"
        yield provider


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[LocalGateway]:
    rule = {
        "id": "word",
        "literals": ["johndoe"],
        "action": "Block",
        "score": 100,
        "reason": "A word.",
        "target": "Request",
    }
    settings = {
        "providers": [{"name": "mock", "type": "OpenAI", "baseURL": provider.url}],
        "policy": {"mode": "Enforce", "rules": [rule]},
    }
    with local_gateway(tmp_path_factory.mktemp("uploads"), settings=settings) as running:
        yield running


def records_of(gateway: LocalGateway, request_id: str) -> dict[str, dict[str, object]]:
    return {record["kind"]: record for record in gateway.records() if record.get("id") == request_id}


def test_a_recording_reaches_the_provider_byte_for_byte(
    gateway: LocalGateway, client: OpenAI, provider: Provider
) -> None:
    provider.forms.clear()
    raw = client.audio.transcriptions.with_raw_response.create(
        model=MODEL, file=("a.mp3", RECORDING), prompt="Names: Zoë", language="en"
    )
    assert raw.parse().text == "Hello."
    [(path, parts)] = provider.forms
    assert path == "/v1/audio/transcriptions"
    fields = {name: content for name, file_name, content in parts if file_name is None}
    assert fields == {"model": MODEL.encode(), "prompt": "Names: Zoë".encode(), "language": b"en"}
    assert [part for part in parts if part[1]] == [("file", "a.mp3", RECORDING)]
    records = records_of(gateway, raw.headers["x-request-id"])
    assert "coming" in records["admission"]
    assert records["completion"]["usage"] == {"prompt_tokens": 14, "completion_tokens": 3}
    received = records["completion"]["received"]
    assert isinstance(received, dict) and received["whole"] and received["bytes"] > len(RECORDING)


def test_a_recording_before_its_model_is_held_and_sent_whole(gateway: LocalGateway, provider: Provider) -> None:
    provider.forms.clear()
    form: list[tuple[str, Any]] = [("file", ("a.mp3", RECORDING, "audio/mpeg")), ("model", (None, MODEL))]
    answer = httpx.post(
        f"{gateway.base_url}/audio/transcriptions",
        headers={"Authorization": f"Bearer {KEYS['acme']}"},
        files=form,
        timeout=PATIENCE,
    )
    assert answer.json() == TRANSCRIPT
    assert provider.forms[0][1] == [("file", "a.mp3", RECORDING), ("model", None, MODEL.encode())]
    assert "coming" not in records_of(gateway, answer.headers["x-request-id"])["admission"]


def test_several_pictures_are_edited(client: OpenAI, provider: Provider) -> None:
    provider.forms.clear()
    edited = client.images.edit(model=MODEL, image=list(PICTURES), prompt="Join them.", n=1)
    assert edited.data is not None and edited.data[0].b64_json == "QQ=="
    [(path, parts)] = provider.forms
    assert path == "/v1/images/edits"
    assert [part for part in parts if part[1]] == [("image[]", name, content) for name, content in PICTURES]


def test_what_a_rule_denies_in_a_form_does_not_reach_the_provider(client: OpenAI, provider: Provider) -> None:
    provider.forms.clear()
    for form in ({"prompt": "johndoe", "file": ("a.mp3", RECORDING)}, {"file": ("johndoe.mp3", RECORDING)}):
        with pytest.raises(APIStatusError) as denied:
            client.audio.transcriptions.create(model=MODEL, **form)
        assert denied.value.status_code == 403 and denied.value.code == "policy_blocked"
    assert not provider.forms


def test_the_ledger_of_uploads_verifies(gateway: LocalGateway, client: OpenAI, tmp_path: Path) -> None:
    client.audio.transcriptions.create(model=MODEL, file=("a.mp3", RECORDING))
    assert gateway.worker is not None
    gateway.worker.stop()
    checked = proofgate("ledger", "fsck", gateway.ledger, "--key", gateway.verifying_key)
    gateway.start_worker()
    assert checked.returncode == 0, checked.stdout + checked.stderr
