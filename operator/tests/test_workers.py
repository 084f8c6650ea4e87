"""The operator's requests to workers over HTTP, their reports, and how rarely a request is sent."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from proofgate_operator.build.naming import CONFIG_ANNOTATION
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.omitted_keys import omitted_key_faults
from proofgate_operator.plan.reports import UNREACHABLE, OmittedKeys, WorkerReport, parse_worker_report
from proofgate_operator.workers.admin_port import AdminPort
from proofgate_operator.workers.reports import WorkerReports

TOKEN = "admin-token"
STATUS: dict[str, Any] = {
    "not_ready": None,
    "in_flight": 2,
    "connections": 3,
    "config_digest": "ab" * 32,
    "config_file_digest": "cd" * 32,
    "last_reload_error": None,
    "effective_cpus": [4],
    "cpu_periods": 100,
    "cpu_periods_throttled": 1,
}
NOBODY: frozenset[int] = frozenset()


class Admin:
    """A worker's admin port."""

    def __init__(self) -> None:
        self.answer = json.dumps(STATUS)
        self.http_status = 200
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.retiring = False
        self.location = ""

    async def respond(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        self.tokens.append(request.headers.get("Authorization"))
        if self.location:
            raise web.HTTPTemporaryRedirect(self.location)
        if request.path == "/retirement":
            self.retiring = request.method == "PUT"
        return web.Response(text=self.answer, status=self.http_status)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def admin() -> AsyncIterator[tuple[Admin, WorkerReports, Clock]]:
    port, clock = Admin(), Clock()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", port.respond)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    workers = WorkerReports(AdminPort(runner.addresses[0][1]), clock, clock)
    yield port, workers, clock
    await workers.admin_port.close()
    await runner.cleanup()


def pod(ordinal: int = 0, uid: str = "a", mark: str = "1", ready: str = "True") -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"demo-worker-{ordinal}",
            "uid": uid,
            "annotations": {CONFIG_ANNOTATION: mark},
        },
        "status": {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": ready}]},
    }


async def told(
    workers: WorkerReports, *pods: dict[str, Any], ask: frozenset[int] = NOBODY
) -> WorkerReport | None:
    return (await workers.reports("team", "demo", pods or (pod(),), ask)).get(0)


async def test_a_worker_tells_what_is_open_and_which_cpus_it_has(admin: Any) -> None:
    _, workers, _ = admin
    report = await told(workers)
    assert report == WorkerReport(
        serving=True, in_flight=2, connections=3, config_digest="ab" * 32, file_digest="cd" * 32, cpus=1
    )


@pytest.mark.parametrize(("told_as", "checkpoint"), [("a note", "a note"), (None, ""), (7, "")])
async def test_a_worker_tells_its_newest_checkpoint(admin: Any, told_as: Any, checkpoint: str) -> None:
    port, workers, _ = admin
    port.answer = json.dumps({**STATUS, "checkpoint": told_as})
    report = await told(workers)
    assert report and report.checkpoint == checkpoint


async def test_a_steady_worker_is_asked_once_and_one_that_retires_at_every_reconcile(admin: Any) -> None:
    port, workers, _ = admin
    for _ in range(5):
        await told(workers)
    assert port.asked == ["GET /status"]
    for _ in range(5):
        await told(workers, ask=frozenset({0}))
    assert len(port.asked) == 6
    assert port.tokens == [None] * 6, "no request needs the token"


@pytest.mark.parametrize(
    "changed", [pod(ready="False"), pod(mark="2"), pod(uid="b")], ids=["readiness", "mark", "uid"]
)
async def test_a_worker_is_asked_again_when_its_pod_changes(admin: Any, changed: dict[str, Any]) -> None:
    port, workers, _ = admin
    await told(workers)
    await told(workers, changed)
    assert len(port.asked) == 2


async def test_an_answer_grows_old(admin: Any) -> None:
    port, workers, clock = admin
    await told(workers)
    clock.seconds = 301
    await told(workers)
    assert len(port.asked) == 2


async def test_what_a_worker_makes_of_a_new_configuration_is_awaited_for_a_while(admin: Any) -> None:
    port, workers, clock = admin
    await told(workers)
    assert not workers.awaits_reload("team", "demo")
    await told(workers, pod(mark="2"))
    assert workers.awaits_reload("team", "demo")
    error = {"code": "config_invalid", "problems": [{"field": "tenants[0].name", "message": "is taken"}]}
    port.answer = json.dumps({**STATUS, "last_reload_error": error})
    clock.seconds = 4
    report = await told(workers, pod(mark="2"))
    assert report and report.refusal_reason == "config_invalid; tenants[0].name: is taken"
    clock.seconds = 30
    assert not workers.awaits_reload("team", "demo")


async def test_a_worker_is_retired_and_told_to_stay_with_the_token(admin: Any) -> None:
    port, workers, _ = admin
    assert await workers.admin_port.retire(pod(), TOKEN)
    assert port.retiring
    assert await workers.admin_port.cancel_retirement(pod(), TOKEN)
    assert not port.retiring
    assert port.tokens == [f"Bearer {TOKEN}"] * 2
    port.http_status = 409
    assert not await workers.admin_port.cancel_retirement(pod(), TOKEN)


async def test_the_token_follows_no_redirect(admin: Any) -> None:
    port, workers, _ = admin
    port.location = "/elsewhere"
    assert not await workers.admin_port.retire(pod(), TOKEN)
    assert port.asked == ["PUT /retirement"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        "{",
        "null",
        '{"in_flight": -1, "connections": 0}',
        '{"in_flight": true}',
        "x" * 300_000,
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 40_000 + "0" + "}" * 40_000,
    ],
    ids=[
        "empty",
        "list",
        "broken",
        "null",
        "negative",
        "boolean",
        "long",
        "deep",
        "deep list",
        "deep object",
    ],
)
async def test_nonsense_counts_as_unreachable(admin: Any, answer: str) -> None:
    port, workers, _ = admin
    port.answer = answer
    assert await told(workers) == UNREACHABLE


@pytest.mark.parametrize("problems", [7, {"field": "a"}, [7, [[]]], "text"])
async def test_a_refusal_that_lists_nonsense_is_still_one(admin: Any, problems: Any) -> None:
    port, workers, _ = admin
    error = {"code": "config_invalid", "problems": problems}
    port.answer = json.dumps({**STATUS, "last_reload_error": error})
    report = await told(workers)
    assert report and report.refusal_reason == "config_invalid"


async def test_a_worker_that_cannot_be_reached_is_asked_again_soon(admin: Any) -> None:
    port, workers, clock = admin
    port.http_status = 503
    assert await told(workers) == UNREACHABLE
    port.http_status = 200
    clock.seconds = 11
    report = await told(workers)
    assert report and report.reachable


async def test_a_pod_without_an_address_or_on_its_way_out_is_not_asked(admin: Any) -> None:
    port, workers, _ = admin
    leaving, homeless = pod(), pod(1, "b")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    del homeless["status"]["podIP"]
    assert await workers.reports("team", "demo", [leaving, homeless], NOBODY) == {}
    assert port.asked == [] and not await workers.admin_port.retire(leaving, TOKEN)


async def test_many_workers_are_asked_together(admin: Any) -> None:
    _, workers, _ = admin
    pods = [pod(number, f"pod-{number}") for number in range(64)]
    assert len(await asyncio.wait_for(workers.reports("team", "demo", pods, NOBODY), 600)) == 64
    workers.remove_gateway("team", "demo")
    assert workers.cached_reports("team", "demo", pods) == {}


@pytest.mark.parametrize(("throttled", "held"), [(0, False), (5, False), (6, True), (None, False)])
def test_a_worker_is_throttled_when_one_period_of_twenty_is(throttled: int | None, held: bool) -> None:
    assert parse_worker_report({**STATUS, "cpu_periods_throttled": throttled}).throttled is held


def test_keys_that_a_worker_left_out_are_told_by_tenant_and_name() -> None:
    first = [{"tenant": "team-a/chat", "key": "ci"}, {"tenant": "team-b/chat", "key": "old"}, {}]
    shards = {"tenants": 2, "keys": 3, "refused": [], "well_known": 3, "first_well_known": first}
    report = parse_worker_report({**STATUS, "tenant_shards": shards})
    assert report.omitted_keys == OmittedKeys(3, (("team-a/chat", "ci"), ("team-b/chat", "old")))
    seen = ObservedState({}, {}, (), (), worker_reports={0: parse_worker_report(STATUS), 1: report})
    (fault,) = omitted_key_faults(seen)
    assert (fault.field, fault.reason) == ("spec.allowedTenants", "KeyWellKnown")
    assert "worker 1: 3 keys are ignored, such as ci of team-a/chat and old of team-b/chat" in fault.message


@pytest.mark.parametrize("odd", [None, 7, [], {"well_known": "3"}, {"well_known": -1}])
def test_an_answer_that_says_nothing_of_such_keys_is_no_fault(odd: object) -> None:
    report = parse_worker_report({**STATUS, "tenant_shards": odd})
    assert report.omitted_keys == OmittedKeys()


def test_an_odd_list_of_such_keys_costs_no_more_than_itself() -> None:
    shards = {"well_known": 2, "first_well_known": ["x", {"tenant": 7}]}
    assert parse_worker_report({**STATUS, "tenant_shards": shards}).omitted_keys == OmittedKeys(
        2, (("7", ""),)
    )
