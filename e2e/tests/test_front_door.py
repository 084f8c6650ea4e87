"""What is refused through HAProxy is refused as at the worker."""

from __future__ import annotations

import json
import sys

import pytest

from e2e.kubernetes import REPOSITORY, Namespace, inside
from e2e.tests.fleet import MODEL, TENANTS, key_of


def curl(namespace: Namespace, gateway: str, *arguments: str) -> tuple[int, str]:
    """The status and body of one request through the Service."""
    url = f"http://{namespace.service_address(gateway)}/v1/chat/completions"
    output = inside("curl", "--silent", "--max-time", "20", "--write-out", "\n%{http_code}", *arguments, url)
    body, status = output.rsplit("\n", 1)
    return int(status), body


def chat(model: str, text: str = "hi") -> list[str]:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]})
    return ["--header", f"Authorization: Bearer {key_of(TENANTS[0])}", "--data", body]


def test_every_framing_case_is_answered_as_by_the_worker(namespace: Namespace, gateway: str) -> None:
    probe = str(REPOSITORY / "e2e" / "framing" / "probe.py")
    address = namespace.service_address(gateway)
    arguments = ["--host", address, "--port", "80", "--key", key_of(TENANTS[0])]
    assert " 0 not" in inside(sys.executable, probe, *arguments, timeout=600)


def test_an_unknown_or_missing_key_is_a_401_in_openais_error_shape(namespace: Namespace, gateway: str) -> None:
    for extra in ([], ["--header", f"Authorization: Bearer {'x' * 40}"]):
        status, body = curl(namespace, gateway, "--data", "{}", *extra)
        assert status == 401 and json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (chat("no-such-model"), 404, "model_not_found"),
        (chat("unreachable"), 502, "upstream_unreachable"),
        (chat(MODEL, "mock:hang"), 504, "upstream_first_byte_timeout"),
        ([*chat(MODEL), "--header", f"X-Large: {'x' * 20_000}"], 431, "head_too_large"),
        ([*chat(MODEL), "--header", "Content-Length: 99999999"], 413, "body_too_large"),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_what_cannot_be_served_says_so(
    namespace: Namespace, gateway: str, arguments: list[str], status: int, code: str
) -> None:
    answered, body = curl(namespace, gateway, *arguments)
    assert (answered, json.loads(body)["error"]["code"]) == (status, code)
