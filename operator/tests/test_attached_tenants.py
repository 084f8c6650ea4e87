"""Tenants as separate objects, on a cluster in memory: what is accepted, written and reported."""

import asyncio
import base64
import copy
import hashlib
from typing import Any

import pytest

from proofgate_operator.build.haproxy_config import MAX_ROUTED_TENANT
from proofgate_operator.build.naming import CONFIG_ANNOTATION
from proofgate_operator.build.tenant_shards import SHARDS
from proofgate_operator.handlers.loop import GatewayLoop
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan import shard_allocation, tenant_registry
from tests.fake_cluster import FakeCluster
from tests.gateways import manifest, user_secrets
from tests.operators import loop, operator

PLANS = [{"name": "gold", "limits": {"requestsPerMinute": 600}}, {"name": "basic"}]
ALL = {"namespaces": {"from": "All"}}


def key_of(name: str) -> str:
    return f"sk-test-{name}-0123456789abcdef"


def digest_of(name: str) -> str:
    return hashlib.sha256(key_of(name).encode()).hexdigest()


def tenant(name: str, namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    """Return a tenant with one key in a Secret of the same namespace."""
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GatewayTenant",
        "metadata": {
            "name": name,
            "namespace": namespace or f"team-{name}",
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "gatewayRef": {"name": "demo", "namespace": "team"},
            "plan": "gold",
            "apiKeys": [{"name": "ci", "secretRef": {"name": f"{name}-keys", "key": "ci"}}],
            **spec,
        },
    }


def secret_of(name: str, text: str, namespace: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-keys", "namespace": namespace or f"team-{name}", "uid": f"s-{name}"},
        "data": {"ci": base64.b64encode(text.encode()).decode()},
    }


class World:
    """A cluster with a gateway, and an operator that keeps its state between reconciles."""

    def __init__(self, allowed: dict[str, Any] | None = ALL, **changes: Any) -> None:
        self.cluster = FakeCluster()
        spec = {"plans": PLANS, **({"allowedTenants": allowed} if allowed else {}), **changes}
        self.cluster.put(manifest(**spec))
        for found in user_secrets().values():
            assert found
            self.cluster.put(found)
        self.restart()

    def restart(self) -> None:
        """Replace the operator by a new one without memory."""
        self.operator: Operator = operator(self.cluster)
        self.loop: GatewayLoop = loop(self.operator)

    def start_anew(self) -> None:
        """Start as a new process that has seen no earlier events."""
        self.cluster.restart()
        self.restart()

    def close(self) -> None:
        """Remove the gateway's permission for GatewayTenants."""
        found = self.cluster.find("GovernanceGateway", "demo")
        del found["spec"]["allowedTenants"]
        found["metadata"]["generation"] += 1
        self.cluster.announce()

    def resync(self) -> None:
        """Make the next reconcile a resync, because something changed that no watch reports."""
        self.loop = loop(self.operator)

    def add(self, *names: str) -> None:
        for name in names:
            self.cluster.put(secret_of(name, key_of(name)))
            self.cluster.put(tenant(name))

    def settle(self) -> None:
        """Reconcile until a reconcile writes nothing."""
        for _ in range(60):
            before = len(self.cluster.writes)
            asyncio.run(self.loop.reconcile())
            asyncio.run(self.operator.orphans.reconcile())
            self.cluster.run_controllers()
            if len(self.cluster.writes) == before:
                return
        raise AssertionError(self.cluster.writes[-10:])

    def shards(self) -> dict[str, dict[str, str]]:
        """Return the files of every written shard."""
        return {
            name: {file: base64.b64decode(text).decode() for file, text in live["data"].items()}
            for (kind, namespace, name), live in self.cluster.objects.items()
            if kind == "Secret" and namespace == "team" and name.startswith("demo-tenants-")
        }

    def held(self) -> dict[str, str]:
        """Return the tenants by the digests of accepted keys."""
        lines = "".join(files["keys"] for files in self.shards().values()).splitlines()
        return {line.split()[0]: line.split()[1] for line in lines}

    def condition(self, name: str, kind: str, namespace: str | None = None) -> tuple[str, str, str]:
        found = self.cluster.find("GatewayTenant", name, namespace or f"team-{name}")
        for condition in found.get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def marks(self) -> set[str]:
        return {
            live["metadata"].get("annotations", {}).get(CONFIG_ANNOTATION, "")
            for key, live in self.cluster.objects.items()
            if key[0] == "Pod"
        }


TEN = tuple(f"t{number}" for number in range(10))


def test_ten_tenants_are_let_in_and_told_so() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    assert world.held() == {digest_of(name): f"team-{name}/{name}" for name in TEN}
    tenants = sorted("".join(files["tenants"] for files in world.shards().values()).splitlines())
    assert tenants == sorted(f"team-{name}/{name} gold" for name in TEN)
    for name in TEN:
        status = world.cluster.find("GatewayTenant", name, f"team-{name}")["status"]
        assert {condition["type"]: condition["status"] for condition in status["conditions"]} == {
            "Ready": "True",
            "Accepted": "True",
            "KeysValid": "True",
            "Programmed": "True",
        }
        assert status["tenant"] == f"team-{name}/{name}" and status["keyCount"] == 1
        assert status["keys"] == [{"name": "ci", "digest": digest_of(name)[:8]}]
    assert not any(key_of(name) in str(world.cluster.objects) for name in TEN), (
        "no key is stored in clear text"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "SecretMissing"), ("sk-too-short", "SecretInvalid"), (key_of("t3") + "\n", "SecretInvalid")],
)
def test_a_bad_secret_costs_its_tenant_alone(text: str | None, reason: str) -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    if text is None:
        world.cluster.remove("Secret", "t3-keys", "team-t3")
    else:
        world.cluster.put(secret_of("t3", text))
    world.settle()
    assert set(world.held()) == {digest_of(name) for name in TEN if name != "t3"}
    status, told, message = world.condition("t3", "KeysValid")
    assert (status, told) == ("False", reason)
    assert "Secret t3-keys, named by spec.apiKeys[ci].secretRef" in message
    assert text is None or text.strip() not in message
    assert all(world.condition(name, "KeysValid")[0] == "True" for name in TEN if name != "t3")
    world.cluster.put(secret_of("t3", key_of("t3")))
    world.settle()
    assert set(world.held()) == {digest_of(name) for name in TEN}


def test_a_secret_that_is_not_there_is_no_key() -> None:
    world = World()
    world.cluster.put(tenant("acme", "team-acme"))
    world.cluster.faults = []
    world.settle()
    assert world.held() == {} and world.condition("acme", "KeysValid")[1] == "SecretMissing"


@pytest.mark.parametrize("way", ["item", "secret", "tenant", "plan"])
def test_a_key_is_revoked_by_whatever_takes_it_away(way: str) -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    before = world.marks()
    found = world.cluster.find("GatewayTenant", "t3", "team-t3")
    if way == "item":
        found["spec"]["apiKeys"] = []
        found["metadata"]["generation"] += 1
    elif way == "secret":
        world.cluster.remove("Secret", "t3-keys", "team-t3")
    elif way == "tenant":
        world.cluster.remove("GatewayTenant", "t3", "team-t3")
    else:
        found["spec"]["plan"] = "platinum"
        found["metadata"]["generation"] += 1
    world.cluster.announce()
    world.settle()
    assert set(world.held()) == {digest_of(name) for name in TEN if name != "t3"}
    assert world.marks().isdisjoint(before), "new marks make the kubelet update the pods' files"


def test_a_change_of_one_tenant_reads_its_secret_and_writes_its_shards_alone() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    world.cluster.requests.clear()
    world.cluster.put(secret_of("t3", key_of("rotated")))
    world.settle()
    assert digest_of("rotated") in world.held() and digest_of("t3") not in world.held()
    read = [request for request in world.cluster.requests if request.startswith("GET Secret t")]
    assert read == ["GET Secret t3-keys"]
    shards = {request for request in world.cluster.requests if request.startswith("PATCH Secret")}
    assert 1 <= len(shards) <= 2


def test_at_rest_nothing_is_asked_for() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    asyncio.run(world.loop.reconcile())
    world.cluster.requests.clear()
    asyncio.run(world.loop.reconcile())
    assert world.cluster.requests == []


def test_another_operator_changes_nothing_and_locks_nobody_out() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    before, marks = world.shards(), world.marks()
    world.cluster.writes.clear()
    world.restart()
    world.settle()
    assert world.shards() == before and world.marks() == marks
    assert not [write for write in world.cluster.writes if "demo-tenants-" in write or "Pod" in write]


def test_a_secret_that_cannot_be_asked_for_takes_no_key_away() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    before = world.held()
    world.restart()
    world.cluster.faults = [None] * 60 + [ApiError(500, "InternalError", "etcd is ill")] * 5
    asyncio.run(world.loop.reconcile())
    world.cluster.faults = []
    assert world.held() == before
    world.settle()
    assert world.held() == before


def test_a_shard_that_somebody_takes_away_comes_back() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    before = world.shards()
    world.cluster.remove("Secret", sorted(before)[0])
    world.settle()
    assert world.shards() == before


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped meanwhile"])
@pytest.mark.parametrize("gone", [True, False], ids=["tenants gone", "tenants there"])
def test_where_no_tenant_may_attach_any_more_no_shard_keeps_a_key(running: bool, gone: bool) -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    assert world.held()
    world.close()
    for name in TEN if gone else ():
        world.cluster.remove("GatewayTenant", name, f"team-{name}")
    if not running:
        world.start_anew()
    world.settle()
    assert not any("".join(files.values()) for files in world.shards().values())


def test_shards_that_were_emptied_are_left_alone_by_another_operator() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    world.close()
    for name in TEN:
        world.cluster.remove("GatewayTenant", name, f"team-{name}")
    world.settle()
    marks = world.marks()
    world.cluster.writes.clear()
    world.start_anew()
    world.settle()
    assert world.marks() == marks
    assert not [write for write in world.cluster.writes if "demo-tenants-" in write or "Pod" in write]
    asyncio.run(world.loop.reconcile())
    world.cluster.requests.clear()
    asyncio.run(world.loop.reconcile())
    assert world.cluster.requests == []


def test_a_tenant_of_a_gateway_that_lets_none_attach_changes_nothing_of_that() -> None:
    world = World(None)
    world.settle()
    marks = world.marks()
    world.cluster.writes.clear()
    world.add("acme")
    world.settle()
    assert world.condition("acme", "Accepted")[:2] == ("False", "NotAllowed")
    assert world.marks() == marks
    assert set(world.cluster.writes) == {"PATCH GatewayTenant acme/status"}


def test_a_tenant_of_a_gateway_that_is_not_there_is_told_so() -> None:
    world = World()
    world.cluster.put(secret_of("lost", key_of("lost")))
    world.cluster.put(tenant("lost", gatewayRef={"name": "nobody", "namespace": "team"}))
    world.settle()
    message = "there is no GovernanceGateway team/nobody"
    assert world.condition("lost", "Accepted") == ("False", "GatewayNotFound", message)
    assert world.condition("lost", "Programmed")[:2] == ("False", "NotAccepted")
    asyncio.run(world.operator.orphans.reconcile())
    world.cluster.requests.clear()
    asyncio.run(world.operator.orphans.reconcile())
    assert world.cluster.requests == []
    found = world.cluster.find("GatewayTenant", "lost", "team-lost")
    found["spec"]["gatewayRef"]["name"] = "demo"
    world.cluster.announce()
    world.settle()
    assert world.condition("lost", "Accepted")[:2] == ("True", "Accepted")
    assert world.held() == {digest_of("lost"): "team-lost/lost"}


def test_tenants_of_a_gateway_that_goes_are_told_so_until_one_of_its_name_is_made() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    gateway = copy.deepcopy(world.cluster.find("GovernanceGateway", "demo"))
    world.cluster.remove("GovernanceGateway", "demo")
    world.loop.clean_up()
    world.settle()
    for name in TEN:
        assert world.condition(name, "Accepted")[:2] == ("False", "GatewayNotFound")
        status = world.cluster.find("GatewayTenant", name, f"team-{name}")["status"]
        assert status["keyCount"] == 0 and "keys" not in status
    gateway["metadata"] = {
        key: gateway["metadata"][key] for key in ("name", "namespace", "uid", "generation")
    }
    world.cluster.put(gateway)
    world.settle()
    assert {world.condition(name, "Accepted")[1] for name in TEN} == {"Accepted"}
    assert set(world.held()) == {digest_of(name) for name in TEN}


def test_what_the_api_server_cannot_take_just_now_is_told_later() -> None:
    world = World()
    for name in TEN:
        world.cluster.put(tenant(name, gatewayRef={"name": "nobody", "namespace": "team"}))
    world.cluster.refuse["GatewayTenant"] = ApiError(503, "NotNow", "in a moment")
    asyncio.run(world.operator.orphans.reconcile())
    assert {world.condition(name, "Accepted")[1] for name in TEN} == {""}
    world.cluster.refuse.clear()
    asyncio.run(world.operator.orphans.reconcile())
    assert {world.condition(name, "Accepted")[1] for name in TEN} == {"GatewayNotFound"}


def test_a_tenant_whose_status_is_refused_keeps_no_other_from_being_told() -> None:
    world = World()
    for name in ("t1", "t2"):
        world.cluster.put(tenant(name, gatewayRef={"name": "nobody", "namespace": "team"}))
    world.cluster.faults = [ApiError(404, "NotFound", "its namespace is on its way out")]
    asyncio.run(world.operator.orphans.reconcile())
    assert [world.condition(name, "Accepted")[1] for name in ("t1", "t2")] == ["", "GatewayNotFound"]


def test_a_gateway_that_was_made_while_its_tenant_was_told_that_it_is_not_there_corrects_that() -> None:
    world = World()
    world.add("acme")
    world.settle()
    found = world.cluster.find("GatewayTenant", "acme", "team-acme")
    found["status"]["conditions"][0] |= {"status": "False", "reason": "GatewayNotFound", "message": "late"}
    world.cluster.announce()
    world.settle()
    assert world.condition("acme", "Accepted")[:2] == ("True", "Accepted")


async def test_whoever_told_a_tenant_that_its_gateway_is_not_there_wakes_one_that_was_made_meanwhile() -> (
    None
):
    world = World()
    world.cluster.put(tenant("acme", gatewayRef={"name": "nobody", "namespace": "team"}))
    requeues = world.operator.requeues
    requeues.clear("team", "nobody")
    await world.operator.orphans.reconcile()
    async with asyncio.timeout(60):
        await requeues.wait("team", "nobody", 3600)


@pytest.mark.parametrize(
    ("allowed", "accepted"),
    [
        (None, set()),
        ({"namespaces": {"from": "Same"}}, {"near"}),
        ({"namespaces": {"from": "All"}}, {"near", "far"}),
        ({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"llm": "yes"}}}}, {"far"}),
    ],
    ids=["absent", "Same", "All", "Selector"],
)
def test_only_namespaces_that_are_allowed_attach(allowed: dict[str, Any] | None, accepted: set[str]) -> None:
    world = World(allowed)
    world.cluster.namespace_labels = {"team": {}, "elsewhere": {"llm": "yes"}}
    for name, namespace in (("near", "team"), ("far", "elsewhere")):
        world.cluster.put(secret_of(name, key_of(name), namespace))
        world.cluster.put(tenant(name, namespace))
    world.settle()
    assert set(world.held()) == {digest_of(name) for name in accepted}
    for name, namespace in (("near", "team"), ("far", "elsewhere")):
        expected = ("True", "Accepted") if name in accepted else ("False", "NotAllowed")
        assert world.condition(name, "Accepted", namespace)[:2] == expected


def test_labels_that_may_not_be_read_let_nobody_attach() -> None:
    world = World({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"llm": "yes"}}}})
    world.add("acme")
    world.settle()
    assert world.held() == {}
    assert "may not read" in world.condition("acme", "Accepted")[2]


@pytest.mark.parametrize("status", [401, 500])
def test_labels_that_cannot_be_asked_for_just_now_shut_nobody_out(status: int) -> None:
    world = World({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"llm": "yes"}}}})
    world.cluster.namespace_labels = {f"team-{name}": {"llm": "yes"} for name in TEN}
    world.add(*TEN)
    world.settle()
    before = world.held()
    world.cluster.find("GatewayTenant", "t3", "team-t3")["spec"]["plan"] = "basic"
    world.resync()
    world.cluster.namespaces_fault = ApiError(status, "NotNow", "in a moment")
    asyncio.run(world.loop.reconcile())
    world.cluster.namespaces_fault = None
    assert world.held() == before
    world.settle()
    assert world.held() == before


def test_a_namespace_that_loses_its_label_is_shut_out_and_no_key_is_read_again() -> None:
    world = World({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"llm": "yes"}}}})
    world.cluster.namespace_labels = {f"team-{name}": {"llm": "yes"} for name in TEN}
    world.add(*TEN)
    world.settle()
    assert len(world.held()) == 10
    world.cluster.namespace_labels["team-t3"] = {}
    world.resync()
    world.cluster.requests.clear()
    world.settle()
    assert set(world.held()) == {digest_of(name) for name in TEN if name != "t3"}
    assert world.condition("t3", "Accepted")[:2] == ("False", "NotAllowed")
    assert not [request for request in world.cluster.requests if request.startswith("GET Secret t")]


def test_a_name_that_haproxy_could_not_tell_whole_is_refused() -> None:
    world = World()
    longest, longer = "t" * (MAX_ROUTED_TENANT - 64), "t" * (MAX_ROUTED_TENANT - 63)
    for name in (longest, longer):
        world.cluster.put(secret_of(name, key_of(name), "n" * 63))
        world.cluster.put(tenant(name, "n" * 63))
    world.settle()
    assert world.condition(longest, "Accepted", "n" * 63)[:2] == ("True", "Accepted")
    assert world.condition(longer, "Accepted", "n" * 63)[:2] == ("False", "NameTooLong")
    assert set(world.held()) == {digest_of(longest)}


def test_a_plan_that_the_gateway_gives_up_costs_its_tenants_and_reads_no_key_again() -> None:
    world = World()
    world.add(*TEN)
    world.cluster.find("GatewayTenant", "t3", "team-t3")["spec"]["plan"] = "basic"
    world.settle()
    found = world.cluster.find("GovernanceGateway", "demo")
    found["spec"]["plans"] = PLANS[:1]
    found["metadata"]["generation"] += 1
    world.cluster.announce()
    world.cluster.requests.clear()
    world.settle()
    assert set(world.held()) == {digest_of(name) for name in TEN if name != "t3"}
    assert world.condition("t3", "Accepted")[:2] == ("False", "PlanUnknown")
    assert not [request for request in world.cluster.requests if request.startswith("GET Secret t")]


def test_of_two_tenants_with_one_key_the_one_that_has_it_keeps_it_and_the_other_learns_no_name() -> None:
    world = World()
    world.add("first")
    world.settle()
    thief = tenant("thief", apiKeys=[{"name": "mine", "sha256": digest_of("first")}])
    thief["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    world.cluster.put(thief)
    world.settle()
    assert world.held() == {digest_of("first"): "team-first/first"}
    status, reason, message = world.condition("thief", "KeysValid")
    assert (status, reason) == ("False", "KeyShared") and "first" not in message
    world.cluster.remove("GatewayTenant", "first", "team-first")
    world.settle()
    assert world.held() == {digest_of("first"): "team-thief/thief"}
    assert world.condition("thief", "KeysValid")[0] == "True"


@pytest.mark.parametrize("thief", ["team-a", "team-z"])
def test_another_operator_gives_no_key_to_a_tenant_that_only_lists_it(thief: str) -> None:
    world = World()
    world.add("first")
    world.settle()
    other = tenant("other", thief, apiKeys=[{"name": "mine", "sha256": digest_of("first")}])
    other["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    world.cluster.put(other)
    world.settle()
    for begin in (world.restart, world.start_anew):
        begin()
        world.settle()
        assert world.held() == {digest_of("first"): "team-first/first"}
        assert world.condition("other", "KeysValid", thief)[:2] == ("False", "KeyShared")


def test_another_operator_shuts_nobody_out_of_a_gateway_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_registry, "MAX_TENANT_BYTES", 2 * 256)
    monkeypatch.setattr(shard_allocation, "MIN_NAMESPACES", 1)
    found = [f"t{n}" for n in range(2 * SHARDS + 1)]
    world = World()
    world.add(*found[1:])
    world.settle()
    world.add(found[0])
    world.cluster.find("GatewayTenant", found[0], f"team-{found[0]}")["metadata"]["creationTimestamp"] = (
        "2020-01-01T00:00:00Z"
    )
    world.settle()
    before = world.held()
    assert set(before) == {digest_of(name) for name in found[1:]}
    world.start_anew()
    world.settle()
    assert world.held() == before
    assert world.condition(found[0], "Accepted")[:2] == ("False", "NoRoom")


def test_a_tenant_that_goes_to_another_gateway_leaves_this_one() -> None:
    world = World()
    world.add("acme")
    world.settle()
    found = world.cluster.find("GatewayTenant", "acme", "team-acme")
    found["spec"]["gatewayRef"] = {"name": "other", "namespace": "team"}
    world.cluster.announce()
    world.settle()
    assert world.held() == {}


def test_a_name_that_somebody_else_took_is_told_and_costs_that_shard_alone() -> None:
    world = World()
    names = [f"t{number}" for number in range(40)]
    world.add(*names)
    foreign = {"kind": "Secret", "metadata": {"name": "demo-tenants-00", "namespace": "team", "uid": "x"}}
    world.cluster.put({**foreign, "data": {"theirs": "eA=="}})
    for _ in range(20):
        asyncio.run(world.loop.reconcile())
        world.cluster.run_controllers()
    assert world.cluster.find("Secret", "demo-tenants-00")["data"] == {"theirs": "eA=="}
    lost = {name for name in names if world.condition(name, "Programmed")[1] == "NameTaken"}
    assert lost and lost != set(names)
    world.cluster.remove("Secret", "demo-tenants-00")
    world.settle()
    assert {world.condition(name, "Programmed")[1] for name in names} == {"Programmed"}


@pytest.mark.parametrize("allowed", [ALL, None], ids=["All", "absent"])
def test_a_name_that_somebody_else_took_costs_nothing_while_nothing_is_to_be_there(
    allowed: dict[str, Any] | None,
) -> None:
    world = World(allowed)
    foreign = {"kind": "Secret", "metadata": {"name": "demo-tenants-00", "namespace": "team", "uid": "x"}}
    world.cluster.put({**foreign, "data": {"theirs": "eA=="}})
    if allowed is None:
        world.add("acme")
    world.settle()
    conditions = world.cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    progressing = next(condition for condition in conditions if condition["type"] == "Progressing")
    assert progressing["reason"] != "ApplyFailed", progressing
    assert world.cluster.find("Secret", "demo-tenants-00")["data"] == {"theirs": "eA=="}
    asyncio.run(world.loop.reconcile())
    world.cluster.requests.clear()
    asyncio.run(world.loop.reconcile())
    assert world.cluster.requests == []


def test_where_the_affinity_is_required_every_tenant_has_an_owner() -> None:
    world = World(loadBalancer={"affinity": "Required"})
    world.add(*TEN)
    world.settle()
    owners = sorted("".join(files["owners"] for files in world.shards().values()).splitlines())
    assert [line.split()[0] for line in owners] == sorted(f"team-{name}/{name}" for name in TEN)
    assert all(line.split()[1].startswith("worker-") for line in owners)


def test_a_paused_gateway_writes_nothing_and_tells_its_tenants() -> None:
    world = World(paused=True)
    world.add("acme")
    world.settle()
    assert world.shards() == {}
    assert world.condition("acme", "Programmed")[:2] == ("False", "Paused")


def test_every_shard_is_mounted_and_none_has_to_exist() -> None:
    world = World()
    world.settle()
    assert world.shards() == {}
    workers = world.cluster.find("StatefulSet", "demo-worker")["spec"]["template"]["spec"]["volumes"]
    sources = next(volume for volume in workers if volume["name"] == "configuration")["projected"]["sources"]
    mounted = [source["secret"] for source in sources if "demo-tenants-" in str(source)]
    assert len(mounted) == SHARDS and all(source["optional"] for source in mounted)
    assert mounted[7]["items"] == [
        {"key": "keys", "path": "tenants/07/keys"},
        {"key": "tenants", "path": "tenants/07/tenants"},
    ]
    balancers = world.cluster.find("Deployment", "demo-haproxy")["spec"]["template"]["spec"]
    agent = next(found for found in balancers["containers"] if found["name"] == "haproxy-sidecar")
    assert "--tenant-shards" in agent["command"]
    haproxy = next(found for found in balancers["containers"] if found["name"] == "haproxy")
    config = world.cluster.find("ConfigMap", "demo-haproxy")["data"]["haproxy.cfg"]
    kept = agent["command"][agent["command"].index("--kept-maps") + 1]
    for name in ("tenants.map", "owners.map"):
        assert f"map({kept}/{name})" in config and f"{kept}/{name}" in haproxy["command"][-1]


def test_shards_that_nobody_made_are_not_asked_for_one_by_one() -> None:
    world = World()
    world.add("acme")
    world.settle()
    made = set(world.shards())
    assert 0 < len(made) < 3

    def asked() -> set[str]:
        verb = "GET Secret "
        reads = (found.removeprefix(verb) for found in world.cluster.requests if found.startswith(verb))
        return {name for name in reads if name.startswith("demo-tenants-")}

    assert asked() == made
    world.cluster.requests.clear()
    world.start_anew()
    world.settle()
    assert asked() == made
