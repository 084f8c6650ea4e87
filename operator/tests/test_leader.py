"""Leader election: one replica acts, and the next acts only when the first no longer can."""

import asyncio
from typing import Any

import pytest

from proofgate_operator.kube import lease
from proofgate_operator.kube.errors import ApiError, ClientFenced
from proofgate_operator.kube.lease import Election, LeadershipLost
from tests.api_emulator import Emulator
from tests.fake_cluster import FakeCluster


class World:
    """A cluster, and a clock that advances with each sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = FakeCluster()
        self.now = 0.0
        self._real_sleep = asyncio.sleep
        monkeypatch.setattr(lease.asyncio, "sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds
        await self._real_sleep(0)

    def replica(self, name: str) -> Election:
        return Election(self.cluster, "system", "operator", name, clock=lambda: self.now)

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.cluster.find("Lease", "operator", "system")["spec"])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_the_first_replica_makes_the_lease_and_acts(world: World) -> None:
    await world.replica("a").acquire()
    assert world.spec["holderIdentity"] == "a"
    assert world.spec["leaseTransitions"] == 0


async def test_a_lease_that_is_renewed_is_never_taken(world: World) -> None:
    first, second = world.replica("a"), world.replica("b")
    await first.acquire()
    for _ in range(30):
        assert not await second.try_acquire_or_renew()
        world.now += 5
        assert await first.try_acquire_or_renew()


async def test_a_dead_holder_is_followed_after_a_whole_duration_that_the_successor_saw(world: World) -> None:
    await world.replica("a").acquire()
    world.now += 1000  # no replica watched during this time, so the age in the record does not count
    begun = world.now
    await world.replica("b").acquire()
    assert world.now - begun >= 15
    assert world.spec["holderIdentity"] == "b"
    assert world.spec["leaseTransitions"] == 1


async def test_a_lease_that_was_given_back_is_taken_at_once(world: World) -> None:
    first, second = world.replica("a"), world.replica("b")
    await first.acquire()
    assert not await second.try_acquire_or_renew()
    await first.release()
    assert await second.try_acquire_or_renew()


async def test_of_two_replicas_that_ask_together_one_acts(world: World) -> None:
    first, second = world.replica("a"), world.replica("b")
    await first.acquire()
    await first.release()
    third = world.replica("c")
    for replica in (second, third):
        replica._observe(await world.cluster.get("Lease", "system", "operator"))
    took = []
    for replica in (second, third):
        live = replica._seen
        try:
            await replica._write(replica._claim_lease(live))
            took.append(replica.identity)
        except ApiError as error:
            assert error.status == 409
    assert took == ["b"]
    assert not await third.try_acquire_or_renew()


async def test_a_holder_that_cannot_renew_gives_up_before_anybody_may_follow(world: World) -> None:
    first = world.replica("a")
    await first.acquire()
    begun = world.now
    world.cluster.faults = [ApiError(500, "InternalError", "") for _ in range(100)]
    with pytest.raises(LeadershipLost):
        await first.renew_until_lost()
    assert world.now - begun <= first.renew_deadline + first.retry_period < first.duration


async def test_a_holder_whose_lease_somebody_took_stops(world: World) -> None:
    first = world.replica("a")
    await first.acquire()
    world.cluster.find("Lease", "operator", "system")["spec"]["holderIdentity"] = "b"
    with pytest.raises(LeadershipLost, match="another holder has"):
        await first.renew_until_lost()


async def test_a_lease_that_was_touched_but_not_taken_is_kept(world: World) -> None:
    first = world.replica("a")
    await first.acquire()
    world.cluster.find("Lease", "operator", "system")["metadata"]["labels"] = {"touched": "yes"}
    assert await first.try_acquire_or_renew()
    assert await first.try_acquire_or_renew()
    assert world.spec["holderIdentity"] == "a"


async def test_a_lease_that_somebody_deleted_is_made_again(world: World) -> None:
    first = world.replica("a")
    await first.acquire()
    world.cluster.remove("Lease", "operator", "system")
    await first.try_acquire_or_renew()
    assert await first.try_acquire_or_renew()
    assert world.spec["holderIdentity"] == "a"


async def test_a_replica_that_lost_makes_no_request_any_more(world: World) -> None:
    world.cluster.fence()
    with pytest.raises(ClientFenced):
        await world.cluster.get("Service", "team", "demo")
    assert world.cluster.requests == []


async def test_giving_back_what_is_not_held_changes_nothing(world: World) -> None:
    first, second = world.replica("a"), world.replica("b")
    await first.acquire()
    await second.try_acquire_or_renew()
    await second.release()
    assert world.spec["holderIdentity"] == "a"


async def test_a_renewal_waits_for_no_other_request() -> None:
    async with Emulator(FakeCluster()).serve() as client:
        client._gate = asyncio.Semaphore(0)
        reads = asyncio.create_task(client.get("Secret", "team", "keys"))
        election = Election(client, "home", "operator", "a")
        await asyncio.wait_for(election.acquire(), 60)
        assert not reads.done()
        reads.cancel()
        await asyncio.gather(reads, return_exceptions=True)
