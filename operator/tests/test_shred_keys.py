"""Tenants' shred keys: created once per tenant, never rewritten, and present before a file names them."""

import base64
import copy
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.shred_keys import shred_keys_entry
from proofgate_operator.plan.observed_state import ObservedState, Ref, TenantShards
from proofgate_operator.plan.shred_keys import read_shred_keys
from tests.fake_cluster import FakeCluster, Killed
from tests.gateways import NAMESPACE, SPEC, manifest, secret
from tests.moving_world import MovingWorld
from tests.test_convergence import new_cluster, reconcile_once, settle, status
from tests.test_manifests import one
from tests.world import World

Manifest = dict[str, Any]
MADE: Manifest = {"ledger": {"shredKeys": {}}}
BROUGHT: Manifest = {"ledger": {"shredKeys": {"secretRef": {"name": "own-keys"}}}}
KEYS = "demo-shred-keys"
OURS = {"app.kubernetes.io/managed-by": "proofgate-operator", "proofgate.dev/gateway": "demo"}
TENANTS = [tenant["name"] for tenant in SPEC["tenants"]]


def keys(cluster: FakeCluster) -> dict[str, str]:
    data: dict[str, str] = cluster.find("Secret", KEYS)["data"]
    return data


def add_tenant(cluster: FakeCluster, name: str) -> None:
    gateway = cluster.find("GovernanceGateway", "demo")
    gateway["spec"] = copy.deepcopy(gateway["spec"])
    gateway["spec"]["tenants"].append({**SPEC["tenants"][0], "name": name})
    gateway["metadata"]["generation"] = gateway["metadata"].get("generation", 1) + 1


def names_in_the_file(cluster: FakeCluster) -> list[str]:
    text = cluster.find("ConfigMap", "demo-config")["data"]["gateway.yaml"]
    return [tenant["name"] for tenant in yaml.safe_load(text)["tenants"]]


def test_each_tenant_gets_a_key_of_32_bytes_and_none_twice() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    made = keys(cluster)
    assert sorted(made) == sorted(TENANTS)
    lines = [base64.b64decode(text).decode() for text in made.values()]
    assert all(line.endswith("\n") and len(base64.b64decode(line, validate=False)) == 32 for line in lines)
    assert len(set(lines)) == len(lines)
    before = copy.deepcopy(made)
    settle(cluster)
    assert keys(cluster) == before


def test_a_key_is_there_before_a_file_names_its_tenant() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    before = dict(keys(cluster))
    add_tenant(cluster, "late")
    for _ in range(20):
        reconcile_once(cluster)
        cluster.run_controllers()
        assert set(names_in_the_file(cluster)) <= set(keys(cluster))
    assert "late" in names_in_the_file(cluster)
    assert {name: text for name, text in keys(cluster).items() if name != "late"} == before


def test_a_tenant_that_goes_and_a_gateway_that_goes_keep_their_keys() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    before = dict(keys(cluster))
    cluster.find("GovernanceGateway", "demo")["spec"]["tenants"].pop()
    settle(cluster)
    assert keys(cluster) == before
    assert not cluster.find("Secret", KEYS)["metadata"].get("ownerReferences")


def test_wherever_the_operator_is_killed_no_key_is_lost() -> None:
    reference = new_cluster(**MADE)
    settle(reference)
    for count in range(len(reference.writes)):
        cluster = new_cluster(**MADE)
        cluster.writes_left = count
        with pytest.raises(Killed):
            for _ in range(100):
                reconcile_once(cluster)
                cluster.run_controllers()
        left = cluster.objects.get(("Secret", NAMESPACE, KEYS))
        before = dict(left["data"]) if left else {}
        settle(cluster)
        assert keys(cluster).items() >= before.items(), count
        assert sorted(keys(cluster)) == sorted(TENANTS)


def test_what_others_put_into_the_secret_stays_and_a_key_that_came_meanwhile_is_not_overwritten() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    live = cluster.find("Secret", KEYS)
    rotated = base64.b64encode(b"two\nlines\n").decode()
    live["data"] |= {"acme": rotated, "somebody": rotated}
    settle(cluster)
    assert (keys(cluster)["acme"], keys(cluster)["somebody"]) == (rotated, rotated)
    # The operator has read the Secret without the entry; somebody adds the entry before the operator writes.
    add_tenant(cluster, "late")
    request = cluster.request

    async def slow(method: str, path: str, **more: Any) -> Manifest:
        if method == "PATCH" and path.endswith(f"/{KEYS}"):
            raced = cluster.find("Secret", KEYS)
            raced["data"]["late"] = rotated
            raced["metadata"]["resourceVersion"] = f"{int(raced['metadata']['resourceVersion']) + 1}"
        answer: Manifest = await request(method, path, **more)
        return answer

    cluster.request = slow  # type: ignore[method-assign]
    reconcile_once(cluster)
    cluster.request = request  # type: ignore[method-assign]
    settle(cluster)
    assert keys(cluster)["late"] == rotated


def test_an_entry_that_was_removed_is_made_anew_with_another_key() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    before = keys(cluster).pop("acme")
    settle(cluster)
    assert keys(cluster)["acme"] not in ("", before)


def test_tenants_with_objects_of_their_own_get_keys_under_names_that_a_secret_takes() -> None:
    gateway = Gateway.from_manifest(manifest(**MADE))
    attached = frozenset({"team/acme", "other/acme", f"{'n' * 63}/{'t' * 253}"})
    needed = read_shred_keys(gateway, ObservedState(tenants=TenantShards(names=attached)))
    assert needed.to_make == (*TENANTS, "_other_acme", "_team_acme")
    assert shred_keys_entry("team_acme") == "team_acme"
    live = secret(KEYS, **{name: "key" for name in TENANTS})
    live["metadata"]["labels"] = OURS
    seen = ObservedState(children={Ref("Secret", KEYS): live}, tenants=TenantShards(names=attached))
    needed = read_shred_keys(gateway, seen)
    assert (needed.to_make, needed.is_pending) == (("_other_acme", "_team_acme"), False)


def test_a_secret_that_is_full_takes_no_more_and_the_rest_is_told() -> None:
    gateway = Gateway.from_manifest(manifest(**MADE))
    attached = frozenset(f"team-{number % 8}/tenant-{number:05}" for number in range(20_000))
    needed = read_shred_keys(gateway, ObservedState(tenants=TenantShards(names=attached)))
    assert needed.to_make[: len(TENANTS)] == tuple(TENANTS), "tenants of the gateway's own list come first"
    assert 7000 < len(needed.to_make) < 20_000
    live = secret(KEYS)
    live["metadata"]["labels"] = OURS
    live["data"] = {entry: "k" * 60 for entry in needed.to_make}
    assert len(json.dumps(live)) < 1 << 20
    seen = ObservedState(children={Ref("Secret", KEYS): live}, tenants=TenantShards(names=attached))
    assert read_shred_keys(gateway, seen).to_make == ()
    assert needed.faults[0].reason == "NoRoom"
    # The remaining space is reserved for the gateway's own tenants, and suffices for all of them.
    longest = [{**SPEC["tenants"][0], "name": f"{'n' * 60}{number:03}"} for number in range(128)]
    own = read_shred_keys(Gateway.from_manifest(manifest(**MADE, tenants=longest)), seen)
    assert own.to_make == tuple(tenant["name"] for tenant in longest)
    assert (own.omitted_tenants, own.capacity_problems) == ((), ())


def test_one_namespace_takes_no_more_than_its_share_also_with_tenants_that_are_gone() -> None:
    gateway = Gateway.from_manifest(manifest(**MADE))
    greedy = frozenset(f"greedy/tenant-{number:05}" for number in range(5_000))
    needed = read_shred_keys(gateway, ObservedState(tenants=TenantShards(names=greedy | {"modest/tenant"})))
    assert 1700 < len([entry for entry in needed.to_make if entry.startswith("_greedy_")]) < 2000
    assert "_modest_tenant" in needed.to_make
    [fault] = needed.faults
    assert fault.reason == "NoRoom" and fault.message.endswith("has reached its limit: greedy")
    live = secret(KEYS)
    live["metadata"]["labels"] = OURS
    live["data"] = {entry: "k" * 60 for entry in needed.to_make}
    fresh = frozenset({"greedy/fresh", "modest/fresh"})
    seen = ObservedState(children={Ref("Secret", KEYS): live}, tenants=TenantShards(names=fresh))
    assert read_shred_keys(gateway, seen).to_make == ("_modest_fresh",)


def test_a_listed_tenant_without_room_is_told_and_costs_nobody_else_anything() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    keys(cluster)["somebody"] = "k" * (960 << 10)
    add_tenant(cluster, "late")
    settle(cluster)
    assert names_in_the_file(cluster) == TENANTS
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    [told] = [found for found in conditions if found["type"] == "ConfigValid"]
    assert (told["status"], told["reason"]) == ("False", "NoRoom")
    assert told["message"] == (
        f"Secret {KEYS} is full, so these tenants have no shred key and are not served: late"
    )
    assert status(cluster)["Progressing"] == ("False", "Settled")
    # The operator still applies all other changes.
    gateway = cluster.find("GovernanceGateway", "demo")
    gateway["spec"] = {**gateway["spec"], "tenants": gateway["spec"]["tenants"][1:]}
    settle(cluster)
    assert names_in_the_file(cluster) == TENANTS[1:]
    del keys(cluster)["somebody"]
    settle(cluster)
    assert names_in_the_file(cluster) == [*TENANTS[1:], "late"]
    assert status(cluster)["ConfigValid"] == ("True", "Valid")


def test_what_a_worker_refuses_is_told_also_while_a_tenant_has_no_room() -> None:
    world = MovingWorld(2)
    world.world.manifest["spec"]["ledger"]["shredKeys"] = {}
    live = secret(KEYS)
    live["metadata"]["labels"] = OURS
    live["data"] = {TENANTS[0]: "k" * 60, "somebody": "k" * (960 << 10)}
    world.world.children[Ref("Secret", KEYS)] = live
    seen = world.observed()
    refused = replace(seen.worker_reports[1], refusal_reason="config_invalid; tenants[0].name: is taken")
    plan = world.plan_of(replace(seen, worker_reports={**seen.worker_reports, 1: refused}))
    valid = plan.status.condition(ConditionType.CONFIG_VALID)
    assert (valid.is_true, valid.reason) == (False, "RefusedByWorker")
    assert valid.message == (
        "demo-worker-1 keeps the previous configuration: config_invalid; tenants[0].name: is taken;"
        f" Secret {KEYS} is full, so these tenants have no shred key and are not served: {TENANTS[1]}"
    )


def test_a_tenant_without_room_whose_objects_a_provider_keeps_holds_the_file_back_and_is_told() -> None:
    live = secret(KEYS)
    live["metadata"]["labels"] = OURS
    live["data"] = {name: "k" * 60 for name in (*TENANTS[1:], "x" * (480 << 10))}
    kept = [{**SPEC["providers"][0], "objectsOf": TENANTS[0]}]
    gateway = Gateway.from_manifest(manifest(**MADE, providers=kept))
    needed = read_shred_keys(gateway, ObservedState(children={Ref("Secret", KEYS): live}))
    assert (needed.is_pending, needed.omitted_tenants, needed.capacity_problems) == (True, (), ())
    assert [problem.reason for problem in needed.problems] == ["NoRoom"]


def test_workers_read_them_from_a_volume_of_their_own_and_only_where_they_are_wanted() -> None:
    def volumes(**changes: Any) -> list[Manifest]:
        template = one("StatefulSet", "demo-worker", **changes)["spec"]["template"]["spec"]
        mounts = {mount["name"]: mount for mount in template["containers"][0]["volumeMounts"]}
        found = [volume for volume in template["volumes"] if volume["name"] == "shred-keys"]
        for volume in found:
            assert mounts[volume["name"]] == {
                "name": "shred-keys",
                "mountPath": "/etc/shred-keys",
                "readOnly": True,
            }
        return found

    assert volumes() == []
    assert volumes(**MADE)[0]["secret"] == {"secretName": KEYS, "defaultMode": 0o440}
    assert volumes(**BROUGHT)[0]["secret"]["secretName"] == "own-keys"
    text = one("ConfigMap", "demo-config", **MADE)["data"]["gateway.yaml"]
    assert yaml.safe_load(text)["ledger"]["shredKeysDirectory"] == "/etc/shred-keys"


def test_a_secret_of_your_own_is_waited_for_and_never_written() -> None:
    world = World(**BROUGHT)
    world.secrets["own-keys"] = None
    problems = [problem.message for problem in read_shred_keys(world.gateway, ObservedState()).problems]
    assert problems == ["Secret own-keys, named by spec.ledger.shredKeys.secretRef, does not exist"]
    world.settle()
    assert Ref("StatefulSet", "demo-worker") not in world.children
    partly = ObservedState(secrets={"own-keys": secret("own-keys", acme="key")})
    [problem] = read_shred_keys(world.gateway, partly).problems
    assert problem.message.endswith("has no shred key for globex")
    world.secrets["own-keys"] = secret("own-keys", **{name: "key" for name in TENANTS})
    world.settle()
    assert world.child("StatefulSet", "demo-worker")
    assert Ref("Secret", KEYS) not in world.children


def test_another_key_has_the_kubelet_renew_the_workers_files() -> None:
    cluster = new_cluster(**MADE)
    settle(cluster)
    mark = "proofgate.dev/config-digest"
    before = cluster.find("Pod", "demo-worker-0")["metadata"]["annotations"][mark]
    keys(cluster)["acme"] = base64.b64encode(b"another\n").decode()
    settle(cluster)
    assert cluster.find("Pod", "demo-worker-0")["metadata"]["annotations"][mark] != before
    assert "another" not in yaml.safe_dump_all(
        value for key, value in cluster.owned().items() if key[2] != KEYS
    )


def test_without_the_field_nothing_is_made_and_a_secret_of_the_name_disturbs_nobody() -> None:
    cluster = new_cluster()
    cluster.put(secret(KEYS, acme="somebody's"))
    settle(cluster)
    assert list(keys(cluster)) == ["acme"]
    assert cluster.find("StatefulSet", "demo-worker")
