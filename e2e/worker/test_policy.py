"""The rules, end to end: denied texts reach nobody, redacted texts are removed, and the ledger names the rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import (
    RecordingUpstream,
    answer,
    chat_request,
    error_of,
    recording_upstream,
    request_id_of,
    send,
    status_of,
)

SECRET = "AKIAIOSFODNN7EXAMPLQ"
RULES: list[dict[str, Any]] = [
    {"id": "codename", "reason": "It names a project.", "literals": ["bluebird"], "score": 100, "action": "Block"},
    {"id": "weak-a", "reason": "Weak sign a.", "literals": ["alphasign"], "score": 60, "action": "Flag"},
    {"id": "weak-b", "reason": "Weak sign b.", "literals": ["betasign"], "score": 60, "action": "Flag"},
    {
        "id": "staff-number",
        "reason": "It holds a staff number.",
        "regex": "staff-[0-9]{6}",
        "score": 10,
        "action": "Redact",
    },
]
POLICY = {"packs": ["secrets"], "rules": RULES, "threshold": 100}


def chat(text: str, *, stream: bool = False) -> bytes:
    return json.dumps({"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": text}]}).encode()


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "model": MODEL, "choices": [choice]}).encode()


def events(pieces: list[str]) -> bytes:
    def event(delta: dict[str, str]) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"

    body = b"".join(event({"content": piece}) for piece in pieces) + b"data: [DONE]\n\n"
    return answer(body, b"Content-Type: text/event-stream\r\n")


def settings(url: str, **more: Any) -> dict[str, Any]:
    return {
        "providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{url}/v1"}],
        "policy": {**POLICY, **more},
    }


def body_of(response: bytes) -> bytes:
    """The content of a response without chunk framing."""
    head, _, body = response.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    content = b""
    while body and not body.startswith(b"0\r\n"):
        size, _, body = body.partition(b"\r\n")
        content += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return content


@contextmanager
def governed(folder: Path, **more: Any) -> Iterator[tuple[RecordingUpstream, LocalGateway]]:
    """A gateway with rules, in front of an upstream that always answers "hello" and then closes the connection."""
    hello = answer(completion("hello"))
    with (
        recording_upstream(hello) as upstream,
        local_gateway(folder, settings=settings(upstream.url, **more)) as gateway,
    ):
        yield upstream, gateway


def test_a_denied_request_reaches_nobody_and_its_rule_is_in_the_ledger(folder: Path) -> None:
    with governed(folder) as (upstream, gateway):
        denied = send(gateway.address, chat_request(chat("Tell me of Blue\u200bbird."), KEYS["acme"]))
        records = gateway.records()
    assert status_of(denied) == 403
    assert b'"code":"policy_blocked"' in denied
    assert b"codename in messages[0] (user)" in denied and b"Remove this message to continue." in denied
    assert upstream.requests == []
    rejection = records[-1] if records[-1]["kind"] == "rejection" else records[-2]
    assert rejection["code"] == "policy_blocked"
    assert rejection["policy"]["rules"] == ["codename"]


def test_a_strangers_flood_hides_no_denial(folder: Path) -> None:
    wrong = chat_request(chat("hi"), "x" * 40)
    denied = chat_request(chat("Tell me of bluebird."), KEYS["acme"])
    with governed(folder) as (_, gateway), ThreadPoolExecutor(8) as strangers:
        flood = [strangers.submit(send, gateway.address, wrong) for _ in range(4000)]
        ids = [request_id_of(send(gateway.address, denied)) for _ in range(100)]
        assert {status_of(one.result()) for one in flood} == {401}
        wait_until(lambda: counted(gateway.records()) == 4100, PATIENCE, "every refusal is recorded or counted")
        records = gateway.records()
    recorded = {record["id"] for record in records if record["kind"] == "rejection"}
    assert [one for one in ids if one not in recorded] == []
    missing = {(record["code"], record.get("tenant")) for record in records if record["kind"] == "gap"}
    assert missing <= {("invalid_api_key", None)}


def counted(records: list[dict[str, Any]]) -> int:
    """The number of refusals in these records."""
    return sum(record.get("count", 1) for record in records if record["kind"] in ("rejection", "gap"))


def test_a_built_in_rule_denies_a_key_that_a_user_sends(folder: Path) -> None:
    with governed(folder) as (upstream, gateway):
        denied = send(gateway.address, chat_request(chat(f"my key is {SECRET}"), KEYS["acme"]))
        log = (folder / "worker.log").read_text()
        records = json.dumps(gateway.records())
    assert status_of(denied) == 403
    assert b"secret-aws-access-key-id in messages[0] (user)" in denied
    assert upstream.requests == []
    for told in (denied.decode(), log, records):
        assert SECRET not in told


def test_a_redacted_request_goes_upstream_without_it_and_otherwise_byte_for_byte(folder: Path) -> None:
    body = b'{ "model":"gpt-4o-mini",\n "messages":[{"role":"user","content":"\\u00e9 ask staff-123456  now"}] }'
    with governed(folder) as (upstream, gateway):
        assert status_of(send(gateway.address, chat_request(body, KEYS["acme"]))) == 200
    received = upstream.requests[0].split(b"\r\n\r\n", 1)[1]
    assert received == body.replace(b"staff-123456", b"[redacted:staff-number]")


@pytest.mark.parametrize("stream", [False, True], ids=["unary", "streamed"])
def test_an_answer_is_denied_alike_however_it_comes(folder: Path, stream: bool) -> None:
    reply = events(["so ", "blue", "bi", "rd is"]) if stream else answer(completion("so bluebird is"))
    with recording_upstream(reply) as upstream, local_gateway(folder, settings=settings(upstream.url)) as gateway:
        told = send(gateway.address, chat_request(chat("hi", stream=stream), KEYS["acme"]))
        completions = [record for record in gateway.records() if record["kind"] == "completion"]
    assert b"policy_blocked" in told
    assert b"bluebird" not in told.replace(b"\r\n", b"")
    assert b'"bi"' not in told
    assert b"[DONE]" not in told
    assert completions[0]["outcome"] == "policy_blocked"
    assert completions[0]["policy"]["rules"] == ["codename"]
    # The record covers the bytes that the client got, not the withheld ones.
    assert completions[0]["bytes"] == len(body_of(told))


@pytest.mark.parametrize(
    ("reply", "more"),
    [
        (answer(completion("hello"))[:-9], {}),
        (answer(b"")[:-5] + b"9\r\n\r\n", {"rules": [], "packs": []}),
    ],
    ids=["held for the rules", "cut behind its head"],
)
def test_an_answer_that_breaks_before_any_of_it_has_left_is_a_502(
    folder: Path, reply: bytes, more: dict[str, Any]
) -> None:
    with (
        recording_upstream(reply) as upstream,
        local_gateway(folder, settings=settings(upstream.url, **more)) as gateway,
    ):
        told = send(gateway.address, chat_request(chat("hi"), KEYS["acme"]))
        [record] = [record for record in gateway.records() if record["kind"] == "completion"]
    assert (status_of(told), error_of(told)["code"]) == (502, "upstream_unreachable")
    assert (record["status"], record["upstream_status"], record["outcome"]) == (502, 200, "upstream_error")
    assert record["bytes"] == len(body_of(told))


def test_what_the_rules_saw_in_one_answer_is_not_noted_of_the_next_one(folder: Path) -> None:
    with (
        recording_upstream(answer(completion("alphasign"))) as upstream,
        local_gateway(folder, settings=settings(upstream.url)) as gateway,
        closing(HTTPConnection(gateway.address, timeout=PATIENCE)) as client,
    ):
        statuses = []
        # The second answer ends after its head, so the rules have seen none of its content.
        for reply in (upstream.answer, answer(b"")[:-5] + b"9\r\n\r\n"):
            upstream.answer = reply
            client.request("POST", "/v1/chat/completions", chat("hi"), {"Authorization": f"Bearer {KEYS['acme']}"})
            response = client.getresponse()
            statuses.append((response.status, len(response.read()) > 0))
        completions = [record for record in gateway.records() if record["kind"] == "completion"]
    assert statuses == [(200, True), (502, True)]
    assert completions[0]["policy"]["rules"] == ["weak-a"]
    assert "policy" not in completions[1]


@pytest.mark.parametrize("stream", [False, True], ids=["unary", "streamed"])
def test_an_answer_is_redacted_alike_however_it_comes(folder: Path, stream: bool) -> None:
    pieces = ["ask st", "aff-12", "3456 or wait"]
    reply = events(pieces) if stream else answer(completion("".join(pieces)))
    with recording_upstream(reply) as upstream, local_gateway(folder, settings=settings(upstream.url)) as gateway:
        told = send(gateway.address, chat_request(chat("hi", stream=stream), KEYS["acme"]))
        completions = [record for record in gateway.records() if record["kind"] == "completion"]
    assert b"[redacted:staff-number]" in told
    assert b"3456" not in body_of(told)
    assert b"or wait" in told
    assert completions[0]["policy"] == {
        "score": 0,
        "scope": "answer",
        "rules": ["staff-number"],
        "redacted": True,
        "would_block": False,
    }


def test_in_dry_run_everything_passes_and_is_noted(folder: Path) -> None:
    with governed(folder, mode="DryRun") as (_upstream, gateway):
        passed = send(gateway.address, chat_request(chat("bluebird"), KEYS["acme"]))
        admission = next(record for record in gateway.records() if record["kind"] == "admission")
    assert status_of(passed) == 200
    assert admission["policy"]["would_block"] is True


def test_in_dry_run_nothing_is_denied_not_even_by_rules_that_fail(folder: Path) -> None:
    with governed(folder, mode="DryRun", budgetMilliseconds=0.1, budgetMicrosecondsPerKibibyte=1) as (
        _upstream,
        gateway,
    ):
        slow = send(gateway.address, chat_request(chat("staff-12345 " * 200_000), KEYS["acme"]))
        admission = next(record for record in gateway.records() if record["kind"] == "admission")
    assert status_of(slow) == 200
    assert admission["policy"] == {"score": 0, "rules": [], "redacted": False, "would_block": True}


def test_in_dry_run_an_answer_that_cannot_be_read_passes_as_it_came(folder: Path) -> None:
    reply = answer(b'{"choices": [')
    policy = settings("", mode="DryRun")["policy"]
    with recording_upstream(reply) as upstream:
        provider = settings(upstream.url)["providers"]
        with local_gateway(folder, settings={"providers": provider, "policy": policy}) as gateway:
            told = send(gateway.address, chat_request(chat("hi"), KEYS["acme"]))
    assert status_of(told) == 200
    assert body_of(told) == b'{"choices": ['


def test_a_hundred_rules_that_match_fit_into_the_record(folder: Path) -> None:
    rules = [
        {"id": f"{'long-' * 11}{number}", "reason": "r", "literals": ["bluebird"], "score": 0, "action": "Flag"}
        for number in range(100)
    ]
    with governed(folder, rules=rules) as (_upstream, gateway):
        passed = send(gateway.address, chat_request(chat("bluebird"), KEYS["acme"]))
        admission = next(record for record in gateway.records() if record["kind"] == "admission")
    assert status_of(passed) == 200
    assert (len(admission["policy"]["rules"]), admission["policy"]["unnamed"]) == (16, 84)


def test_rules_that_outlast_their_budget_deny_that_request_alone(folder: Path) -> None:
    with governed(folder, budgetMilliseconds=0.1, budgetMicrosecondsPerKibibyte=1) as (upstream, gateway):
        # A long text with many near matches of one rule.
        slow = send(gateway.address, chat_request(chat("staff-12345 " * 200_000), KEYS["acme"]))
        quick = send(gateway.address, chat_request(chat("good morning"), KEYS["acme"]))
        rejection = next(record for record in gateway.records() if record["kind"] == "rejection")
    assert (status_of(slow), error_of(slow)["code"]) == (403, "policy_budget")
    assert rejection["code"] == "policy_budget"
    assert status_of(quick) == 200
    assert len(upstream.requests) == 1
