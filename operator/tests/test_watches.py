"""Watches through the real client miss no event, whatever the API server and the network do."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from proofgate_operator.handlers.heartbeat import Heartbeat
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.handlers.watches import SELECTORS, TENANT_KINDS, Watches
from proofgate_operator.kube import informer
from proofgate_operator.kube.apply import apply
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.informer import Informer
from proofgate_operator.kube.store import StoreNotSynced
from tests.api_emulator import Emulator
from tests.fake_cluster import FakeCluster
from tests.gateways import manifest, secret
from tests.operators import until

OURS = {"app.kubernetes.io/managed-by": "proofgate-operator", "proofgate.dev/gateway": "demo"}


def service(name: str = "demo", **labels: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "team", "labels": {**OURS, **labels}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {}}


class Followed:
    """A cluster, a client whose store follows it, and the woken gateways."""

    def __init__(self, emulator: Emulator, client: Client, watches: Watches, woken: list[str]) -> None:
        self.emulator = emulator
        self.cluster = emulator.cluster
        self.client = client
        self.store = client.store
        self.watches = watches
        self.woken = woken

    def has(self, name: str) -> bool:
        return self.store.get("Service", "team", name) is not None

    def lists(self, kind: str) -> int:
        """Return how often a kind was listed; each page of a list counts."""
        return self.cluster.requests.count(f"GET {kind} ")


class Recorder(Requeues):
    """Records the woken gateways."""

    def __init__(self) -> None:
        super().__init__()
        self.woken: list[str] = []

    def requeue(self, namespace: str, name: str) -> None:
        self.woken.append(name)


@contextlib.asynccontextmanager
async def followed(
    cluster: FakeCluster,
    readers: SecretReferences | None = None,
    namespaces: tuple[str, ...] = (),
    tenant_namespaces: tuple[str, ...] = (),
) -> AsyncIterator[Followed]:
    emulator, requeues = Emulator(cluster), Recorder()
    async with emulator.serve() as client:
        watches = Watches(client, namespaces, readers or SecretReferences(), requeues, tenant_namespaces)
        watches.start()
        try:
            await asyncio.wait_for(watches.synced(), 300)
            requeues.woken.clear()
            yield Followed(emulator, client, watches, requeues.woken)
        finally:
            await watches.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "_FIRST_PAUSE_SECONDS", 0.001)


async def test_what_is_made_changed_and_deleted_is_known_and_wakes_its_gateway() -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        cluster.put(service())
        await until(lambda: seen.has("demo"))
        cluster.find("Service", "demo")["spec"] = {"type": "NodePort"}
        await until(lambda: (seen.store.get("Service", "team", "demo") or {}).get("spec"))
        cluster.remove("Service", "demo")
        await until(lambda: not seen.has("demo"))
        assert seen.woken == ["demo", "demo", "demo"]


async def test_a_cluster_without_any_object_is_known_to_be_empty() -> None:
    async with followed(FakeCluster()) as seen:
        assert seen.store.synced and seen.store.count() == {}


async def test_an_answer_that_makes_no_sense_does_not_end_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        taking, failures = seen.store.upsert, [TypeError("no sense"), AttributeError("none either")]

        def put(kind: str, found: dict[str, object]) -> bool:
            if failures:
                raise failures.pop()
            return taking(kind, found)

        monkeypatch.setattr(seen.store, "upsert", put)
        cluster.put(service())
        await until(lambda: seen.has("demo"))
        assert seen.watches.stale_watches(300) == []


async def test_a_list_of_many_pages_is_read_whole() -> None:
    cluster = FakeCluster()
    for number in range(23):
        cluster.put(service(f"demo-{number}"))
    async with followed(cluster) as seen:
        assert len(seen.store.list_for_gateway("Service", "team", "demo")) == 23


async def test_an_object_longer_than_any_buffer_arrives() -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        cluster.put({**service(), "spec": {"long": "x" * 3_000_000}})
        await until(lambda: seen.has("demo"))


async def test_somebody_elses_object_is_not_kept() -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        cluster.put(service("theirs", **{"app.kubernetes.io/managed-by": "helm"}))
        cluster.put(service())
        await until(lambda: seen.has("demo"))
        assert not seen.has("theirs")


async def test_an_object_that_loses_our_label_is_gone_and_wakes_its_gateway() -> None:
    cluster = FakeCluster()
    cluster.put(service())
    async with followed(cluster) as seen:
        del cluster.find("Service", "demo")["metadata"]["labels"]["app.kubernetes.io/managed-by"]
        await until(lambda: not seen.has("demo"))
        assert seen.woken == ["demo"]


async def test_a_watch_that_is_cut_goes_on_where_it_was_without_a_list() -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        await until(lambda: len(seen.emulator.watches) >= len(SELECTORS))
        lists = seen.lists("Service")
        seen.emulator.cut()
        cluster.put(service())
        await until(lambda: seen.has("demo"))
        assert seen.lists("Service") == lists


async def test_a_watch_that_is_too_old_begins_with_a_list_that_also_tells_what_is_gone() -> None:
    cluster = FakeCluster()
    cluster.put(service("old"))
    async with followed(cluster) as seen:
        await until(lambda: len(seen.emulator.watches) >= len(SELECTORS))
        seen.emulator.cut()
        cluster.remove("Service", "old")
        cluster.put(service("new"))
        cluster.put(service("newer"))
        seen.emulator.compact()
        await until(lambda: seen.has("new") and seen.has("newer") and not seen.has("old"))
        assert "demo" in seen.woken


async def test_an_api_server_that_refuses_lists_is_asked_again() -> None:
    cluster = FakeCluster()
    cluster.put(service())
    cluster.faults = [
        fault
        for _ in SELECTORS
        for fault in (ApiError(500, "InternalError", ""), ApiError(429, "TooManyRequests", "", 0.0))
    ]
    async with followed(cluster) as seen:
        assert seen.has("demo")


async def test_a_namespace_that_is_gone_keeps_nobody_from_the_others_and_is_taken_up_again() -> None:
    cluster = FakeCluster()
    cluster.put(service())
    cluster.barred = {"gone"}
    async with followed(cluster, namespaces=("team", "gone")) as seen:
        assert seen.has("demo")
        seen.store.require("team")
        with pytest.raises(StoreNotSynced, match="cannot be listed in gone"):
            seen.store.require("gone")
        cluster.barred = set()
        await until(lambda: not seen.store.blocked_namespaces())
        seen.store.require("gone")


async def test_of_a_namespace_of_tenants_two_kinds_are_asked_for_and_no_other() -> None:
    cluster = FakeCluster()
    async with followed(cluster, namespaces=("home",), tenant_namespaces=("team", "other")) as seen:
        await until(lambda: len(seen.emulator.watches) >= len(SELECTORS) + 4)
        kinds = Counter(seen.emulator.watches)
        assert {kind for kind, count in kinds.items() if count == 3} == {"GatewayTenant", "Secret"}
        assert {kind for kind, count in kinds.items() if count == 1} == {*SELECTORS} - {*TENANT_KINDS}
        cluster.put(service())
        cluster.put(secret("keys", only="sk-test-acme-0123456789"))
        await until(lambda: seen.store.version("Secret", "team", "keys"))
        assert not seen.has("demo")
        assert not seen.store.lacks_gateway(("team", "demo")), (
            "the operator does not list gateways in that namespace"
        )


async def test_a_namespace_of_tenants_that_is_gone_keeps_nobody_from_the_others() -> None:
    cluster = FakeCluster()
    cluster.put(service())
    cluster.barred = {"gone"}
    async with followed(cluster, namespaces=("team",), tenant_namespaces=("gone",)) as seen:
        assert seen.has("demo")
        assert {barred.failure.read.kind for barred in seen.store.blocked_kinds("gone")} == {*TENANT_KINDS}
        seen.store.require("team")


async def test_an_operator_that_may_list_in_no_namespace_at_all_is_not_ready() -> None:
    cluster = FakeCluster()
    cluster.barred = {"gone", "lost"}
    async with Emulator(cluster).serve() as client:
        watches = Watches(client, ("gone", "lost"), SecretReferences(), Recorder())
        watches.start()
        try:
            await until(lambda: client.store.blocked_namespaces() == {"gone", "lost"})
            assert not client.store.synced
            cluster.barred = {"lost"}
            await asyncio.wait_for(watches.synced(), 300)
        finally:
            await watches.stop()


def follower(**parts: object) -> Informer:
    return Informer(FakeCluster(), "Service", None, "", lambda *_: None, **parts)  # type: ignore[arg-type]


def test_the_pause_that_the_api_server_asks_for_is_kept() -> None:
    assert follower()._handle_error(ApiError(429, "TooManyRequests", "", 17.0)) >= 17


def test_the_pause_grows_to_half_a_minute_and_is_never_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "_FIRST_PAUSE_SECONDS", 0.2)
    found = follower()
    pauses = [found._handle_error(OSError()) for _ in range(20)]
    assert pauses[0] <= 0.6 and 30 <= pauses[-1] <= 45
    assert len(set(pauses)) == 20


async def test_the_content_of_a_secret_is_neither_sent_nor_kept() -> None:
    cluster, readers = FakeCluster(), SecretReferences()
    readers.record("team", "demo", frozenset({"keys"}))
    async with followed(cluster, readers) as seen:
        before = seen.store.version_mark("team", "demo", ["keys"])
        cluster.put(secret("keys", only="sk-test-acme-0123456789"))
        await until(lambda: seen.store.version_mark("team", "demo", ["keys"]) != before)
        assert seen.woken == ["demo"]
        assert all(not entry.packed for key, entry in seen.store._entries.items() if key[0] == "Secret")


async def test_the_echo_of_an_own_write_is_no_news() -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        await apply(seen.client, service())
        assert seen.has("demo"), "the object is known immediately"
        cluster.put(service("later"))
        await until(lambda: seen.has("later"))
        assert seen.woken == ["demo"], "only the later change wakes the gateway"


async def test_an_own_deletion_is_known_at_once_and_its_echo_is_no_news() -> None:
    cluster = FakeCluster()
    cluster.put(service())
    async with followed(cluster) as seen:
        live = seen.store.get("Service", "team", "demo")
        assert live
        await seen.client.delete("Service", "team", "demo", live["metadata"]["uid"])
        assert not seen.has("demo")
        cluster.put(service("later"))
        await until(lambda: seen.has("later"))
        assert seen.woken == ["demo"]


async def test_an_object_that_changed_since_it_was_seen_is_not_deleted() -> None:
    cluster = FakeCluster()
    cluster.put(service())
    async with followed(cluster) as seen:
        head = (seen.store.get("Service", "team", "demo") or {})["metadata"]
        cluster.find("Service", "demo")["spec"] = {"changed": True}
        await seen.client.delete("Service", "team", "demo", head["uid"], head["resourceVersion"])
        assert cluster.find("Service", "demo")["spec"] == {"changed": True}


async def test_a_watch_that_nobody_follows_any_more_fails_the_liveness_probe() -> None:
    async with followed(FakeCluster()) as seen:
        heartbeat = Heartbeat()
        heartbeat.expect_watches(seen.watches)
        assert heartbeat.faults() == []
        task = seen.watches._tasks[0]
        task.cancel()
        await until(task.done)
        assert heartbeat.faults() == ["watch silent for 300 s: GovernanceGateway in all namespaces"]


async def test_a_watch_that_is_silent_fails_the_liveness_probe() -> None:
    async with followed(FakeCluster()) as seen:
        now = [seen.watches._informers[0].heard]
        for found in seen.watches._informers:
            found.clock = lambda: now[0]
        await seen.watches.stop()
        seen.watches._tasks = []
        now[0] += 1
        assert seen.watches.stale_watches(300) == []
        now[0] += 301
        assert len(seen.watches.stale_watches(300)) == len(SELECTORS)


async def test_a_gateway_wakes_its_own_loop() -> None:
    cluster = FakeCluster()
    async with followed(cluster) as seen:
        cluster.put(manifest())
        await until(lambda: seen.woken == ["demo"])
