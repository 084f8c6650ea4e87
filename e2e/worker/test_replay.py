"""Replay: the recorded verdicts are confirmed with the bodies that a client kept, and a forged verdict is not."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from proofgate import _core
from proofgate.cli import main

from e2e.forging import rewrite, seed_of, sign_anew
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.worker.raw_http import answer, recording_upstream, send
from e2e.worker.test_policy import POLICY, RULES, body_of, chat, completion, events
from e2e.worker.test_python_policies import OBEYS

EMBEDDING = json.dumps({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}).encode()


def said(text: str) -> dict[str, Any]:
    """A response of OpenAI's Responses API with this text."""
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    return {"id": "r", "object": "response", "status": "completed", "model": MODEL, "output": [message]}


def streamed_response(pieces: list[str]) -> bytes:
    place = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0}
    told = [{**place, "sequence_number": number, "delta": piece} for number, piece in enumerate(pieces)]
    told.append({"type": "response.completed", "sequence_number": 9, "response": said("".join(pieces))})
    body = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in told)
    return answer(body, head=b"Content-Type: text/event-stream\r\n")


def finished(stream: bytes) -> bytes:
    """A stream with a finish reason, which a translation needs."""
    stop = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = stream.split(b"\r\n\r\n", 1)[1].replace(b"data: [DONE]", f"data: {stop}\n\ndata: [DONE]".encode())
    return answer(body, head=b"Content-Type: text/event-stream\r\n")


def cut(stream: bytes) -> bytes:
    """A stream without a final event."""
    body = stream.split(b"\r\n\r\n", 1)[1].removesuffix(b"data: [DONE]\n\n")
    return answer(body, head=b"Content-Type: text/event-stream\r\n")


#: The exchanges by name: the tenant, the endpoint, the request, and the upstream's answer.
EXCHANGES: dict[str, tuple[str, str, bytes, bytes]] = {
    "allowed": ("acme", "chat/completions", chat("hello"), answer(completion("hello"))),
    "flagged": ("acme", "chat/completions", chat("an alphasign"), answer(completion("hello"))),
    "redacted": ("acme", "chat/completions", chat("ask staff-123456 now"), answer(completion("hello"))),
    "secret": ("acme", "chat/completions", chat("AKIAIOSFODNN7EXAMPLQ"), answer(completion("hello"))),
    "blocked": ("acme", "chat/completions", chat("about Blue\u200bbird"), b""),
    "blocked by scores": ("acme", "chat/completions", chat("alphasign and betasign"), b""),
    "answer flagged": ("acme", "chat/completions", chat("hi"), answer(completion("an alphasign"))),
    "answer redacted": ("acme", "chat/completions", chat("hi"), answer(completion("it is staff-123456."))),
    "answer blocked": ("acme", "chat/completions", chat("hi"), answer(completion("so bluebird is"))),
    "stream": ("acme", "chat/completions", chat("hi", stream=True), events(["so al", "phasi", "gn is"])),
    "stream redacted": ("acme", "chat/completions", chat("hi", stream=True), events(["ask st", "aff-12", "3456 or"])),
    "stream blocked": ("acme", "chat/completions", chat("hi", stream=True), events(["here. And ", "blue", "bird is"])),
    "dry run": ("globex", "chat/completions", chat("about bluebird"), answer(completion("about bluebird"))),
    "dry run stream": (
        "globex",
        "chat/completions",
        chat("hi", stream=True),
        events(["ask staff-", "123456 of bluebird"]),
    ),
    "embeddings": (
        "acme",
        "embeddings",
        json.dumps({"model": MODEL, "input": ["an alphasign", "b"]}).encode(),
        answer(EMBEDDING),
    ),
    "completions": (
        "acme",
        "completions",
        json.dumps({"model": MODEL, "prompt": "an alphasign"}).encode(),
        answer(json.dumps({"choices": [{"index": 0, "text": "an alphasign", "finish_reason": "stop"}]}).encode()),
    ),
    "messages": (
        "acme",
        "messages",
        json.dumps(
            {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "ask staff-123456"}]}
        ).encode(),
        answer(completion("an alphasign")),
    ),
    "messages stream": (
        "acme",
        "messages",
        json.dumps(
            {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        ).encode(),
        finished(events(["an al", "phasign", " it is"])),
    ),
    "responses": (
        "acme",
        "responses",
        json.dumps({"model": MODEL, "input": "ask staff-123456"}).encode(),
        answer(json.dumps(said("an alphasign")).encode()),
    ),
    "responses stream": (
        "acme",
        "responses",
        json.dumps({"model": MODEL, "input": "hi", "stream": True}).encode(),
        streamed_response(["an al", "phasign", " it is"]),
    ),
    "refused by the provider": (
        "acme",
        "chat/completions",
        chat("hi"),
        answer(b'{"error":{"message":"an alphasign"}}').replace(b"200 OK", b"400 Bad Request", 1),
    ),
    "cut": ("acme", "chat/completions", chat("hi", stream=True), cut(events(["an alphasign, ", "so ", "it"]))),
}
#: Exchanges whose complete answer, as the rules saw it, was not kept.
IN_PART = {"answer redacted", "stream redacted", "answer blocked", "stream blocked", "cut"}
REFUSED = {"secret", "blocked", "blocked by scores"}


def request(path: str, body: bytes, tenant: str) -> bytes:
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Authorization: Bearer {KEYS[tenant]}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Served:
    """A ledger, and the bodies that the clients kept."""

    folder: Path
    key: str
    ids: dict[str, str]

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def log(self) -> Path:
        [log] = [path for path in self.ledger.glob("0/*") if path.is_dir()]
        return log

    def replay(self, capsys: pytest.CaptureFixture[str], *arguments: str, bodies: bool = True) -> tuple[int, Any]:
        kept = ["--bodies", str(self.folder / "bodies")] if bodies else []
        capsys.readouterr()
        code = main(["ledger", "replay", str(self.ledger), "--key", self.key, "--json", *kept, *arguments])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    def copy(self, folder: Path) -> Served:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Served(folder, self.key, self.ids)


def serve(
    gateway: LocalGateway,
    bodies: Path,
    answered: Callable[[bytes], None],
    exchanges: dict[str, tuple[str, str, bytes, bytes]],
) -> dict[str, str]:
    ids = {}
    for name, (tenant, path, asked, reply) in exchanges.items():
        # The upstream serves one request on each connection.
        answered(reply.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        told = send(gateway.address, request(path, asked, tenant))
        head = told.split(b"\r\n\r\n", 1)[0].decode().lower()
        ids[name] = head.split("x-request-id: ", 1)[1].split("\r\n", 1)[0]
        (bodies / f"{ids[name]}.request").write_bytes(asked)
        (bodies / f"{ids[name]}.response").write_bytes(body_of(told))
    return ids


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("replay")
    (folder / "bodies").mkdir()
    with recording_upstream(b"") as upstream:
        tenants: list[dict[str, Any]] = [
            {"name": name, "keyHashes": [_core.hash_api_key(key)]} for name, key in KEYS.items()
        ]
        tenants[1]["policy"] = {"mode": "DryRun"}
        settings = {
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}],
            # The large budget keeps the verdicts independent of the machine's speed.
            "policy": {**POLICY, "budgetMilliseconds": 1000},
            "tenants": tenants,
        }
        with local_gateway(folder, settings=settings) as gateway:

            def answered(reply: bytes) -> None:
                upstream.answer = reply

            ids = serve(gateway, folder / "bodies", answered, EXCHANGES)
            assert gateway.worker is not None
            assert gateway.worker.stop() == 0
            return Served(folder, gateway.verifying_key, ids)


def reasons(report: Any, direction: str) -> dict[tuple[str, str], int]:
    return {(told["result"], told["reason"]): told["count"] for told in report[direction]["reasons"]}


def test_every_verdict_of_a_worker_comes_out_again(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = served.replay(capsys)
    assert (report["examples"], report["problems"], report["unverified"]) == ([], [], 0)
    assert report["exchanges"] == len(EXCHANGES)
    request, response = report["request"], report["response"]
    assert (request["same"], request["not_replayable"], request["consistent"]) == (len(EXCHANGES), 0, 0)
    assert (response["same"], response["not_replayable"]) == (len(EXCHANGES.keys() - IN_PART - REFUSED), 1)
    assert reasons(report, "response") == {
        ("consistent", "redacted_answer"): 2,
        ("consistent", "blocked_answer"): 2,
        # No byte of this answer was sent.
        ("not_replayable", "cut_short"): 1,
    }
    assert reasons(report, "request") == {}, "also the denied ones are committed to"
    assert report["refused_by_policy"] == {"requests": len(REFUSED), "with_body": len(REFUSED)}
    assert code == 0


def test_without_bodies_the_recorded_rules_and_scores_alone_are_held_against_what_was_denied(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = served.replay(capsys, bodies=False)
    assert reasons(report, "request") == {
        ("consistent", "rules_and_score"): len(REFUSED),
        ("not_replayable", "not_stored"): len(EXCHANGES) - len(REFUSED),
    }
    assert report["refused_by_policy"] == {"requests": 3, "with_body": 0}
    assert code == 3


def test_filters_choose_exchanges(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, count in (
        (["--tenant", "globex"], 2),
        (["--id", served.ids["stream"]], 1),
        (["--limit", "3"], 3),
        (["--since", "2100-01-01"], 0),
        (["--until", "2100-01-01"], len(EXCHANGES)),
        (["--model", MODEL], len(EXCHANGES) - len(REFUSED)),
    ):
        _, report = served.replay(capsys, *arguments)
        assert report["exchanges"] == count, arguments


def test_a_configuration_that_was_changed_is_refused_by_its_name(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = served.copy(tmp_path)
    [archived] = (copy.ledger / "configurations").glob("*.json")
    archived.write_text(archived.read_text().replace("bluebird", "redbird"))
    code, report = copy.replay(capsys)
    assert {reason for _, reason in reasons(report, "request")} == {"configuration_changed"}
    archived.unlink()
    _, report = copy.replay(capsys)
    assert {reason for _, reason in reasons(report, "request")} == {"configuration_unknown"}
    assert code == 3


def lie(served: Served, edit: Callable[[list[dict[str, Any]]], None], *, signed: bool) -> None:
    """Changes the records; `signed` signs them again, as a lying worker could."""
    rewrite(min(served.log.glob("*.seg")), edit)
    if signed:
        sign_anew(served.log, seed_of(served.folder / "signing-key"))


def of(records: list[dict[str, Any]], kind: str, request_id: str) -> dict[str, Any]:
    [record] = [record for record in records if record["kind"] == kind and record["id"] == request_id]
    return record


def test_a_verdict_that_a_worker_made_up_differs(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = served.ids
    about = {"score": 60, "scope": "user", "message": "messages[0]", "flagged": True}
    named = {**about, "rules": ["weak-a"], "redacted": False, "would_block": False}

    def edit(records: list[dict[str, Any]]) -> None:
        # A removed finding, and an invented one.
        del of(records, "admission", ids["flagged"])["policy"]
        of(records, "admission", ids["allowed"])["policy"] = named
        # An answer that is recorded as unchanged, but was changed or would have been denied.
        of(records, "completion", ids["stream"]).pop("policy")
        # Rules that do not deny, for a request that was denied.
        of(records, "rejection", ids["blocked"])["policy"] = named
        # A redaction that hides a rule's name.
        of(records, "completion", ids["answer blocked"])["policy"] = named

    copy = served.copy(tmp_path)
    lie(copy, edit, signed=True)
    code, report = copy.replay(capsys)
    told = {
        (example["id"], example["direction"]): (example["recorded"]["verdict"], example["replayed"])
        for example in report["examples"]
    }
    assert told.keys() == {
        (ids["flagged"], "request"),
        (ids["allowed"], "request"),
        (ids["stream"], "response"),
        (ids["blocked"], "request"),
        (ids["answer blocked"], "response"),
    }
    recorded, replayed = told[ids["flagged"], "request"]
    assert (recorded, replayed) == ("allow", {"verdict": "flag", **about, "rules": ["weak-a"]})
    assert code == 1


def test_records_that_the_key_did_not_sign_count_for_nothing(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = served.copy(tmp_path)
    lie(copy, lambda records: of(records, "admission", served.ids["flagged"]).pop("policy"), signed=False)
    code, report = copy.replay(capsys)
    assert (report["exchanges"], report["unverified"]) == (0, len(EXCHANGES))
    assert "do not hash to the root" in report["problems"][0]
    assert code == 1


def test_other_bodies_than_the_recorded_ones_are_not_judged(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = served.copy(tmp_path)
    bodies, ids = copy.folder / "bodies", served.ids
    flagged = bodies / f"{ids['flagged']}.request"
    flagged.write_bytes(flagged.read_bytes().replace(b"alpha", b"gamma"))
    (bodies / f"{ids['allowed']}.request").write_bytes(b"{}")
    (bodies / f"{ids['stream']}.response").unlink()
    (bodies / f"{ids['redacted']}.request").unlink()
    (bodies / f"{ids['redacted']}.request").symlink_to("/dev/zero")
    salts = copy.log / "salts"
    salts.write_bytes(bytes(salts.stat().st_size))
    _, report = served.replay(capsys, "--id", ids["stream"])
    assert report["response"]["same"] == 1
    code, report = copy.replay(capsys)
    assert reasons(report, "request")[("not_replayable", "other_body")] == 1
    assert reasons(report, "request")[("not_replayable", "erased")] == len(EXCHANGES) - len(REFUSED) - 2
    assert reasons(report, "response")[("not_replayable", "not_stored")] == 1
    salts.unlink()
    assert reasons(copy.replay(capsys)[1], "request") == reasons(report, "request")
    assert code == 3, "without salts no body is known to be the recorded one, also of denied requests"


OTHER: dict[str, Any] = {
    **POLICY,
    "rules": [
        {**RULES[0], "action": "Flag", "score": 10},
        {**RULES[1], "action": "Block"},
        *RULES[2:],
        {"id": "greeting", "reason": "It says hello.", "literals": ["hello"], "score": 1, "action": "Flag"},
    ],
}


def test_another_policy_changes_exactly_what_its_rules_say(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = yaml.safe_load((served.folder / "gateway.yaml").read_text())
    new = tmp_path / "new.yaml"
    new.write_text(yaml.safe_dump({**document, "policy": OTHER}))
    code, report = served.replay(capsys, "--policy", str(new), "--examples", "100")
    requests = {
        name: (example["recorded"]["verdict"], example["replayed"]["verdict"])
        for example in report["examples"]
        for name, request_id in served.ids.items()
        if example["direction"] == "request" and example["id"] == request_id
    }
    assert requests == {
        "allowed": ("allow", "flag"),
        "flagged": ("flag", "block"),
        "blocked": ("block", "flag"),
        # The same verdict with another finding.
        "dry run": ("would_block", "flag"),
        "embeddings": ("flag", "block"),
        "completions": ("flag", "block"),
    }
    assert {"direction": "request", "rule": "greeting", "change": "more", "count": 1} in report["rules"]
    counted = {
        (change["direction"], change["tenant"], change["recorded"], change["replayed"]): change["count"]
        for change in report["changes"]
    }
    assert counted["request", "acme", "flag", "block"] == 3
    assert counted["response", "acme", "flag", "block"] == 8
    assert reasons(report, "response")[("not_replayable", "redacted_answer")] == 2
    assert reasons(report, "response")[("not_replayable", "blocked_answer")] == 2
    assert code == 1
    document["policy"] = POLICY
    new.write_text(yaml.safe_dump(document))
    assert served.replay(capsys, "--policy", str(new))[0] == 0


def test_no_text_is_printed_unless_it_is_asked_for(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = yaml.safe_load((served.folder / "gateway.yaml").read_text())
    new = tmp_path / "new.yaml"
    new.write_text(yaml.safe_dump({**document, "policy": {}}))
    arguments = [str(served.ledger), "--key", served.key, "--bodies", str(served.folder / "bodies")]
    for more, shown in ([], False), (["--json"], False), (["--show-text"], True), (["--json", "--show-text"], True):
        assert main(["ledger", "replay", *arguments, "--policy", str(new), *more]) == 1
        out = capsys.readouterr().out
        assert ("staff-123456" in out) is shown
        assert ("staff-number" in out) is True


def test_what_cannot_be_used_is_said(served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("policy: {packs: [nothing]}\n")
    ledger, key = str(served.ledger), ["--key", served.key]
    for arguments, said in (
        ([ledger, *key, "--bodies", str(tmp_path / "none")], "is not a directory"),
        ([ledger, *key, "--policy", str(bad)], "the configuration is not valid"),
        ([str(tmp_path / "none"), *key], "none"),
        ([ledger, "--key", "no+key"], "key"),
    ):
        assert main(["ledger", "replay", *arguments]) == 2, arguments
        assert said in capsys.readouterr().err


def test_beside_a_policy_in_python_the_rules_own_part_comes_out_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = answer(completion("hello"))
    asked = {
        word: ("acme", "chat/completions", chat(word), reply)
        for word in ("good morning", "do-flag", "ask Ann", "a bluebird")
    }
    (tmp_path / "bodies").mkdir()
    tenants = [{"name": "acme", "keyHashes": [_core.hash_api_key(KEYS["acme"])], "policies": ["obeys"]}]
    with recording_upstream(b"") as upstream:
        settings = {
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}],
            "policies": [{**OBEYS, "deadlineMilliseconds": 10_000}],
            "tenants": tenants,
        }
        with local_gateway(tmp_path, settings=settings) as gateway:

            def answered(reply: bytes) -> None:
                upstream.answer = reply

            ids = serve(gateway, tmp_path / "bodies", answered, asked)
            assert gateway.worker is not None
            assert gateway.worker.stop() == 0
    code, report = Served(tmp_path, gateway.verifying_key, ids).replay(capsys)
    assert reasons(report, "request") == {("consistent", "other_policy"): 4}
    # If a text was replaced, the rules may have seen a different answer.
    assert (report["response"]["same"], reasons(report, "response")) == (2, {("not_replayable", "other_policy"): 1})
    assert (code, report["examples"]) == (0, [])


def test_what_a_worker_stored_is_replayed_by_whoever_has_the_keys_of_its_tenants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tmp_path / "shred-keys"
    keys.mkdir()
    for tenant in KEYS:
        (keys / tenant).write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    with recording_upstream(b"") as upstream:
        settings = {
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}],
            "policy": {**POLICY, "budgetMilliseconds": 1000},
            "ledger": {"payloads": {"mode": "Stored"}, "shredKeysDirectory": str(keys)},
        }
        (tmp_path / "bodies").mkdir()
        with local_gateway(tmp_path, settings=settings) as gateway:

            def answered(reply: bytes) -> None:
                upstream.answer = reply

            kept = {name: EXCHANGES[name] for name in ("flagged", "stream", "answer redacted", "blocked")}
            ids = serve(gateway, tmp_path / "bodies", answered, kept)
            assert gateway.worker is not None
            assert gateway.worker.stop() == 0
    served = Served(tmp_path, gateway.verifying_key, ids)
    code, report = served.replay(capsys, "--shred-keys", str(keys), bodies=False)
    assert (code, report["examples"]) == (0, [])
    assert (report["request"]["same"], report["response"]["same"]) == (4, 2)
    assert reasons(report, "request") == {}, "the denied one is stored as well"
    assert reasons(report, "response") == {("consistent", "redacted_answer"): 1}
    code, report = served.replay(capsys, "--shred-keys", str(keys))
    assert (code, report["request"]["same"]) == (0, 4)
    (keys / "acme").unlink()
    for bodies in (False, True):
        code, report = served.replay(capsys, "--shred-keys", str(keys), bodies=bodies)
        assert reasons(report, "request")[("not_replayable", "shred_key_missing")] == 3
    assert code == 3, "of the denied request the recorded rules alone are left"
