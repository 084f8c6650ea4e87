"""Requests to auditors over HTTP, how their answers are parsed, and how rarely other parts are notified."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from proofgate_operator.plan.audit_reports import (
    UNREACHABLE_AUDITOR,
    AuditReport,
    Finding,
    IndexStatus,
    WitnessStatus,
    parse_audit_report,
)
from proofgate_operator.workers.admin_port import AdminPort
from proofgate_operator.workers.audit_reports import AuditReports
from proofgate_operator.workers.reports import WorkerReports
from tests.auditing import AUDITOR, ROLLBACK, key_secret, note, report
from tests.gateways import NAMESPACE
from tests.operators import loop, operator
from tests.test_convergence import new_cluster

FINDING = {
    "code": "rollback",
    "origin": "proofgate.dev/team/demo/0/X",
    "shard": "0",
    "verdict": "diverged",
    "since": 1_700_000_000_000_000,
    "message": "it was set back",
}
STATUS: dict[str, Any] = {
    "checkpoint": "a note",
    "newest_head": 1_800_000_000_000_000,
    "last_poll": 1_800_000_001.5,
    "poll_age_seconds": 0.5,
    "poll_failures": 0,
    "records_behind": 3,
    "lag_seconds": 1.7,
    "cosigning_lag_seconds": 2.9,
    "witnesses": [{"name": "w", "last": "timeout", "size": 4, "time": 1_800_000_000}],
    "index": {"records": 9, "behind": 5, "code": "index_full"},
    "findings": {"by_code": {"rollback": 1}, "left_out": 2, "newest": [FINDING]},
}


def test_an_answer_is_read() -> None:
    assert parse_audit_report(STATUS) == AuditReport(
        checkpoint="a note",
        newest_head_at=1_800_000_000.0,
        last_poll_at=1_800_000_001.5,
        lag=1,
        finding_counts=(("rollback", 1),),
        omitted_findings=2,
        findings=(Finding(*(FINDING[key] for key in ("code", "origin", "verdict", "since", "message"))),),
        cosignature_wait_seconds=2,
        witnesses=(WitnessStatus("w", "timeout", 4, 1_800_000_000.0),),
        index=IndexStatus(5, "index_full"),
    )
    assert parse_audit_report({**STATUS, "index": None}).index is None
    assert parse_audit_report({**STATUS, "poll_age_seconds": 61}).stale
    # An auditor of the previous release reports nothing about witnesses.
    before = {
        key: value
        for key, value in STATUS.items()
        if key not in ("cosigning_lag_seconds", "witnesses", "index")
    }
    read = parse_audit_report(before)
    assert (read.cosignature_wait_seconds, read.witnesses, read.index) == (0, (), None)


def changed(**findings: Any) -> dict[str, Any]:
    return {**STATUS, "findings": {**STATUS["findings"], **findings}}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {**STATUS, "checkpoint": None},
        {**STATUS, "last_poll": "yesterday"},
        {**STATUS, "last_poll": True},
        {**STATUS, "lag_seconds": -1},
        {**STATUS, "lag_seconds": float("nan")},
        {**STATUS, "findings": []},
        changed(by_code=[]),
        changed(by_code={"rollback": "many"}),
        changed(newest=None),
        changed(newest=["rollback"]),
        changed(newest=[{**FINDING, "since": None}]),
        {**STATUS, "witnesses": {}},
        {**STATUS, "witnesses": ["w"]},
        {**STATUS, "witnesses": [{"name": "w", "last": "", "size": -1, "time": 0}]},
        {**STATUS, "cosigning_lag_seconds": None},
    ],
)
def test_what_is_no_answer_is_none(answer: Any) -> None:
    with pytest.raises(ValueError):
        parse_audit_report(answer)


def test_an_answer_is_bounded_and_holds_nothing_that_a_terminal_would_act_on() -> None:
    long = {**FINDING, "message": "\x1b[2J" + "x" * 9000, "code": "c" * 900}
    told = parse_audit_report(
        changed(newest=[long] * 90, by_code={f"code-{number}": 1 for number in range(900)})
    )
    witness = {"name": "\x1b" * 900, "last": "l" * 900, "size": 1e300, "time": 1e300}
    [*witnesses] = parse_audit_report({**STATUS, "witnesses": [witness] * 900}).witnesses
    assert len(witnesses) == 32 and "\x1b" not in witnesses[0].name
    assert (len(witnesses[0].name), len(witnesses[0].last_outcome)) == (128, 32) and witnesses[
        0
    ].time < 253_402_300_800
    assert len(told.findings) == 50 and len(told.finding_counts) == 64
    assert len(told.findings[0].message) == 512 and len(told.findings[0].code) == 64
    assert "\x1b" not in told.findings[0].message
    assert parse_audit_report({**STATUS, "last_poll": 1e300}).last_poll_at < 253_402_300_800


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Scripted(AdminPort):
    """An auditor's port with the test's answer."""

    def __init__(self, answer: AuditReport = UNREACHABLE_AUDITOR) -> None:
        super().__init__()
        self.answer = answer
        self.asked = 0

    async def fetch_audit_report(self, pod: Any) -> AuditReport:
        self.asked += 1
        return self.answer


def pod(uid: str = "a") -> dict[str, Any]:
    return {"metadata": {"name": "demo-auditor-0", "uid": uid}, "status": {"podIP": "127.0.0.1"}}


class Auditors:
    """One auditor and the cache of its reports."""

    def __init__(self) -> None:
        self.port, self.clock = Scripted(report(1)), Clock()
        self.reports = AuditReports(self.port, self.clock)

    async def after(self, seconds: float, answer: AuditReport, uid: str = "a") -> AuditReport | None:
        self.clock.seconds += seconds
        self.port.answer = answer
        return await self.reports.report("team", "demo", pod(uid))


async def test_an_auditor_is_asked_every_few_seconds_however_often_it_is_looked_at() -> None:
    auditors = Auditors()
    for _ in range(20):
        await auditors.after(1, report(1))
    assert auditors.port.asked == 2


async def test_numbers_are_told_once_a_minute_and_what_matters_at_once() -> None:
    auditors = Auditors()
    first = await auditors.after(0, report(1))
    assert await auditors.after(10, report(2)) == first
    assert await auditors.after(40, report(3)) == first
    assert await auditors.after(10, report(4)) == report(4)
    assert await auditors.after(10, report(5, ROLLBACK)) == report(5, ROLLBACK)
    assert await auditors.after(10, report(5, stale=True)) == report(5, stale=True)
    assert auditors.reports.change_count("team", "demo") == 4


async def test_how_a_witness_answers_is_told_at_once_and_how_long_heads_wait_ever_more_rarely() -> None:
    auditors = Auditors()

    def waits(seconds: int, last: str = "cosigned") -> AuditReport:
        return report(1, cosignature_wait_seconds=seconds, witnesses=(WitnessStatus("w", last, 1, 1.0),))

    await auditors.after(0, waits(0))
    epoch = auditors.reports.change_count("team", "demo")
    for seconds in (1, 0, 15):
        await auditors.after(10, waits(seconds))
    assert auditors.reports.change_count("team", "demo") == epoch, (
        "a normal delay of cosignatures is no change"
    )
    assert await auditors.after(10, waits(15, "timeout")) == waits(15, "timeout")
    assert await auditors.after(10, waits(25, "timeout")) == waits(25, "timeout")
    assert await auditors.after(10, waits(31, "timeout")) == waits(25, "timeout")
    assert await auditors.after(10, waits(41, "timeout")) == waits(41, "timeout")


async def test_that_it_looked_again_and_found_all_as_it_was_is_told_rarely() -> None:
    auditors = Auditors()
    await auditors.after(0, report(1))
    for polls in range(1, 50):
        await auditors.after(11, report(1, last_poll_at=1_800_000_000.0 + polls))
    assert auditors.reports.change_count("team", "demo") == 1
    again = report(1, last_poll_at=1_800_009_999.0)
    assert await auditors.after(600, again) == again


async def test_one_lost_answer_is_no_silence_and_three_are() -> None:
    auditors = Auditors()
    first = await auditors.after(0, report(1))
    assert await auditors.after(10, UNREACHABLE_AUDITOR) == first
    assert await auditors.after(10, UNREACHABLE_AUDITOR) == first
    assert await auditors.after(10, UNREACHABLE_AUDITOR) == UNREACHABLE_AUDITOR
    assert await auditors.after(10, report(1)) == report(1)


async def test_another_pod_is_asked_at_once_and_none_is_no_auditor() -> None:
    auditors = Auditors()
    await auditors.after(0, report(1))
    assert await auditors.after(1, UNREACHABLE_AUDITOR, uid="b") == UNREACHABLE_AUDITOR
    assert await auditors.reports.report("team", "demo", None) is None
    assert auditors.reports.known_gateways() == []


@pytest.fixture
async def port() -> AsyncIterator[tuple[AdminPort, dict[str, Any]]]:
    answers: dict[str, Any] = {"text": json.dumps(STATUS), "status": 200, "asked": []}

    async def respond(request: web.Request) -> web.Response:
        answers["asked"].append(f"{request.method} {request.path}")
        return web.Response(text=answers["text"], status=answers["status"])

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", respond)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    asked = AdminPort(port=1, auditor_port=runner.addresses[0][1])
    yield asked, answers
    await asked.close()
    await runner.cleanup()


async def test_its_port_is_asked_for_its_status(port: Any) -> None:
    asked, answers = port
    assert await asked.fetch_audit_report(pod()) == parse_audit_report(STATUS)
    assert answers["asked"] == ["GET /status"]


@pytest.mark.parametrize(
    ("text", "status"),
    [("{}", 200), ("[" * 100_000, 200), ("x", 200), (json.dumps(STATUS), 503), (" " * 300_000, 200)],
    ids=["no answer", "deeper than can be read", "no JSON", "an error", "too long"],
)
async def test_whatever_else_it_answers_nothing_is_known(port: Any, text: str, status: int) -> None:
    asked, answers = port
    answers.update(text=text, status=status)
    assert await asked.fetch_audit_report(pod()) == UNREACHABLE_AUDITOR


async def test_nothing_is_asked_of_a_pod_without_an_address_or_on_its_way_out() -> None:
    leaving = {**pod(), "metadata": {**pod()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    for found in (leaving, {**pod(), "status": {}}):
        assert await AdminPort(1, 1).fetch_audit_report(found) == UNREACHABLE_AUDITOR


async def test_a_finding_wakes_a_gateway_at_rest_which_costs_no_request_otherwise() -> None:
    cluster = new_cluster(auditor=AUDITOR)
    cluster.put(key_secret())
    found = operator(cluster)
    port, clock = Scripted(report(1)), Clock()
    found.worker_reports = WorkerReports(port, clock)
    found.__post_init__()
    reconciling = loop(found)
    for _ in range(50):
        before = len(cluster.requests)
        await reconciling.reconcile()
        cluster.run_controllers()
        if len(cluster.requests) == before:
            break
    assert cluster.requests and len(cluster.requests) == before
    requeued: list[tuple[str, str]] = []
    found.audits._requeues.requeue = lambda *key: requeued.append(key)  # type: ignore[method-assign]
    clock.seconds += 11
    await found.audits.poll()
    await reconciling.reconcile()
    assert requeued == [] and len(cluster.requests) == before, "an unchanged report wakes no gateway"
    clock.seconds += 11
    port.answer = report(1, ROLLBACK)
    await found.audits.poll()
    assert requeued == [(NAMESPACE, "demo")]
    await reconciling.reconcile()
    status = cluster.find("GovernanceGateway", "demo")["status"]
    assert status["auditor"]["findings"] == [{"code": "rollback", "count": 1}]
    told = [live for key, live in cluster.objects.items() if key[0] == "Event"]
    assert "AuditFinding" in {event["reason"] for event in told}
    assert cluster.find("ConfigMap", "demo-auditor")["data"].popitem()[1] == note(1)
