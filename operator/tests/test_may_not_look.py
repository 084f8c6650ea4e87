"""Unreadable objects are not treated as deleted: they stay for a limited time, reported by a condition."""

import asyncio
import base64
import hashlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.build.gateway_secrets import KEY_SOURCES
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.failed_reads import FailedReads
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome, ReadRequest
from proofgate_operator.plan.unreadable_resources import GRACE_SECONDS
from tests import test_attached_tenants as attached
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY, secret
from tests.test_attached_tenants import TEN, digest_of, key_of, secret_of
from tests.test_reads import UNKNOWN_KIND, Clock


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


FORBIDDEN = ApiError(403, "Forbidden", 'User "system:serviceaccount:ops:proofgate" cannot')
BLINKS = {
    "401": ApiError(401, "Unauthorized", ""),
    "403": FORBIDDEN,
    "404 of the kind": UNKNOWN_KIND,
    "429": ApiError(429, "TooManyRequests", "", 0.0),
    "500": ApiError(500, "InternalError", ""),
    "503": ApiError(503, "ServiceUnavailable", ""),
}
ALL_BUT_T3 = {digest_of(name) for name in TEN if name != "t3"}
EVERY = ALL_BUT_T3 | {digest_of("t3")}
T3 = ReadRequest("get", "Secret", "team-t3", "t3-keys")


class World(attached.World):
    """A world whose clocks the test sets, and in which reads fail for a while."""

    def __init__(self, *arguments: Any, **changes: Any) -> None:
        self.monotonic, self.wall = Clock(1000.0), Clock(time.time())
        super().__init__(*arguments, **changes)

    def restart(self) -> None:
        super().restart()
        self.operator.attachments.failed_reads = FailedReads(self.monotonic, self.wall)
        self.cluster.store.clock, self.cluster.store.wall = self.monotonic, self.wall

    def later(self, seconds: float) -> None:
        """Advance the clocks, and reconcile until nothing is written."""
        self.monotonic.now += seconds
        self.wall.now += seconds
        self.settle()

    def blink(self, error: ApiError, *reads: ReadRequest) -> None:
        """Make these reads fail until `heal`."""
        self.cluster.blink = lambda read: error if read in reads else None

    def heal(self) -> None:
        self.cluster.blink = lambda _: None

    def bar(self, namespace: str, *kinds: str) -> None:
        """Make lists of a namespace fail, as its informers report it."""
        for kind in kinds or (TENANT_KIND, "Secret"):
            self.cluster.store.block(kind, namespace)

    def unbar(self, namespace: str, *kinds: str) -> None:
        """Make lists of a namespace succeed again."""
        for kind in kinds or (TENANT_KIND, "Secret"):
            held = {key[1:] for key in self.cluster.objects if key[0] == kind and key[1] == namespace}
            self.cluster.store.replace(kind, namespace, held, str(1 << 100))

    def start_barred(self, namespace: str) -> None:
        """Start as a new process that cannot list the tenants and the Secrets of a namespace."""
        hidden = {
            key: found
            for key, found in self.cluster.objects.items()
            if key[1] == namespace and key[0] in (TENANT_KIND, "Secret")
        }
        self.cluster.restart()
        store = self.cluster._known
        for (kind, home, name), found in hidden.items():
            store._drop((kind, home, name))
            assert found
        self.restart()
        store._behind = {(TENANT_KIND, namespace), ("Secret", namespace)}
        self.bar(namespace)

    def give_change(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        found = self.cluster.find(TENANT_KIND, name, f"team-{name}")
        change(found["spec"])
        found["metadata"]["generation"] += 1
        self.cluster.announce()

    def touch(self, name: str) -> None:
        """Change a tenant's object, so that its Secret is read again."""
        self.give_change(name, lambda spec: spec["apiKeys"].append({"name": "more", "sha256": "ab" * 32}))

    def gateway_condition(self, kind: str = "ResolvedRefs") -> tuple[str, str, str]:
        conditions = self.cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
        found = next(one for one in conditions if one["type"] == kind)
        return found["status"], found["reason"], found["message"]

    def listed(self) -> dict[str, str]:
        """Return the keys of the tenants in the gateway's spec, by digest."""
        data = self.cluster.find("Secret", "demo-tenants")["data"]
        files = {name: base64.b64decode(text).decode() for name, text in data.items()}
        return {
            line.split()[0]: name
            for name, text in files.items()
            if name.endswith(".keys")
            for line in text.splitlines()
        }

    def events(self) -> list[str]:
        return [found["message"] for key, found in self.cluster.objects.items() if key[0] == "Event"]


@pytest.fixture
def world() -> World:
    made = World()
    made.add(*TEN)
    made.settle()
    assert set(made.held()) == EVERY
    return made


@pytest.mark.parametrize("blink", BLINKS)
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_key_whose_secret_nobody_may_look_at_stays_is_told_and_heals(
    world: World, blink: str, restarted: bool
) -> None:
    world.blink(BLINKS[blink], T3)
    if restarted:
        world.start_anew()
    else:
        world.touch("t3")
    world.settle()
    assert set(world.held()) >= EVERY
    reason = "MayNotLook" if blink[:3] in ("401", "403", "404") else "Unavailable"
    told = f"cannot get secrets in namespace team-t3 ({blink[:3]} "
    for status, why, message in (world.condition("t3", "KeysValid"), world.gateway_condition()):
        assert (status, why) == ("Unknown", reason) and told in message and "kubectl auth can-i" in message
    assert "t3-keys" not in world.gateway_condition()[2], "names in a team's namespace are not shown"
    assert world.condition("t4", "KeysValid")[0] == "True"
    assert any(told in message for message in world.events())
    world.heal()
    world.later(20)
    assert set(world.held()) >= EVERY
    assert world.condition("t3", "KeysValid")[:2] == ("True", "Valid")
    assert world.gateway_condition()[:2] == ("True", "Resolved")


def test_a_key_that_is_rotated_while_nobody_may_look_is_let_in_once_somebody_may(world: World) -> None:
    world.blink(FORBIDDEN, T3)
    world.cluster.put(secret_of("t3", key_of("rotated")))
    world.settle()
    assert set(world.held()) == EVERY
    world.heal()
    world.later(20)
    assert set(world.held()) == ALL_BUT_T3 | {digest_of("rotated")}


@pytest.mark.parametrize("way", ["item", "tenant", "plan", "another entry", "another Secret"])
def test_what_is_seen_to_be_taken_away_goes_at_once_although_its_secret_cannot_be_read(
    world: World, way: str
) -> None:
    world.blink(FORBIDDEN, T3, ReadRequest("get", "Secret", "team-t3", "others"))
    world.touch("t3")
    world.settle()
    assert digest_of("t3") in world.held()
    if way == "tenant":
        world.cluster.remove(TENANT_KIND, "t3", "team-t3")
    else:
        changes: dict[str, Callable[[dict[str, Any]], None]] = {
            "item": lambda spec: spec["apiKeys"].pop(0),
            "plan": lambda spec: spec.update(plan="platinum"),
            "another entry": lambda spec: spec["apiKeys"][0]["secretRef"].update(key="second"),
            "another Secret": lambda spec: spec["apiKeys"][0]["secretRef"].update(name="others"),
        }
        world.give_change("t3", changes[way])
    world.settle()
    assert digest_of("t3") not in world.held()


def test_a_secret_that_is_gone_takes_its_key_at_once_while_another_cannot_be_read(world: World) -> None:
    world.blink(FORBIDDEN, T3)
    world.touch("t3")
    world.cluster.remove("Secret", "t4-keys", "team-t4")
    world.settle()
    assert digest_of("t3") in world.held() and digest_of("t4") not in world.held()
    assert world.condition("t4", "KeysValid")[:2] == ("False", "SecretMissing")


def test_a_spec_that_changed_while_no_operator_ran_holds_nothing_by_its_name(world: World) -> None:
    world.give_change("t3", lambda spec: spec["apiKeys"][0]["secretRef"].update(key="second"))
    world.blink(FORBIDDEN, T3)
    world.start_anew()
    world.settle()
    assert set(world.held()) == ALL_BUT_T3


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_key_that_nobody_may_look_at_is_shut_out_after_its_time_and_comes_back(
    world: World, restarted: bool
) -> None:
    world.blink(FORBIDDEN, T3)
    world.touch("t3")
    world.settle()
    world.later(GRACE_SECONDS - 60)
    assert digest_of("t3") in world.held()
    if restarted:
        world.start_anew()
        world.settle()
        assert digest_of("t3") in world.held()
    world.later(GRACE_SECONDS)
    assert digest_of("t3") not in world.held() and set(world.held()) >= ALL_BUT_T3
    status, reason, message = world.condition("t3", "KeysValid")
    assert (status, reason) == ("False", "HoldEnded") and "15 minutes" in message
    assert world.gateway_condition()[:2] == ("False", "HoldEnded")
    world.heal()
    world.later(20)
    assert set(world.held()) >= EVERY and world.gateway_condition()[0] == "True"


def test_a_secret_that_blinks_is_not_asked_for_again_at_every_reconcile(world: World) -> None:
    world.blink(FORBIDDEN, T3)
    world.touch("t3")
    world.settle()
    world.cluster.requests.clear()
    for _ in range(20):
        asyncio.run(world.loop.reconcile())
    assert world.cluster.requests.count("GET Secret t3-keys") <= 1


def test_while_nobody_may_look_the_gateway_is_not_at_rest(world: World) -> None:
    world.blink(FORBIDDEN, T3)
    world.touch("t3")
    world.settle()
    pauses = [asyncio.run(world.loop.reconcile()) for _ in range(100)]
    assert max(pauses) <= 15


@pytest.mark.parametrize("kinds", [(TENANT_KIND,), ("Secret",), (TENANT_KIND, "Secret")], ids=str)
def test_a_namespace_that_nobody_may_list_keeps_its_keys_is_told_and_heals(
    world: World, kinds: tuple[str, ...]
) -> None:
    world.bar("team-t3", *kinds)
    world.settle()
    assert set(world.held()) == EVERY
    assert world.condition("t3", "KeysValid")[:2] == ("Unknown", "MayNotLook")
    status, reason, message = world.gateway_condition()
    assert (status, reason) == ("Unknown", "MayNotLook") and "in namespace team-t3" in message
    assert world.gateway_condition("Ready")[0] == "True"
    world.unbar("team-t3", *kinds)
    world.settle()
    assert set(world.held()) == EVERY and world.condition("t3", "KeysValid")[0] == "True"
    assert world.gateway_condition()[:2] == ("True", "Resolved")


@pytest.mark.parametrize("kind", [TENANT_KIND, "Secret", "StatefulSet"])
def test_an_api_server_that_does_not_answer_for_a_kind_is_told_and_shuts_nobody_out(
    world: World, kind: str
) -> None:
    home = "team" if kind == "StatefulSet" else "team-t3"
    ill = ApiError(500, "InternalError", "")
    world.cluster.store.mark_unavailable(
        kind, home, ReadFailed(ReadRequest("list", kind, home), ReadOutcome.UNAVAILABLE, ill)
    )
    world.settle()
    world.later(2 * GRACE_SECONDS)
    assert set(world.held()) == EVERY
    status, reason, message = world.gateway_condition()
    assert (status, reason) == ("Unknown", "Unavailable") and f"in namespace {home}" in message
    assert world.gateway_condition("Ready")[0] == "True"
    world.cluster.store.mark_available(kind, home)
    world.settle()
    assert world.gateway_condition()[:2] == ("True", "Resolved")


def test_a_tenant_that_was_deleted_while_nobody_could_list_it_goes_when_somebody_can(world: World) -> None:
    world.bar("team-t3")
    world.settle()
    world.cluster.stale = True
    world.cluster.remove(TENANT_KIND, "t3", "team-t3")
    world.settle()
    assert set(world.held()) == EVERY
    world.cluster.stale = False
    world.unbar("team-t3")
    world.settle()
    assert set(world.held()) == ALL_BUT_T3


@pytest.mark.parametrize("deleted", [False, True], ids=["there", "deleted meanwhile"])
def test_an_operator_that_starts_while_nobody_may_list_takes_the_keys_over(
    world: World, deleted: bool
) -> None:
    before = world.shards()
    world.start_barred("team-t3")
    world.settle()
    assert world.shards() == before
    assert world.gateway_condition()[:2] == ("Unknown", "MayNotLook")
    if deleted:
        del world.cluster.objects[(TENANT_KIND, "team-t3", "t3")]
        world.unbar("team-t3")
    else:
        world.unbar("team-t3")
        for kind, name in (("Secret", "t3-keys"), (TENANT_KIND, "t3")):
            world.cluster.store.upsert(kind, world.cluster.find(kind, name, "team-t3"))
    world.settle()
    assert set(world.held()) == (ALL_BUT_T3 if deleted else EVERY)
    assert world.gateway_condition()[:2] == ("True", "Resolved")


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_namespace_that_nobody_may_list_for_long_is_shut_out_whole_and_comes_back(
    world: World, restarted: bool
) -> None:
    world.bar("team-t3")
    world.settle()
    world.later(GRACE_SECONDS - 60)
    assert set(world.held()) == EVERY
    if restarted:
        world.start_barred("team-t3")
        world.settle()
        assert set(world.held()) == EVERY
    # The status contains the start time by the real clock, and the machine may be slow.
    world.later(600)
    assert set(world.held()) == ALL_BUT_T3
    assert world.gateway_condition()[:2] == ("False", "HoldEnded")
    if not restarted:
        assert world.condition("t3", "KeysValid")[:2] == ("False", "HoldEnded")
        assert world.condition("t3", "Programmed")[:2] == ("False", "HoldEnded")
    world.unbar("team-t3")
    if restarted:
        for kind, name in (("Secret", "t3-keys"), (TENANT_KIND, "t3")):
            world.cluster.store.upsert(kind, world.cluster.find(kind, name, "team-t3"))
    world.settle()
    assert set(world.held()) == EVERY and world.condition("t3", "Programmed")[0] == "True"


SELECTED = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"llm": "yes"}}}}
LABELS = ReadRequest("list", "Namespace", None)


@pytest.fixture
def selecting() -> World:
    made = World(SELECTED)
    made.cluster.namespace_labels = {f"team-{name}": {"llm": "yes"} for name in TEN}
    made.add(*TEN)
    made.settle()
    assert set(made.held()) == EVERY
    return made


@pytest.mark.parametrize("blink", BLINKS)
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_labels_that_nobody_may_read_just_now_shut_nobody_out(
    selecting: World, blink: str, restarted: bool
) -> None:
    selecting.blink(BLINKS[blink], LABELS)
    if restarted:
        selecting.start_anew()
    selecting.resync()
    selecting.add("late")
    selecting.settle()
    assert set(selecting.held()) >= EVERY
    assert "cannot list namespaces in all namespaces" in selecting.gateway_condition()[2]
    selecting.heal()
    selecting.settle()
    assert set(selecting.held()) == EVERY, "a namespace without the label was never accepted"
    selecting.blink(BLINKS[blink], LABELS)
    selecting.resync()
    selecting.later(0)
    selecting.later(GRACE_SECONDS)
    if blink[:3] in ("401", "403", "404"):
        assert selecting.held() == {} and "may not read" in selecting.condition("t3", "Accepted")[2]
    selecting.heal()
    selecting.settle()
    assert set(selecting.held()) == EVERY


def test_a_selector_that_changes_while_labels_cannot_be_read_holds_nobody(selecting: World) -> None:
    selecting.blink(FORBIDDEN, LABELS)
    found = selecting.cluster.find("GovernanceGateway", "demo")
    found["spec"]["allowedTenants"]["namespaces"]["selector"]["matchLabels"] = {"llm": "gold"}
    found["metadata"]["generation"] += 1
    selecting.cluster.announce()
    selecting.settle()
    assert selecting.held() == {}


ACME = ReadRequest("get", "Secret", "team", "acme-keys")
PROVIDER = ReadRequest("get", "Secret", "team", "openai")
OWN = {sha256(key) for key in (ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY)}
GLOBEX = sha256(GLOBEX_KEY)


@pytest.mark.parametrize("blink", BLINKS)
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_key_of_the_gateways_own_list_stays_is_told_and_heals(
    world: World, blink: str, restarted: bool
) -> None:
    world.blink(BLINKS[blink], ACME)
    if restarted:
        world.start_anew()
    world.resync()
    world.settle()
    assert set(world.listed()) == OWN
    status, _, message = world.gateway_condition()
    assert status == "Unknown" and "Secret acme-keys" in message and "until" in message
    assert world.gateway_condition("Ready")[0] == "True"
    world.cluster.put(secret("globex-keys", only="sk-test-globex-rotated-0123456789"))
    world.settle()
    assert GLOBEX not in world.listed() and len(world.listed()) == 3, (
        "another tenant's key is revoked immediately"
    )
    world.heal()
    world.later(20)
    assert world.gateway_condition()[:2] == ("True", "Resolved")


def test_an_item_that_is_taken_out_of_the_list_goes_at_once_although_its_secret_cannot_be_read(
    world: World,
) -> None:
    world.blink(FORBIDDEN, ACME)
    found = world.cluster.find("GovernanceGateway", "demo")
    found["spec"]["tenants"][0]["apiKeys"].pop(0)
    found["spec"]["tenants"][0]["apiKeys"][0]["name"] = "second"
    found["metadata"]["generation"] += 1
    world.cluster.announce()
    world.settle()
    first, second = (sha256(key) for key in (ACME_KEY, ACME_OTHER_KEY))
    assert first not in world.listed() and second in world.listed()


def test_a_key_of_the_list_that_nobody_may_look_at_is_shut_out_after_its_time(world: World) -> None:
    world.blink(FORBIDDEN, ACME)
    world.resync()
    world.settle()
    world.later(GRACE_SECONDS + 1)
    assert set(world.listed()) == {GLOBEX}
    assert world.gateway_condition()[:2] == ("False", "HoldEnded")
    world.heal()
    world.later(20)
    assert set(world.listed()) == OWN


def test_the_sources_of_keys_tell_nothing_of_a_key(world: World) -> None:
    data = world.cluster.find("Secret", "demo-tenants")["data"]
    lines = base64.b64decode(data[KEY_SOURCES]).decode().splitlines()
    assert [len(line) for line in lines] == [len("acme") + 2 * 11, len("globex") + 11]


@pytest.mark.parametrize("blink", BLINKS)
def test_a_providers_secret_that_nobody_may_look_at_changes_nothing_but_keys_go_on(
    world: World, blink: str
) -> None:
    before = world.cluster.owned()
    ready = world.gateway_condition("Ready")
    world.blink(BLINKS[blink], PROVIDER)
    world.resync()
    world.later(2 * GRACE_SECONDS)
    keys = {("Secret", "team", "demo-tenants")}
    assert {key: found for key, found in world.cluster.owned().items() if key not in keys} == {
        key: found for key, found in before.items() if key not in keys
    }
    status, _, message = world.gateway_condition()
    assert status == "Unknown" and "Secret openai" in message
    assert world.gateway_condition("Ready") == ready
    world.cluster.remove("Secret", "globex-keys")
    world.cluster.remove("Secret", "t4-keys", "team-t4")
    world.settle()
    assert GLOBEX not in world.listed() and digest_of("t4") not in world.held()
    world.heal()
    world.settle()
    assert world.gateway_condition()[:2] == ("False", "SecretMissing")


def test_a_gateway_that_is_new_while_its_secrets_cannot_be_read_claims_nothing() -> None:
    world = World()
    world.blink(FORBIDDEN, PROVIDER)
    world.settle()
    assert {found[0] for found in map(world.gateway_condition, ("Ready", "ConfigValid", "ResolvedRefs"))} == {
        "Unknown"
    }
    assert ("StatefulSet", "team", "demo-worker") not in world.cluster.objects
    world.heal()
    world.settle()
    assert world.gateway_condition("Ready")[0] == "True"


@pytest.mark.parametrize("blink", ["401", "403", "404 of the kind"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ConfigMap", "demo-checkpoints"),
        ("PodDisruptionBudget", "demo-haproxy"),
        ("Secret", "demo-admin"),
        ("Secret", "demo-ledger"),
        ("Secret", "demo-tenants"),
    ],
)
def test_an_object_of_its_own_that_nobody_may_look_at_stops_the_gateway_where_it_is(
    blink: str, kind: str, name: str
) -> None:
    world = World(loadBalancer={"replicas": 1})
    world.settle()
    before = world.cluster.owned()
    world.blink(BLINKS[blink], ReadRequest("get", kind, "team", name))
    world.cluster.find("GovernanceGateway", "demo")["spec"]["timeouts"] = {"drainSeconds": 31}
    world.resync()
    for _ in range(3):
        asyncio.run(world.loop.reconcile())
    assert world.cluster.owned() == before
    assert world.gateway_condition()[:2] == ("Unknown", "MayNotLook")
    assert "Ready" in str(world.cluster.find("GovernanceGateway", "demo")["status"])
    world.heal()
    world.settle()
    assert world.gateway_condition()[:2] == ("True", "Resolved")
    assert world.cluster.owned() != before
