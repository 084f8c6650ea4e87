"""The runbooks' commands on a cluster, with the labels that the alert would have: on a healthy gateway, and on broken
ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.kubernetes import PATIENCE, REPOSITORY, Namespace, wait_until
from e2e.operations import Gateway
from e2e.runbooks import Block, alerts, blocks, labels_of
from e2e.tests import fleet
from e2e.tests.night import answers, carried_out, exposition, looked_into, scrapes_of
from e2e.tests.traffic import ask, wait_reachable

#: The gateway has no auditor, no retention job, no internal certificate and no cloud provider; these pages need them.
ABSENT = ("auditor", "retention", "openssl", "s3://", "export-leaves")
RUN = [
    block
    for block in blocks()
    if block.language == "sh"
    and labels_of(alerts()[block.alert]) <= {"namespace", "gateway", "pod", "provider"}
    and not any(word in block.text for word in ABSENT)
    # The operator's pods are in a different namespace than the gateway's.
    and "Operator" not in block.alert
]


@pytest.mark.parametrize("block", RUN, ids=lambda block: block.alert)
def test_the_commands_of_a_runbook_run_with_the_labels_of_its_alert(
    namespace: Namespace, gateway: str, block: Block
) -> None:
    done = carried_out(block.text, namespace, gateway)
    # A search without a match exits with 1, because the gateway is healthy.
    assert done.returncode in (0, 1), done.stderr
    assert "rror" not in done.stderr, done.stderr


def test_there_are_commands_to_run() -> None:
    assert len(RUN) > 10


def small(name: str, **spec: Any) -> dict[str, Any]:
    """A gateway of one worker and one HAProxy for one tenant."""
    return fleet.gateway(name, 1, fleet.TENANTS[:1], loadBalancer=fleet.ONE_BALANCER, **spec)


def haproxy_runs(namespace: Namespace, gateway: str) -> bool:
    """Whether a gateway's only HAProxy pod has all its containers running, ready or not."""
    pods = namespace.list("pod", f"proofgate.dev/gateway={gateway},app.kubernetes.io/component=load-balancer")
    states = [status["state"] for pod in pods for status in pod["status"].get("containerStatuses", [])]
    return bool(states) and all("running" in state for state in states)


@pytest.fixture(scope="module")
def without_room(namespace: Namespace) -> Iterator[str]:
    """A gateway whose worker does not fit on any node."""
    name = "without-room"
    namespace.apply(*fleet.secrets(), small(name, worker={**fleet.WORKER, "cpu": "64"}))
    try:
        pod = f"involvedObject.name={name}-worker-0,reason=FailedScheduling"
        wait_until(lambda: namespace.list("event", fields=pod), PATIENCE, "the scheduler says that there is no room")
        wait_until(lambda: haproxy_runs(namespace, name), PATIENCE, "HAProxy runs")
        yield name
    finally:
        namespace.delete("ggw", name, wait=False)


@pytest.fixture(scope="module")
def without_provider(namespace: Namespace) -> Iterator[str]:
    """A gateway with a provider whose host name does not exist."""
    name = "without-provider"
    gone = [{"name": "mock", "type": "OpenAI", "baseURL": "http://nobody-has-this-name:9000/v1"}]
    namespace.apply(*fleet.secrets(), small(name, providers=gone))
    found = Gateway(namespace, name)
    try:
        found.wait_settled(1)
        wait_reachable(namespace, name)
        yield name
    finally:
        namespace.delete("ggw", name, wait=False)


@pytest.mark.parametrize(
    "alert", ["ProofgateNoWorkerServes", "ProofgateGatewayUnavailable", "ProofgateGatewayNotReady"]
)
def test_where_no_node_has_room_the_runbook_says_what_is_missing(
    namespace: Namespace, without_room: str, alert: str
) -> None:
    def told() -> bool:
        return "Insufficient cpu" in looked_into(alert, namespace, without_room)

    wait_until(told, PATIENCE, f"{alert}: its commands show what is missing")


def test_where_a_worker_is_pending_the_runbook_of_unreachable_ones_shows_it(
    namespace: Namespace, without_room: str
) -> None:
    assert "Pending" in looked_into("ProofgateWorkersUnreachable", namespace, without_room)


def test_where_a_provider_is_gone_the_runbook_finds_the_workers_reason(
    namespace: Namespace, without_provider: str
) -> None:
    assert ask(namespace, without_provider, fleet.key_of(fleet.TENANTS[0])) == 502
    for alert in ("ProofgateUpstreamFails", "ProofgateAvailabilityBurnsFast"):
        said = looked_into(alert, namespace, without_provider)
        assert 'provider "mock"' in said, said
    pod = f"{without_provider}-worker-0"
    scrapes = scrapes_of(namespace, without_provider, pod)

    def named() -> bool:
        assert ask(namespace, without_provider, fleet.key_of(fleet.TENANTS[0])) == 502
        scrapes.add(exposition(namespace, pod, 9090))
        outcomes, _, models = answers("ProofgateAvailabilityBurnsSlowly", scrapes)
        failed = re.search(r'{outcome="upstream_error"} [1-9]', outcomes) is not None
        return failed and f'model="{fleet.MODEL}", provider="mock"' in models

    wait_until(named, PATIENCE, "the queries name outcome, model and provider", every=1)


def test_where_a_worker_was_drained_by_hand_the_runbook_shows_that_it_drains(
    namespace: Namespace, without_provider: str
) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "drain-a-worker.md").read_text()
    [commands] = [part for part in page.split("```") if "/drain" in part and "TOKEN=" in part]
    commands = commands.replace("-n llm", f"-n {namespace.name}").replace("llm-", f"{without_provider}-")
    curl = "curl -fsS --retry 3 --retry-delay 1 --retry-connrefused"
    commands = commands.replace("9090 &", "9090 >/dev/null &").replace("curl", curl)
    # The last line of the page is the request.
    done = carried_out(f"{commands.strip()} || failed=1\nkill %1\nexit ${{failed:-0}}", namespace, without_provider)
    assert done.returncode == 0, done.stdout + done.stderr

    def told() -> bool:
        return "draining" in looked_into("ProofgateWorkerNotReady", namespace, without_provider)

    wait_until(told, PATIENCE, "the commands show the reason")
    assert "draining" in looked_into("ProofgateNoWorkerServes", namespace, without_provider, 1)
