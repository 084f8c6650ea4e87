"""Limits of teams: the namespaces that may use a plan, tenants per namespace, and keys."""

import hashlib
from typing import Any

import pytest
import yaml

from proofgate_operator.build.tenant_shards import SHARDS
from proofgate_operator.build.worker_config import worker_config_text
from proofgate_operator.plan import tenant_registry
from proofgate_operator.plan.budgets import budgets_note
from tests.gateways import DEFAULTS, gateway
from tests.test_attached_tenants import World, digest_of, key_of, secret_of, tenant

GOLD = {"name": "gold", "limits": {"requestsPerMinute": 600}}
BASIC = {"name": "basic"}


def world(*plans: dict[str, Any], labels: dict[str, dict[str, str]] | None = None) -> World:
    found = World(plans=[*plans])
    found.cluster.namespace_labels = labels
    return found


def accepted(found: World, name: str, namespace: str | None = None) -> tuple[str, str]:
    return found.condition(name, "Accepted", namespace)[:2]


def add(found: World, name: str, namespace: str, created: int = 0, **spec: Any) -> None:
    made = tenant(name, namespace, **spec)
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{created:02}Z"
    found.cluster.put(secret_of(name, key_of(name), namespace))
    found.cluster.put(made)


def test_a_plan_is_for_the_namespaces_that_it_names() -> None:
    found = world({**GOLD, "allowedNamespaces": {"names": ["team-blue"]}}, BASIC)
    found.add("blue", "green")
    add(found, "modest", "team-green", plan="basic")
    found.settle()
    assert accepted(found, "blue") == ("True", "Accepted")
    status, reason, message = found.condition("green", "Accepted")
    assert (status, reason) == ("False", "PlanNotAllowed")
    assert "spec.plans[gold].allowedNamespaces" in message and "team-green" in message
    assert accepted(found, "modest", "team-green") == ("True", "Accepted")
    assert found.held().keys() == {digest_of("blue"), digest_of("modest")}


def test_a_plan_is_for_the_namespaces_with_its_labels_and_those_it_names() -> None:
    selector = {"matchLabels": {"tier": "gold"}}
    labels = {"team-blue": {"tier": "gold"}, "team-green": {}, "team-named": {}}
    found = world(
        {**GOLD, "allowedNamespaces": {"selector": selector, "names": ["team-named"]}}, labels=labels
    )
    found.add("blue", "green", "named")
    found.settle()
    assert accepted(found, "blue") == accepted(found, "named") == ("True", "Accepted")
    assert accepted(found, "green") == ("False", "PlanNotAllowed")


def test_a_label_that_goes_takes_the_plan_away_with_the_next_look() -> None:
    labels = {"team-blue": {"tier": "gold"}}
    selector = {"matchLabels": {"tier": "gold"}}
    found = world({**GOLD, "allowedNamespaces": {"selector": selector}}, labels=labels)
    found.add("blue")
    found.settle()
    assert found.held()
    labels["team-blue"] = {}
    found.resync()
    found.settle()
    assert accepted(found, "blue") == ("False", "PlanNotAllowed") and not found.held()


def test_labels_that_may_not_be_read_let_in_the_named_alone_and_say_so() -> None:
    allowed = {"selector": {"matchLabels": {"tier": "gold"}}, "names": ["team-named"]}
    found = world({**GOLD, "allowedNamespaces": allowed})
    found.add("blue", "named")
    found.settle()
    assert accepted(found, "named") == ("True", "Accepted")
    status, reason, message = found.condition("blue", "Accepted")
    assert (status, reason) == ("False", "PlanNotAllowed") and "may not read" in message


def test_a_namespace_has_a_plan_as_often_as_the_plan_says_and_the_oldest_have_it() -> None:
    found = world({**GOLD, "perNamespace": {"tenants": 2}})
    for created, name in enumerate(("young", "old", "older")):
        add(found, name, "team-many", 30 - created)
    add(found, "other", "team-other")
    found.settle()
    assert (
        accepted(found, "old", "team-many") == accepted(found, "older", "team-many") == ("True", "Accepted")
    )
    status, reason, message = found.condition("young", "Accepted", "team-many")
    assert (status, reason) == ("False", "PlanShareTaken")
    assert "spec.plans[gold].perNamespace.tenants" in message and "2" in message
    assert accepted(found, "other") == ("True", "Accepted")
    assert digest_of("young") not in found.held()


def test_one_that_goes_or_takes_another_plan_makes_room_for_the_next() -> None:
    found = world({**GOLD, "perNamespace": {"tenants": 1}}, BASIC)
    for created, name in enumerate(("first", "second", "third")):
        add(found, name, "team-many", created)
    found.settle()
    assert found.held().keys() == {digest_of("first")}
    found.cluster.remove("GatewayTenant", "first", "team-many")
    found.settle()
    assert found.held().keys() == {digest_of("second")}
    second = found.cluster.find("GatewayTenant", "second", "team-many")
    second["spec"]["plan"] = "basic"
    second["metadata"]["generation"] += 1
    found.settle()
    assert found.held().keys() == {digest_of("second"), digest_of("third")}
    found.start_anew()
    found.settle()
    assert found.held().keys() == {digest_of("second"), digest_of("third")}


def test_who_may_not_have_a_plan_takes_no_share_of_it() -> None:
    found = world({**GOLD, "perNamespace": {"tenants": 1}})
    add(found, "n" * 63, "team-with-a-name-that-is-far-too-long", 0)
    add(found, "fits", "team-with-a-name-that-is-far-too-long", 1)
    found.settle()
    assert accepted(found, "n" * 63, "team-with-a-name-that-is-far-too-long")[1] == "NameTooLong"
    assert digest_of("fits") in found.held()


def test_what_plans_say_of_namespaces_is_none_of_the_workers_business() -> None:
    bare = gateway(plans=[GOLD], allowedTenants={})
    more = {**GOLD, "allowedNamespaces": {"names": ["team-blue"]}, "perNamespace": {"tenants": 2}}
    full = gateway(plans=[more], allowedTenants={})
    assert worker_config_text(full, 1 << 30, DEFAULTS) == worker_config_text(bare, 1 << 30, DEFAULTS)


def shared_world(affinity: str) -> World:
    found = World(
        plans=[{**GOLD, "perNamespace": {"limits": {"tokensPerDay": 1000}}}, BASIC],
        loadBalancer={"affinity": affinity},
    )
    for name in ("app", "batch", "chat"):
        add(found, name, "team-blue")
    add(found, "green", "team-green")
    add(found, "modest", "team-blue", plan="basic")
    found.settle()
    return found


def owners_of(found: World) -> dict[str, str]:
    lines = "".join(files["owners"] for files in found.shards().values()).splitlines()
    return {line.split()[0]: line.split()[1] for line in lines}


def test_who_shares_limits_has_one_place_on_the_ring_and_nobody_else_is_named() -> None:
    found = shared_world("Preferred")
    blue = {f"team-blue/{name}": "..team-blue_gold" for name in ("app", "batch", "chat")}
    assert owners_of(found) == {**blue, "team-green/green": "..team-green_gold"}
    gold = found.cluster.find("GovernanceGateway", "demo")
    del gold["spec"]["plans"][0]["perNamespace"]
    gold["metadata"]["generation"] += 1
    found.settle()
    assert owners_of(found) == {}


def test_who_shares_limits_has_one_owner_where_affinity_is_required() -> None:
    found = owners_of(shared_world("Required"))
    assert len(found) == 5, "every tenant has an owner"
    assert len({found[f"team-blue/{name}"] for name in ("app", "batch", "chat")}) == 1


def test_where_any_worker_serves_any_tenant_nobody_has_a_place() -> None:
    assert owners_of(shared_world("None")) == {}


def test_one_that_takes_a_plan_that_is_shared_gets_its_place() -> None:
    found = shared_world("Preferred")
    modest = found.cluster.find("GatewayTenant", "modest", "team-blue")
    modest["spec"]["plan"] = "gold"
    modest["metadata"]["generation"] += 1
    found.settle()
    assert owners_of(found)["team-blue/modest"] == "..team-blue_gold"


def test_workers_are_told_what_a_namespace_shares() -> None:
    limits = {"dollarsPerDay": "500", "concurrency": 3}
    shared = gateway(plans=[{**GOLD, "perNamespace": {"tenants": 2, "limits": limits}}], allowedTenants={})
    told = yaml.safe_load(worker_config_text(shared, 1 << 30, DEFAULTS))
    assert told["plans"] == [{**GOLD, "namespaceLimits": limits}]


def test_a_shared_budget_in_money_needs_prices_as_any_other_does() -> None:
    plans = [{**GOLD, "perNamespace": {"limits": {"dollarsPerDay": "500"}}}]
    note = budgets_note(gateway(plans=plans, allowedTenants={}))
    assert note is not None and "spec.plans[gold] has a budget in money" in note


def _chosen(count: int, shard: int = 0) -> list[str]:
    """Return digests of one shard; with `sha256:`, a tenant can choose such digests."""
    first = f"{shard << 3:02x}"
    return [first + hashlib.sha256(str(number).encode()).hexdigest()[2:] for number in range(count)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the capacity of all shards together to some hundred keys."""
    monkeypatch.setattr(tenant_registry, "MAX_KEY_BYTES", 40_000 // SHARDS)


@pytest.mark.usefixtures("small")
def test_one_namespace_cannot_fill_a_shard_of_keys_by_digests_that_it_chooses() -> None:
    number = next(n for n in range(1000) if digest_of(f"next{n}").startswith("00"))
    found = world(GOLD)
    found.add("victim")
    found.settle()
    digests = _chosen(640)
    for begin in range(0, len(digests), 32):
        keys = [{"name": f"k{n}", "sha256": text} for n, text in enumerate(digests[begin : begin + 32])]
        found.cluster.put(tenant(f"m{begin}", "team-mallory", apiKeys=keys))
    found.settle()
    of_mallory = [whose for whose in found.held().values() if whose.startswith("team-mallory/")]
    assert of_mallory, "the namespace has its share"
    told = [found.condition(f"m{begin}", "KeysValid", "team-mallory") for begin in range(0, 640, 32)]
    refused = next(message for _, reason, message in told if reason == "NoRoom")
    assert "for its namespace" in refused
    victim = secret_of("victim", key_of("victim"))
    victim["data"]["next"] = secret_of("victim", key_of(f"next{number}"))["data"]["ci"]
    found.cluster.put(victim)
    live = found.cluster.find("GatewayTenant", "victim", "team-victim")
    live["spec"]["apiKeys"].append({"name": "next", "secretRef": {"name": "victim-keys", "key": "next"}})
    live["metadata"]["generation"] += 1
    found.settle()
    assert found.held()[digest_of(f"next{number}")] == "team-victim/victim"
    before = found.held()
    found.start_anew()
    found.settle()
    assert found.held() == before, "accepted tenants stay accepted"


@pytest.mark.usefixtures("small")
def test_a_key_that_goes_makes_room_in_its_namespaces_share() -> None:
    found = world(GOLD)
    digests = _chosen(320)
    for begin in range(0, len(digests), 32):
        keys = [{"name": f"k{n}", "sha256": text} for n, text in enumerate(digests[begin : begin + 32])]
        found.cluster.put(tenant(f"m{begin}", "team-many", apiKeys=keys))
    found.settle()
    count = len(found.held())
    assert 0 < count < 320
    late = next(text for text in digests if text not in found.held())
    holder = next(iter(found.held().values())).partition("/")[2]
    found.cluster.remove("GatewayTenant", holder, "team-many")
    found.settle()
    owner = next(f"m{begin}" for begin in range(0, 320, 32) if late in digests[begin : begin + 32])
    live = found.cluster.find("GatewayTenant", owner, "team-many")
    live["spec"]["apiKeys"] = [key for key in live["spec"]["apiKeys"] if key["sha256"] == late]
    live["metadata"]["generation"] += 1
    found.settle()
    assert late in found.held()


def test_one_namespace_cannot_fill_a_shard_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_registry, "MAX_TENANT_BYTES", 256 * 32)
    found = world(GOLD)
    for number in range(400):
        found.cluster.put(tenant(f"m{number}", "team-mallory", apiKeys=[]))
    found.settle()
    told = {accepted(found, f"m{number}", "team-mallory") for number in range(400)}
    assert told == {("True", "Accepted"), ("False", "NoRoom")}
    found.add(*(f"late{number}" for number in range(100)))
    found.settle()
    assert all(accepted(found, f"late{number}") == ("True", "Accepted") for number in range(100))


def test_tenants_of_one_name_in_two_namespaces_are_two() -> None:
    found = world(GOLD)
    for namespace in ("team-one", "team-two"):
        found.cluster.put(tenant("ci", namespace, apiKeys=[]))
        found.cluster.find("GatewayTenant", "ci", namespace)["metadata"]["uid"] = f"uid-{namespace}"
    own = {"name": "ci", "sha256": "a" * 64}
    found.cluster.find("GatewayTenant", "ci", "team-one")["spec"]["apiKeys"] = [own]
    found.settle()
    assert found.held() == {"a" * 64: "team-one/ci"}
    teams = ("team-one", "team-two")
    told = {name: found.cluster.find("GatewayTenant", "ci", name)["status"] for name in teams}
    assert {name: status["tenant"] for name, status in told.items()} == {
        "team-one": "team-one/ci",
        "team-two": "team-two/ci",
    }
    assert [status["keyCount"] for status in told.values()] == [1, 0]


def test_a_status_tells_no_more_of_a_key_than_records_do() -> None:
    found = world(GOLD)
    found.add("blue")
    found.settle()
    live = found.cluster.find("GatewayTenant", "blue", "team-blue")
    assert live["status"]["keys"] == [{"name": "ci", "digest": digest_of("blue")[:8]}]
    assert key_of("blue") not in str(live) and digest_of("blue") not in str(live)
