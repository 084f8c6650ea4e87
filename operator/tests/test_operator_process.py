"""The code around the loop: settings, requeues, heartbeat and probes, events, log messages."""

import asyncio

import pytest
from aiohttp import ClientSession

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType, merge_conditions
from proofgate_operator.events import condition_event, reportable_transitions
from proofgate_operator.handlers import health_server
from proofgate_operator.handlers.heartbeat import Heartbeat
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.settings import InvalidSettings, read_settings
from tests.gateways import gateway

IMAGES = {"WORKER_IMAGE": "w", "HAPROXY_IMAGE": "h"}


def condition(status: ConditionStatus, kind: ConditionType = ConditionType.READY) -> Condition:
    return Condition(kind, status, "Because", "words")


def test_settings_come_from_the_environment_and_options_win() -> None:
    environment = {**IMAGES, "WATCH_NAMESPACES": "a, b", "RESYNC_SECONDS": "10"}
    settings = read_settings(["--resync-seconds", "20"], environment)
    assert settings.watch_namespaces == ("a", "b")
    assert settings.resync_seconds == 20
    assert settings.defaults.worker_image == "w"


def test_a_namespace_that_is_served_whole_is_none_of_tenants_alone() -> None:
    environment = {**IMAGES, "WATCH_NAMESPACES": "a,b", "TENANT_NAMESPACES": "c, b,d"}
    assert read_settings([], environment).tenant_namespaces == ("c", "d")


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({**IMAGES, "TENANT_NAMESPACES": "a"}, "TENANT_NAMESPACES needs WATCH_NAMESPACES"),
        ({"WORKER_IMAGE": "w"}, "HAPROXY_IMAGE is required"),
        ({**IMAGES, "HAPROXY_IMAGE": ""}, "HAPROXY_IMAGE is required"),
        ({**IMAGES, "RESYNC_SECONDS": "soon"}, "RESYNC_SECONDS must be a number"),
        ({**IMAGES, "RESYNC_SECONDS": "0"}, "RESYNC_SECONDS must be at least 1"),
        ({**IMAGES, "LEADER_ELECTION": "yes"}, "LEADER_ELECTION must be one of true, false"),
        ({**IMAGES, "LEADER_ELECTION": "true"}, "LEASE_NAMESPACE is required"),
        ({**IMAGES, "LOG_FORMAT": "xml"}, "LOG_FORMAT must be one of json, text"),
    ],
)
def test_a_senseless_setting_is_named(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidSettings, match=complaint):
        read_settings([], environment)


async def test_an_event_during_a_reconcile_is_not_missed() -> None:
    requeues = Requeues()
    requeues.clear("team", "demo")
    requeues.requeue("team", "demo")
    await asyncio.wait_for(requeues.wait("team", "demo", 3600), 60)


async def test_an_event_of_a_gateway_without_a_loop_leaves_nothing_behind() -> None:
    requeues = Requeues()
    requeues.requeue("team", "unknown")
    assert requeues._flags == {}


@pytest.mark.parametrize("turns", range(5))
async def test_a_cancellation_that_comes_with_an_event_is_not_lost(turns: int) -> None:
    requeues = Requeues()
    requeues.clear("team", "demo")
    sleeping = asyncio.create_task(requeues.wait("team", "demo", 60))
    for _ in range(5):
        await asyncio.sleep(0)
    requeues.requeue("team", "demo")
    for _ in range(turns):
        await asyncio.sleep(0)
    asked = sleeping.cancel()
    await asyncio.wait([sleeping])
    assert sleeping.cancelled() == asked


async def test_sleep_ends_by_itself() -> None:
    requeues = Requeues()
    requeues.clear("team", "demo")
    await asyncio.wait_for(requeues.wait("team", "demo", 0.01), 60)


def test_a_gateway_that_nobody_reconciles_when_it_is_due_is_neglected_and_a_deleted_one_forgotten() -> None:
    now = [0.0]
    heartbeat = Heartbeat(silence_seconds=300, clock=lambda: now[0])
    heartbeat.leading = True
    heartbeat.set_gateways({"a", "b"})
    now[0] = 200
    heartbeat.beat("a", 600)
    assert heartbeat.overdue_gateways() == []
    now[0] = 400
    assert heartbeat.overdue_gateways() == ["b"]
    heartbeat.set_gateways({"a"})
    assert heartbeat.overdue_gateways() == []
    now[0] = 1101
    assert heartbeat.overdue_gateways() == ["a"]


def test_a_replica_that_stands_by_neglects_nobody() -> None:
    now = [0.0]
    heartbeat = Heartbeat(silence_seconds=300, clock=lambda: now[0])
    heartbeat.set_gateways({"a"})
    now[0] = 1000
    assert heartbeat.faults() == []


def test_a_condition_that_changed_is_an_event_once() -> None:
    bad = condition(ConditionStatus.FALSE)
    assert reportable_transitions([], [bad]) == [bad]
    assert reportable_transitions(merge_conditions([], [bad], 1, "now"), [bad]) == []
    good = condition(ConditionStatus.TRUE)
    assert reportable_transitions(merge_conditions([], [bad], 1, "now"), [good]) == [good]


def test_the_first_sight_of_something_good_is_no_event() -> None:
    assert reportable_transitions([], [condition(ConditionStatus.TRUE)]) == []


def test_an_event_points_at_its_gateway() -> None:
    found = condition_event(gateway(), condition(ConditionStatus.FALSE), "2026-01-01T00:00:00Z")
    assert found["type"] == "Warning" and found["reason"] == "Because"
    assert found["involvedObject"]["name"] == "demo" and found["metadata"]["namespace"] == "team"


def test_a_secret_is_read_by_the_gateways_of_its_namespace_that_name_it() -> None:
    readers = SecretReferences()
    readers.record("team", "a", frozenset({"keys", "openai"}))
    readers.record("team", "b", frozenset({"keys"}))
    readers.record("other", "c", frozenset({"keys"}))
    assert sorted(readers.gateways_of("team", "keys")) == ["a", "b"]
    assert readers.gateways_of("team", "openai") == ["a"]
    readers.record("team", "a", frozenset())
    readers.remove_gateway("team", "b")
    assert readers.gateways_of("team", "keys") == []


@pytest.mark.parametrize(
    ("addresses", "host"),
    [("", "0.0.0.0"), ("10.0.0.7", "0.0.0.0"), ("fd00::7", "::"), ("10.0.0.7,fd00::7", "::")],
)
def test_health_is_served_on_the_kinds_of_addresses_that_the_pod_has(addresses: str, host: str) -> None:
    environment = {**IMAGES, "POD_IPS": addresses}
    assert read_settings([], environment).health_host == host
    assert read_settings([], {**environment, "HEALTH_HOST": "127.0.0.1"}).health_host == "127.0.0.1"


async def test_the_probe_of_a_pod_with_ipv6_is_answered_by_both_kinds_of_address() -> None:
    runner = await health_server.serve("::", 0, Heartbeat())
    try:
        port = runner.addresses[0][1]
        async with ClientSession() as session:
            for host in ("127.0.0.1", "[::1]"):
                async with session.get(f"http://{host}:{port}/healthz") as answer:
                    assert answer.status == 200
    finally:
        await runner.cleanup()
