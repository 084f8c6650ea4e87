"""Late events, refusals, broken watches, and kills between any two requests: the final state is the same, and
unique objects are never duplicated."""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.build import ledger_key
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.handlers import loop as loops
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.handlers.watches import Watches
from proofgate_operator.kube import informer
from proofgate_operator.kube.errors import ApiError
from tests.api_emulator import Emulator
from tests.fake_cluster import FakeCluster, Killed
from tests.gateways import NAMESPACE, manifest
from tests.operators import loop, operator, until
from tests.properties import examples
from tests.test_convergence import comparable, new_cluster, reconcile_once, settle, status

REFUSALS = (
    ApiError(409, "Conflict", "changed meanwhile"),
    ApiError(429, "TooManyRequests", "", 0.0),
    ApiError(500, "InternalError", ""),
    ApiError(503, "ServiceUnavailable", ""),
)


class Mortal(FakeCluster):
    """A cluster that kills the operator at the request after `requests_left`, before the request is executed.

    A kill before the answer needs no own case: it loses the same memory as a kill at the next request.
    """

    requests_left: int | None = None

    def answer(self, method: str, path: str, **parts: Any) -> dict[str, Any]:
        if self.requests_left is not None:
            if self.requests_left == 0:
                raise Killed
            self.requests_left -= 1
        return super().answer(method, path, **parts)

    def fatal(self) -> list[int]:
        """Return the positions of the writes: a kill at a read is equivalent to a kill at the next write."""
        return [at for at, request in enumerate(self.requests) if not request.startswith("GET")]


def scaled_down(cluster: FakeCluster) -> None:
    cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = 1


def rekeyed(cluster: FakeCluster) -> None:
    """Give the ledger's Secret a new key, followed by the previous one."""
    data = cluster.find("Secret", "demo-ledger")["data"]
    former = base64.b64decode(data["signing-key"]).decode()
    new = SigningKey(ledger_key.read(former).name, b"\x02" * 32)
    data["signing-key"] = base64.b64encode(f"{new.signing_text}\n{former}".encode()).decode()


def reconfigured(cluster: FakeCluster) -> None:
    gateway = cluster.find("GovernanceGateway", "demo")
    gateway["spec"]["timeouts"] = {"drainSeconds": 20}
    gateway["spec"]["loadBalancer"] = {"replicas": 1}


#: The operator's work when it is killed: a new gateway, or a change of a settled one.
JOURNEYS = {"created": None, "scaled down": scaled_down, "reconfigured": reconfigured, "rekeyed": rekeyed}


def setting_out(change: Callable[[FakeCluster], None] | None) -> FakeCluster:
    cluster = new_cluster()
    if change is not None:
        settle(cluster)
        change(cluster)
    return cluster


def mortal(begin: FakeCluster) -> Mortal:
    cluster = Mortal()
    cluster.become(begin)
    return cluster


@pytest.mark.parametrize("journey", JOURNEYS)
def test_killed_at_any_request_the_successor_finishes(journey: str) -> None:
    begin = setting_out(JOURNEYS[journey])
    reference = mortal(begin)
    settle(reference)
    assert len(reference.requests) > 20
    for count in reference.fatal():
        cluster = mortal(begin)
        cluster.requests_left = count
        with pytest.raises(Killed):
            for _ in range(20):
                reconcile_once(cluster)
                cluster.run_controllers()
        cluster.requests_left = None
        cluster.restart()
        settle(cluster)
        assert comparable(cluster) == comparable(reference), f"killed at request {count}"
        assert status(cluster) == status(reference)


class Judge:
    """Checks every write of a run for states that must never occur."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.keys: dict[str, Any] = {}
        self.replicas: list[int] = []

    def inspect(self) -> None:
        for name in ("demo-ledger", "demo-admin"):
            found = self.cluster.objects.get(("Secret", NAMESPACE, name))
            if found:
                assert self.keys.setdefault(name, found["data"]) == found["data"], f"{name} was replaced"
        workers = self.cluster.objects.get(("StatefulSet", NAMESPACE, "demo-worker"))
        if workers:
            self.replicas.append(workers["spec"]["replicas"])
            down = [before - after for before, after in itertools.pairwise(self.replicas)]
            assert max(down, default=0) <= 1, "two shards are down at the same time"
        owners = [
            reference["uid"]
            for (kind, _, _), live in self.cluster.objects.items()
            if kind == "StatefulSet"
            for reference in live["metadata"]["ownerReferences"]
        ]
        assert len(owners) <= 1, "two sets of workers for one gateway's tenants"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reconcile"), st.none()),
        st.tuples(st.just("deliver"), st.integers(1, 8)),
        st.tuples(st.just("controllers"), st.none()),
        st.tuples(st.just("scale"), st.integers(1, 5)),
        st.tuples(st.just("balancers"), st.integers(1, 3)),
        st.tuples(st.just("delete"), st.sampled_from(["Service demo", "ConfigMap demo-config"])),
        st.tuples(st.just("refuse"), st.lists(st.sampled_from([None, *REFUSALS]), max_size=6)),
        st.tuples(st.just("killed after"), st.integers(0, 6)),
    ),
    max_size=25,
)


def step(cluster: FakeCluster, what: str, value: Any) -> None:
    gateway = cluster.find("GovernanceGateway", "demo")
    if what == "reconcile":
        with contextlib.suppress(ApiError):
            reconcile_once(cluster)
    elif what == "deliver":
        cluster.deliver(value)
    elif what == "controllers":
        cluster.run_controllers()
    elif what == "scale":
        gateway["spec"]["replicas"] = value
    elif what == "balancers":
        gateway["spec"]["loadBalancer"] = {"replicas": value}
    elif what == "delete":
        cluster.remove(*value.split())
    elif what == "refuse":
        cluster.faults = list(value)
    else:
        cluster.writes_left = value
        with contextlib.suppress(Killed, ApiError):
            reconcile_once(cluster)
        cluster.writes_left = None
        cluster.restart()


@examples(15)
@given(STEPS)
def test_whatever_is_late_refused_or_killed_the_end_is_the_same(steps: list[tuple[str, Any]]) -> None:
    cluster = new_cluster()
    cluster.stale = True
    judge = Judge(cluster)
    for what, value in steps:
        step(cluster, what, value)
        judge.inspect()
    cluster.faults, cluster.stale = [], False
    quiet = 0
    while quiet < 2:
        written = len(cluster.writes)
        reconcile_once(cluster)
        judge.inspect()
        cluster.run_controllers()
        quiet = quiet + 1 if len(cluster.writes) == written else 0
        assert len(cluster.writes) < 500, cluster.writes[-10:]
    reference = new_cluster()
    reference.find("GovernanceGateway", "demo")["spec"] = cluster.find("GovernanceGateway", "demo")["spec"]
    settle(reference)
    assert comparable(cluster) == comparable(reference)
    assert status(cluster) == status(reference)


def test_a_reconcile_of_a_stale_store_repeats_no_write() -> None:
    cluster = new_cluster()
    cluster.stale = True
    for _ in range(10):
        reconcile_once(cluster)
    created = [text for text in cluster.writes if not text.endswith("/status")]
    assert len(created) == len(set(created)), created


DISTURBANCES = st.lists(
    st.one_of(
        st.just("cut"),
        st.just("compact"),
        st.just("delete Service demo"),
        st.just("delete ConfigMap demo-config"),
        st.just("scale"),
        st.sampled_from(REFUSALS),
    ),
    max_size=8,
)


def disturb(emulator: Emulator, what: Any) -> None:
    cluster = emulator.cluster
    if isinstance(what, ApiError):
        cluster.faults += [what, None, what]
    elif what == "cut":
        emulator.cut()
    elif what == "compact":
        emulator.compact()
        emulator.cut()
    elif what == "scale":
        cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = 3
    else:
        cluster.remove(*what.split()[1:])


async def run_through(disturbances: list[Any]) -> FakeCluster:
    """Run informers and a loop against an API server with disturbances, until everything is settled."""
    cluster = new_cluster()
    cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = 3
    emulator = Emulator(cluster)
    async with emulator.serve() as client:
        found = operator(client, RECHECK_SECONDS="0.1")
        found.requeues, found.secret_references = Requeues(), SecretReferences()
        watches = Watches(client, (), found.secret_references, found.requeues)
        watches.start()
        await asyncio.wait_for(watches.synced(), 300)
        running = asyncio.create_task(loop(found).run(lambda: False))
        try:
            for what in disturbances:
                await asyncio.sleep(0)
                disturb(emulator, what)
                cluster.run_controllers()

            def is_settled() -> bool:
                cluster.run_controllers()
                gateway = cluster.find("GovernanceGateway", "demo")
                told = {one["type"]: one for one in gateway.get("status", {}).get("conditions", [])}
                children = {("Service", "demo"), ("ConfigMap", "demo-config"), ("Pod", "demo-worker-2")}
                present = all((kind, NAMESPACE, name) in cluster.objects for kind, name in children)
                return bool(
                    present
                    and not cluster.faults
                    and told.get("Ready", {}).get("status") == "True"
                    and told["Progressing"]["reason"] == "Settled"
                )

            await until(is_settled)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await watches.stop()
    return cluster


@examples(8)
@given(DISTURBANCES)
def test_over_http_with_cut_watches_and_refusals_the_end_is_the_same(disturbances: list[Any]) -> None:
    quick = mock.patch.multiple(loops, _FIRST_BACKOFF_SECONDS=0.01, _MAX_BACKOFF_SECONDS=0.1)
    patient = mock.patch.object(loops, "_DEBOUNCE_SECONDS", 0.001)
    watching = mock.patch.object(informer, "_FIRST_PAUSE_SECONDS", 0.001)
    with quick, patient, watching:
        cluster = asyncio.run(run_through(disturbances))
    reference = new_cluster(replicas=3)
    settle(reference)
    ours, theirs = comparable(cluster), comparable(reference)
    assert ours == theirs
    assert manifest()["metadata"]["uid"] == cluster.find("GovernanceGateway", "demo")["metadata"]["uid"]
