"""An API server on which one verb of one kind fails for a while, through the real client: keys are kept."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from proofgate_operator.api import KIND
from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.handlers.watches import SELECTORS, Watches
from proofgate_operator.kube import informer
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.reads import ReadOutcome, ReadRequest
from proofgate_operator.kube.resources import RESOURCES, resource_name
from tests.api_emulator import Emulator
from tests.fake_cluster import FakeCluster
from tests.operators import until
from tests.test_may_not_look import BLINKS
from tests.test_watches import OURS, Recorder

HOME, TEAM = "team", "team-t3"
ACCESS_DENIED = ("401", "403", "404 of the kind")


def made(kind: str, name: str, namespace: str = TEAM) -> dict[str, Any]:
    spec = {"gatewayRef": {"name": "demo", "namespace": HOME}} if kind == TENANT_KIND else {}
    metadata = {"name": name, "namespace": namespace, "labels": dict(OURS)}
    return {"apiVersion": RESOURCES[kind].api_version, "kind": kind, "metadata": metadata, "spec": spec}


class Blinking:
    """A cluster in which one verb of one kind in one namespace fails, and a client that follows it."""

    def __init__(self, emulator: Emulator, watches: Watches, woken: list[str], kind: str) -> None:
        self.cluster, self.store = emulator.cluster, watches._store
        self.emulator, self.woken, self.kind = emulator, woken, kind

    def knows(self, name: str) -> bool:
        return bool(self.store.version(self.kind, TEAM, name))

    def blink(self, verbs: tuple[str, ...], error: ApiError) -> None:
        """Make reads fail and every watch reconnect, as watches do every few minutes."""
        self.refused = 0

        def refuse(read: ReadRequest) -> ApiError | None:
            if (read.kind, read.namespace) != (self.kind, TEAM) or read.verb not in verbs:
                return None
            self.refused += 1
            return error

        self.cluster.blink = refuse
        self.emulator.cut()
        self.emulator.compact()


@contextlib.asynccontextmanager
async def blinking(kind: str) -> AsyncIterator[Blinking]:
    emulator, requeues = Emulator(FakeCluster()), Recorder()
    emulator.cluster.put(made(kind, "kept"))
    emulator.cluster.put(made(KIND, "demo", HOME))
    async with emulator.serve() as client:
        watches = Watches(client, (HOME, TEAM), SecretReferences(), requeues)
        watches.start()
        try:
            await asyncio.wait_for(watches.synced(), 300)
            yield Blinking(emulator, watches, requeues.woken, kind)
        finally:
            await watches.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "_FIRST_PAUSE_SECONDS", 0.001)


@pytest.mark.parametrize("kind", SELECTORS)
@pytest.mark.parametrize("blink", BLINKS)
async def test_a_list_that_blinks_loses_nothing_is_known_of_and_heals(kind: str, blink: str) -> None:
    async with blinking(kind) as seen:
        seen.blink(("list", "watch"), BLINKS[blink])
        await until(lambda: seen.refused >= 3)
        assert seen.knows("kept")
        barred = seen.store.blocked_kinds(TEAM)
        assert bool(barred) is (blink in ACCESS_DENIED)
        assert not seen.store.blocked_kinds(HOME)
        if blink not in ACCESS_DENIED:
            await until(lambda: seen.store.unavailable_reasons(TEAM))
            assert not seen.store.unavailable_reasons(HOME)
        for found in barred:
            assert found.failure.read == ReadRequest("list", kind, TEAM)
        if kind == TENANT_KIND and barred:
            assert "demo" in seen.woken, "the tenant's gateway must report it"
        seen.cluster.remove(kind, "kept", TEAM)
        seen.cluster.put(made(kind, "new"))
        seen.cluster.blink = lambda _: None
        await until(lambda: seen.knows("new") and not seen.knows("kept"))
        assert not seen.store.blocked_kinds(TEAM) and not seen.store.unavailable_reasons(TEAM)


@pytest.mark.parametrize("kind", SELECTORS)
@pytest.mark.parametrize("blink", BLINKS)
async def test_where_only_the_watch_blinks_each_list_is_a_look(kind: str, blink: str) -> None:
    async with blinking(kind) as seen:
        seen.blink(("watch",), BLINKS[blink])
        await until(lambda: seen.refused >= 3)
        assert seen.knows("kept") and not seen.store.blocked_kinds(TEAM)
        seen.cluster.put(made(kind, "new"))
        if blink in ACCESS_DENIED:
            seen.cluster.remove(kind, "kept", TEAM)
            await until(lambda: seen.knows("new") and not seen.knows("kept"))
        seen.cluster.blink = lambda _: None
        await until(lambda: seen.knows("new"))


async def test_what_is_refused_is_counted_and_named_as_kubectl_names_it() -> None:
    assert resource_name("Secret") == "secrets"
    assert resource_name(TENANT_KIND) == "gatewaytenants.proofgate.dev"
    assert resource_name("StatefulSet") == "statefulsets.apps"


@pytest.mark.parametrize("kind", SELECTORS)
async def test_a_watch_that_is_refused_is_told_for_as_long_although_lists_are_answered(kind: str) -> None:
    async with blinking(kind) as seen:
        seen.blink(("watch",), BLINKS["403"])
        await until(lambda: seen.store.unavailable_reasons(TEAM))
        begun = seen.refused
        told: list[int] = []

        def all_told() -> bool:
            told.append(len(seen.store.unavailable_reasons(TEAM)))
            return seen.refused >= begun + 3

        await until(all_told)
        assert set(told) == {1}, "the report does not change with each list"
        (failure,) = seen.store.unavailable_reasons(TEAM)
        assert failure.read == ReadRequest("watch", kind, TEAM)
        assert failure.outcome is ReadOutcome.ACCESS_DENIED and not seen.store.blocked_kinds(TEAM)
        seen.cluster.blink = lambda _: None
        seen.cluster.put(made(kind, "new"))
        await until(lambda: seen.knows("new") and not seen.store.unavailable_reasons(TEAM))
