"""Every existing gateway has exactly one loop, whatever reports it and however often."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from proofgate_operator.handlers.gateways import handle_gateway_event
from proofgate_operator.handlers.operator import Operator
from tests.fake_cluster import FakeCluster
from tests.gateways import NAMESPACE, UID, manifest, user_secrets
from tests.operators import LOG, operator, until


class Memo:
    """The object that kopf passes to its handlers."""

    def __init__(self, found: Operator) -> None:
        self.operator = found
        self.home = asyncio.get_running_loop()


@pytest.fixture
async def shared() -> AsyncIterator[Operator]:
    cluster = FakeCluster()
    for found in (manifest(), *user_secrets().values()):
        assert found
        cluster.put(found)
    operating = operator(cluster)
    yield operating
    await operating.loops.stop_all()


async def tell(shared: Operator, type_: str | None, uid: str = UID) -> None:
    await handle_gateway_event(
        type=type_, namespace=NAMESPACE, name="demo", uid=uid, logger=LOG, memo=Memo(shared)
    )
    # The call comes from another thread, so it takes effect in the next iteration of the event loop.
    await asyncio.sleep(0)


def loops() -> int:
    return sum(task.get_name() == f"{NAMESPACE}/demo" for task in asyncio.all_tasks())


async def test_a_gateway_that_is_told_of_again_and_again_has_one_loop(shared: Operator) -> None:
    for type_ in (None, "ADDED", "MODIFIED", None):
        await tell(shared, type_)
    assert loops() == 1
    assert isinstance(shared.client, FakeCluster)
    await until(lambda: shared.client.store.get("Service", NAMESPACE, "demo"))


async def test_the_loop_of_a_gateway_ends_with_it_and_leaves_nothing_behind(shared: Operator) -> None:
    await tell(shared, None)
    await until(lambda: shared.secret_references.gateways_of(NAMESPACE, "acme-keys"))
    await tell(shared, "DELETED")
    await until(lambda: loops() == 0)
    assert shared.secret_references.gateways_of(NAMESPACE, "acme-keys") == []
    await tell(shared, "DELETED")


async def test_one_that_was_made_anew_keeps_what_is_known_under_its_name(shared: Operator) -> None:
    await tell(shared, None)
    await until(lambda: shared.secret_references.gateways_of(NAMESPACE, "acme-keys"))
    await tell(shared, "ADDED", uid="of-the-successor")
    await tell(shared, "DELETED")
    await until(lambda: loops() == 1)
    assert shared.secret_references.gateways_of(NAMESPACE, "acme-keys") == ["demo"]


async def test_all_loops_end_with_the_operator(shared: Operator) -> None:
    await tell(shared, None)
    await shared.loops.stop_all()
    assert loops() == 0
