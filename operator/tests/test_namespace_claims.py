"""Two releases that serve one namespace: one reconciles it, the other does nothing and reports that."""

import pytest

from proofgate_operator.handlers.namespace_claims import LEASE, NamespaceClaims
from tests.fake_cluster import FakeCluster
from tests.operators import loop, operator
from tests.test_convergence import new_cluster


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def elected(cluster: FakeCluster, release: str) -> dict[str, str]:
    namespace, name = release.split("/")
    return {"LEADER_ELECTION": "true", "LEASE_NAMESPACE": namespace, "LEASE_NAME": name}


async def test_the_second_release_writes_nothing_and_says_so_once() -> None:
    cluster = new_cluster()
    first = loop(operator(cluster, **elected(cluster, "platform/gates")))
    second = loop(operator(cluster, **elected(cluster, "team/gates")))
    await first.reconcile()
    before = list(cluster.writes)
    for _ in range(3):
        assert await second.reconcile() > 0
    assert cluster.writes == before
    events = [found for (kind, _, _), found in cluster.objects.items() if kind == "Event"]
    told = [found["message"] for found in events if found["reason"] == "ServedByAnother"]
    assert told == [
        "release platform/gates serves namespace team, so release team/gates ignores this namespace: "
        "configure only one of the two releases to serve it"
    ]
    assert cluster.find("Lease", LEASE)["spec"]["holderIdentity"] == "platform/gates"


async def test_a_replica_that_follows_goes_on_with_its_releases_claim_at_once() -> None:
    cluster = FakeCluster()
    assert await NamespaceClaims(cluster, "platform/gates").other_holder("team") is None
    assert await NamespaceClaims(cluster, "platform/gates").other_holder("team") is None


async def test_a_namespace_that_nobody_looks_after_any_more_is_taken_up() -> None:
    cluster, clock = FakeCluster(), Clock()
    assert await NamespaceClaims(cluster, "platform/gates", clock).other_holder("team") is None
    other = NamespaceClaims(cluster, "team/gates", clock)
    assert await other.other_holder("team") == "platform/gates"
    clock.now += 59
    assert await other.other_holder("team") == "platform/gates"
    clock.now += 1
    assert await other.other_holder("team") is None


async def test_a_claim_that_is_renewed_is_asked_for_no_more_often_than_it_has_to_be() -> None:
    cluster, clock = FakeCluster(), Clock()
    claims = NamespaceClaims(cluster, "platform/gates", clock)
    await claims.other_holder("team")
    before = len(cluster.requests)
    clock.now += 59
    assert await claims.other_holder("team") is None
    assert len(cluster.requests) == before


async def test_an_operator_outside_of_a_release_claims_nothing() -> None:
    cluster = new_cluster()
    await loop(operator(cluster)).reconcile()
    with pytest.raises(KeyError):
        cluster.find("Lease", LEASE)
