"""Ready means that requests are answered: reports of the agents beside HAProxy on their probe requests."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from proofgate_operator.build import haproxy
from proofgate_operator.handlers.request_probe_poller import RequestProbePoller
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.plan.decide import decide
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.request_probes import RequestProbeReport, parse_request_probe
from proofgate_operator.workers.admin_port import AdminPort
from proofgate_operator.workers.request_probe_reports import POLL_SECONDS, RequestProbeReports
from tests.gateways import DEFAULTS
from tests.test_ready import NOW, running
from tests.world import Manifest

FAILS = {"answered": False, "reason": "TLSFails", "message": "the TLS handshake with HAProxy failed: X"}
WELL = RequestProbeReport()
TLS = RequestProbeReport("TLSFails", "the TLS handshake with HAProxy failed: X")


def said(**answers: RequestProbeReport) -> dict[str, tuple[str, str, str]]:
    """Return the conditions of a gateway with ready pods and these reports of its agents."""
    world = running()
    seen = ObservedState(world.children, world.secrets, tuple(world.pods), tuple(world.balancers), now=NOW)
    found = decide(world.gateway, replace(seen, request_probes=answers), DEFAULTS).status.conditions
    return {str(one.type): (one.status.value, one.reason, one.message) for one in found}


def test_a_gateway_through_which_no_request_is_answered_is_not_ready_and_says_why() -> None:
    found = said(a=TLS, b=TLS)
    for kind in ("Ready", "Available", "LoadBalancerAvailable"):
        assert found[kind][:2] == ("False", "TLSFails"), kind
        assert "the TLS handshake with HAProxy failed" in found[kind][2]


def test_one_haproxy_that_answers_is_enough_and_the_other_is_told() -> None:
    found = said(a=TLS, b=WELL)
    assert found["Ready"][0] == found["Available"][0] == "True"
    assert (
        found["LoadBalancerAvailable"][0] == "True"
        and "through a are not" in found["LoadBalancerAvailable"][2]
    )
    assert said(a=WELL)["LoadBalancerAvailable"][2].endswith("; requests are answered")
    assert said()["Ready"][0] == "True", "without an agent's report, nothing is concluded"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"answered": None, "reason": "", "message": ""}, None),
        ({"answered": True}, WELL),
        (FAILS, TLS),
        ({"answered": False}, RequestProbeReport("NotAnswered", "no response arrived")),
        ({"answered": False, "reason": "Secret key", "message": 7}, RequestProbeReport("NotAnswered", "7")),
    ],
)
def test_an_agents_answer_is_read(answer: Any, expected: RequestProbeReport | None) -> None:
    assert parse_request_probe(answer) == expected


@pytest.mark.parametrize("odd", [None, [], "ok", {"answered": "yes"}, {"answered": 1}])
def test_what_is_no_answer_of_an_agent_is_none(odd: Any) -> None:
    with pytest.raises(ValueError):
        parse_request_probe(odd)


def pod(name: str, *, ready: bool = True) -> Manifest:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    labels = {
        "proofgate.dev/gateway": "demo",
        "app.kubernetes.io/instance": "demo",
        "app.kubernetes.io/component": haproxy.COMPONENT,
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "labels": labels},
        "status": {"podIP": "127.0.0.1", "conditions": conditions},
    }


@pytest.fixture
async def agent() -> AsyncIterator[tuple[AdminPort, dict[str, Any]]]:
    """Yield the port of an agent, and the answers that it gives."""
    told: dict[str, Any] = {"answered": True}

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(told)

    app = web.Application()
    app.router.add_get("/answers", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = AdminPort(port=1, auditor_port=1, agent_port=runner.addresses[0][1])
    yield port, told
    await port.close()
    await runner.cleanup()


async def test_an_agent_is_asked_when_it_is_due_and_news_are_another_epoch(agent: Any) -> None:
    port, told = agent
    now = [0.0]
    reports = RequestProbeReports(port, lambda: now[0])
    pods = [pod("a"), pod("starts", ready=False)]
    assert await reports.reports("team", "demo", pods) == {"a": WELL}
    epoch = reports.change_count("team", "demo")
    told.update(FAILS)
    assert await reports.reports("team", "demo", pods) == {"a": WELL}, "no probe is due"
    now[0] += POLL_SECONDS
    assert await reports.reports("team", "demo", pods) == {"a": TLS}
    assert reports.change_count("team", "demo") != epoch
    told.update({"answered": None})
    now[0] += POLL_SECONDS
    assert await reports.reports("team", "demo", pods) == {}
    reports.remove_gateway("team", "demo")
    assert reports.known_gateways() == [] and reports.change_count("team", "demo") == 0


async def test_a_gateway_is_requeued_when_its_agents_tell_something_else(agent: Any) -> None:
    port, told = agent
    now = [0.0]
    reports = RequestProbeReports(port, lambda: now[0])
    await reports.reports("team", "demo", [pod("a")])

    class Store:
        @staticmethod
        def list_for_gateway(*_: str) -> list[Manifest]:
            return [pod("a")]

    class Client:
        store = Store()

    requeued: list[tuple[str, str]] = []

    class Noted(Requeues):
        def requeue(self, namespace: str, name: str) -> None:
            requeued.append((namespace, name))

    answers = RequestProbePoller(Client(), reports, Noted())  # type: ignore[arg-type]
    now[0] += POLL_SECONDS
    await answers.poll()
    assert requeued == []
    told.update(FAILS)
    now[0] += POLL_SECONDS
    await answers.poll()
    assert requeued == [("team", "demo")]


async def test_an_agent_that_does_not_answer_says_nothing(agent: Any) -> None:
    port, told = agent
    told.clear()
    assert await port.fetch_request_probe(pod("a")) is None
    nobody = AdminPort(1, 1, 1)
    assert await nobody.fetch_request_probe(pod("a")) is None
    await nobody.close()
