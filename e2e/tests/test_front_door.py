"""What is refused through HAProxy is refused as at the worker."""

from __future__ import annotations

import json
import sys

import pytest

from e2e.kubernetes import REPOSITORY, Namespace, lab
from e2e.lab_network import exchange, inside
from e2e.tests.fleet import MODEL, TENANTS, key_of
from e2e.tests.traffic import chat, url

KEY = key_of(TENANTS[0])
#: Seconds that an answer, or the end of a connection, is waited for.
PATIENCE = "60"


def test_every_framing_case_is_answered_as_by_the_worker(namespace: Namespace, gateway: str) -> None:
    probe = str(REPOSITORY / "e2e" / "framing" / "probe.py")
    address = namespace.service_address(gateway)
    arguments = ["--host", address, "--port", "80", "--key", KEY, "--timeout", PATIENCE]
    assert " 0 not" in lab("inside", "--", sys.executable, probe, *arguments)


def test_an_unknown_or_missing_key_is_a_401_in_openais_error_shape(namespace: Namespace, gateway: str) -> None:
    for headers in ({}, {"Authorization": f"Bearer {'x' * 40}"}):
        answer = inside(exchange, "POST", f"{url(namespace, gateway)}/chat/completions", "{}", headers)
        assert answer.status == 401 and json.loads(answer.text)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("model", "text", "headers", "status", "code"),
    [
        ("no-such-model", "hi", {}, 404, "model_not_found"),
        ("unreachable", "hi", {}, 502, "upstream_unreachable"),
        ("given-up", "mock:hang", {}, 504, "upstream_first_byte_timeout"),
        (MODEL, "hi", {"X-Large": "x" * 20_000}, 431, "head_too_large"),
        (MODEL, "hi", {"Content-Length": "99999999"}, 413, "body_too_large"),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_what_cannot_be_served_says_so(
    namespace: Namespace, gateway: str, model: str, text: str, headers: dict[str, str], status: int, code: str
) -> None:
    answer = chat(namespace, gateway, KEY, text, model, **headers)
    assert (answer.status, json.loads(answer.text)["error"]["code"]) == (status, code)
