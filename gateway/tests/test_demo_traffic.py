"""`proofgate demo-traffic`: its planned requests, and their destinations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from conftest import refusing_port, serving
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from test_cli import usage_error

from proofgate import _core
from proofgate.cli import main
from proofgate.local.folder import QuickstartFolder, RunningGateway
from proofgate.quickstart import DEMO_MODELS, create, demo_setup
from proofgate.traffic.plan import ModelsByKind, plan_requests

TENANTS = ("acme", "globex", "initech")
MODELS = ModelsByKind.from_names((*DEMO_MODELS, "mock-overloaded"))
KINDS = {
    *("chat", "streamed chat", "agent turn", "embedding", "personal data", "secret", "attack"),
    *("wrong key", "unknown model"),
}

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("count", [1, 8, 9, 15, 60, 500])
def test_it_plans_as_many_as_are_asked_for(count: int) -> None:
    requests = plan_requests(count, 3, TENANTS, MODELS)
    assert len(requests) == count
    kinds = {request.kind for request in requests}
    assert kinds <= KINDS
    assert count < len(KINDS) or kinds == KINDS


def test_one_seed_makes_one_plan() -> None:
    assert plan_requests(80, 5, TENANTS, MODELS) == plan_requests(80, 5, TENANTS, MODELS)
    assert plan_requests(80, 5, TENANTS, MODELS) != plan_requests(80, 6, TENANTS, MODELS)


def test_turns_of_an_agent_carry_the_whole_history_in_its_order() -> None:
    sessions: dict[str, list[int]] = {}
    for request in plan_requests(300, 1, TENANTS, MODELS):
        if request.kind == "agent turn":
            sessions.setdefault(request.headers["x-session-id"], []).append(len(request.body["messages"]))
    assert len(sessions) > 1
    assert all(turns == [2 + 2 * turn for turn in range(len(turns))] for turns in sessions.values())


def test_a_gateway_without_embeddings_is_asked_for_none() -> None:
    requests = plan_requests(200, 1, ("acme",), ModelsByKind.from_names(("gpt-4o-mini",)))
    assert {request.kind for request in requests} == KINDS - {"embedding"}
    assert {request.body["model"] for request in requests} == {"gpt-4o-mini", "no-such-model"}


def a_folder(tmp_path: Path, address: str, *, simulated: bool = True) -> Path:
    folder = tmp_path / "run"
    create(folder, demo_setup("http://127.0.0.1:9/v1", "127.0.0.1:0", "127.0.0.1:1", "proofgate.dev/t"))
    QuickstartFolder(folder).write_running(RunningGateway(address, "127.0.0.1:1", "127.0.0.1:2", simulated))
    return folder


def gateway(seen: list[tuple[str, str]]) -> FastAPI:
    app = FastAPI()

    @app.post("/v1/{path:path}")
    async def answer(request: Request) -> JSONResponse:
        body = await request.json()
        seen.append((request.headers["authorization"].removeprefix("Bearer "), body["model"]))
        if body["model"] == "no-such-model":
            return JSONResponse({"error": {"code": "model_not_found"}}, 404)
        return JSONResponse({})

    return app


def test_it_sends_with_the_keys_of_the_tenants_and_says_what_came_of_it(
    tmp_path: Path, capsys: Capture
) -> None:
    seen: list[tuple[str, str]] = []
    with serving(gateway(seen)) as url:
        folder = a_folder(tmp_path, url.removeprefix("http://"))
        assert main(["demo-traffic", "--directory", str(folder), "--requests", "40", "--seed", "2"]) == 0
    told = capsys.readouterr().out
    keys = {path.read_text().strip() for path in folder.glob("tenant-key*")}
    digests = (folder / "gateway.yaml").read_text()
    assert all(_core.hash_api_key(key) in digests for key in keys)
    sent = Counter(key for key, _ in seen)
    assert len(seen) == 40
    assert set(sent) == keys | {"not-a-key-of-any-tenant"}
    assert "40 of 40 requests sent" in told
    assert "39 answered" in told
    assert "1 404 model_not_found" in told
    assert all(key not in told for key in keys)


def test_a_real_provider_is_asked_only_when_that_is_allowed(tmp_path: Path, capsys: Capture) -> None:
    seen: list[tuple[str, str]] = []
    with serving(gateway(seen)) as url:
        folder = a_folder(tmp_path, url.removeprefix("http://"), simulated=False)
        command = ["demo-traffic", "--directory", str(folder), "--requests", "3"]
        assert main(command) == 2
        assert "--real-provider allows this" in capsys.readouterr().err
        assert seen == []
        assert main([*command, "--real-provider"]) == 0
        assert len(seen) == 3


def test_without_a_gateway_it_says_how_to_start_one(tmp_path: Path, capsys: Capture) -> None:
    assert main(["demo-traffic", "--directory", str(tmp_path)]) == 2
    assert "is not the folder of a quickstart" in capsys.readouterr().err
    with refusing_port() as port:
        folder = a_folder(tmp_path, f"127.0.0.1:{port}")
        assert main(["demo-traffic", "--directory", str(folder)]) == 1
    assert "does not answer" in capsys.readouterr().err
    (folder / "running.json").unlink()
    assert main(["demo-traffic", "--directory", str(folder)]) == 2
    assert "proofgate quickstart --start --directory" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "10001", "-1", "many"])
def test_traffic_is_bounded(count: str) -> None:
    assert usage_error("demo-traffic", "--requests", count) == 2


def test_a_summary_is_of_json_and_of_nothing_else() -> None:
    from proofgate.traffic.sending import _outcome

    assert _outcome(200, b"") == "answered"
    assert _outcome(403, json.dumps({"error": {"code": "policy_denied"}}).encode()) == "403 policy_denied"
    assert _outcome(502, b"<html>") == "502"
