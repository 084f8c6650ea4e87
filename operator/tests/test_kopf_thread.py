"""kopf in a separate thread: the gateways' loops continue even if it fails."""

import asyncio
import threading
from typing import Any

import kopf
import pytest

from proofgate_operator.handlers import gateways, kopf_thread
from proofgate_operator.handlers.operator import Operator
from tests.fake_cluster import FakeCluster
from tests.operators import operator


def _operator() -> Operator:
    return operator(FakeCluster())  # type: ignore[arg-type]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The started and stopped loops, and a check that they run in this thread."""
    told: list[str] = []
    here = threading.current_thread()

    def note(what: str) -> Any:
        def noted(_: object, *details: object) -> None:
            assert threading.current_thread() is here
            told.append(what)

        return noted

    monkeypatch.setattr("proofgate_operator.handlers.loops.GatewayLoops.start", note("begin"))
    monkeypatch.setattr("proofgate_operator.handlers.loops.GatewayLoops.stop_gateway", note("end"))
    return told


async def test_kopf_ends_when_it_is_told_and_what_it_told_is_done_at_home(
    world: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    async def tell(**options: Any) -> None:
        asked.append(options)
        event = {"namespace": "team", "name": "demo", "uid": "1", "logger": None, "memo": options["memo"]}
        await gateways.handle_gateway_event(type="ADDED", **event)
        await gateways.handle_gateway_event(type="DELETED", **event)
        await asyncio.to_thread(options["stop_flag"].wait)

    monkeypatch.setattr(kopf, "operator", tell)
    over = threading.Event()
    following = asyncio.create_task(kopf_thread.run_kopf_in_thread(_operator(), ("team",), over))
    async with asyncio.timeout(300):
        while world != ["begin", "end"]:
            await asyncio.sleep(0.005)
    over.set()
    await following
    assert asked[0]["namespaces"] == ("team",) and not asked[0]["clusterwide"]


async def test_what_ends_kopf_is_told_and_leaves_our_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(**_: Any) -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        raise PermissionError("the namespace is gone")

    monkeypatch.setattr(kopf, "operator", fail)
    loop_of_a_gateway = asyncio.create_task(asyncio.sleep(3600))
    with pytest.raises(PermissionError, match="the namespace is gone"):
        await kopf_thread.run_kopf_in_thread(_operator(), (), threading.Event())
    assert not loop_of_a_gateway.done()
    loop_of_a_gateway.cancel()


async def test_whoever_cancels_waits_for_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    async def run(**options: Any) -> None:
        await asyncio.to_thread(options["stop_flag"].wait)
        ended.set()

    monkeypatch.setattr(kopf, "operator", run)
    following = asyncio.create_task(kopf_thread.run_kopf_in_thread(_operator(), (), threading.Event()))
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.wait([following])
    assert following.cancelled() and ended.is_set()
