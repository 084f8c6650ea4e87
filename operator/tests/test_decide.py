"""Decisions of the operator, one per test."""

import base64
import copy
import hashlib
from typing import Any

import pytest

from proofgate_operator.api.conditions import ABNORMAL_CONDITIONS, ConditionStatus, ConditionType
from proofgate_operator.build import gateway_secrets
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.plan.drift import contains, with_digest
from proofgate_operator.plan.observed_state import Ref, ref_of
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY, UID, secret, user_secrets
from tests.world import PROVIDER, World, kinds, pod


def test_a_new_gateway_generates_its_secrets_before_anything_needs_them() -> None:
    plan = World().plan()
    assert plan.secrets_to_generate == ("demo-admin", "demo-ledger")
    assert not kinds(plan.manifests_to_apply) & {"StatefulSet", "Deployment"}


def test_a_gateway_settles_and_then_nothing_is_written() -> None:
    world = World().settle()
    assert {"StatefulSet", "Deployment", "Service", "PersistentVolumeClaim"} <= {
        ref.kind for ref, live in world.children.items() if live
    }
    assert not world.plan().has_writes


def test_a_generated_secret_is_never_written_again() -> None:
    world = World().settle()
    key = world.child("Secret", "demo-ledger")
    key["data"]["signing-key"] = gateway_secrets.encode_data(
        {"k": SigningKey("proofgate.dev/team/demo", bytes([7] * 32)).signing_text}
    )["k"]
    plan = world.plan()
    assert plan.secrets_to_generate == ()
    assert "demo-ledger" not in {written["metadata"]["name"] for written in plan.manifests_to_apply}
    assert kinds(plan.manifests_to_apply) == {"StatefulSet"}, "another signing key rolls only the workers"


def test_a_missing_secret_is_told_and_costs_its_owner_alone() -> None:
    world = World()
    world.secrets["acme-keys"] = None
    world.settle()
    assert world.children[Ref("StatefulSet", "demo-worker")]
    assert world.condition(ConditionType.CONFIG_VALID)[0] == "True"
    status, reason, message = world.condition(ConditionType.RESOLVED_REFS)
    assert (status, reason) == ("False", "SecretMissing")
    assert "acme-keys" in message
    (row,) = world.plan().status.faults
    assert (row["field"], row["reason"]) == ("spec.tenants[acme]", "SecretMissing")
    assert keys_of(world) == {GLOBEX_KEY}
    world.secrets = user_secrets()
    world.settle()
    assert world.condition(ConditionType.RESOLVED_REFS)[:2] == ("True", "Resolved")
    assert keys_of(world) == {ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY}


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [(("acme-keys", "globex-keys"), "no tenant has a key"), (("openai",), "no provider has a key")],
)
def test_a_gateway_that_can_serve_nobody_is_not_ready(broken: tuple[str, ...], complaint: str) -> None:
    world = World()
    world.secrets |= dict.fromkeys(broken)
    world.settle()
    assert complaint in serves_nobody(world)
    world.secrets = user_secrets()
    world.settle()
    assert serves_nobody(world) == ""


def serves_nobody(world: World) -> str:
    """Return the message of Ready once all other requirements are met."""
    worker = world.child("StatefulSet", "demo-worker")
    balancer = world.child("Deployment", "demo-haproxy")
    for found in (worker, balancer):
        found["status"] = {"readyReplicas": 2, "replicas": 2, "updatedReplicas": 2, "observedGeneration": 1}
    world.child("PersistentVolumeClaim", "demo-wal")["status"] = {"phase": "Bound"}
    status, reason, message = world.condition(ConditionType.READY)
    return "" if (status, reason) == ("True", "Ready") else message


def test_a_leaked_key_is_revoked_whatever_else_is_wrong() -> None:
    """The tenant loses its only key or its whole Secret. Another tenant's Secret, the provider's, the
    certificate, a rule and the signing key are broken too, and one name is taken."""
    for gone in (secret("globex-keys"), None):
        world = World(loadBalancer={"tls": {"certificateSecretRef": {"name": "demo-tls"}}}).settle()
        assert GLOBEX_KEY in keys_of(world)
        world.secrets |= {"globex-keys": gone, "acme-keys": secret("acme-keys", first="sk-secret")}
        world.secrets |= {"openai": None, "demo-tls": None}
        world.children[Ref("Secret", "demo-ledger")] = secret("demo-ledger", signing_key="nonsense")
        world.children[Ref("Service", "demo")] = {"metadata": {"name": "demo", "labels": {"app": "other"}}}
        world.manifest["spec"]["policy"] = {"rules": [UNBOUNDED_RULE, FLAGGED_RULE]}
        world.settle()
        assert keys_of(world) == set()
        assert world.child("Service", "demo")["metadata"]["labels"] == {"app": "other"}
        assert world.condition(ConditionType.CONFIG_VALID)[1] == "NameTaken"


UNBOUNDED_RULE = {"id": "endless", "reason": "x", "regex": "x+"}
FLAGGED_RULE = {"id": "flagged", "reason": "x", "regex": "(?iu)x"}


def keys_of(world: World) -> set[str]:
    """Return the keys whose digests the workers and HAProxy have."""
    entries = world.child("Secret", "demo-tenants")["data"]
    texts = {name: base64.b64decode(text).decode() for name, text in entries.items()}
    known = {hashlib.sha256(key.encode()).hexdigest(): key for key in (ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY)}
    workers = "".join(text for name, text in texts.items() if name.endswith(".keys"))
    found = {key for digest, key in known.items() if digest in workers}
    assert found == {key for digest, key in known.items() if digest in texts["tenants.map"]}
    return found


def test_workers_keep_the_last_valid_file_and_everything_else_goes_on() -> None:
    world = World().settle()
    file = world.child("ConfigMap", "demo-config")["data"]
    world.manifest["spec"] |= {"policy": {"rules": [UNBOUNDED_RULE]}, "replicas": 3}
    world.children[Ref("Secret", "demo-tenants")] = None
    world.children[Ref("Deployment", "demo-haproxy")] = None
    world.settle()
    assert world.child("ConfigMap", "demo-config")["data"] == file
    assert world.child("StatefulSet", "demo-worker")["spec"]["replicas"] == 3
    assert world.child("Deployment", "demo-haproxy") and keys_of(world)
    assert "keep the last valid configuration" in world.condition(ConditionType.CONFIG_VALID)[2]
    assert world.condition(ConditionType.READY)[1] == "PolicyInvalid"


def test_a_set_whose_template_is_held_back_is_scaled_and_nothing_else() -> None:
    world = World().settle()
    world.manifest["spec"] |= {"replicas": 3, "ledger": {"signingKeySecretRef": {"name": "lost"}}}
    world.secrets["lost"] = None
    plan = world.plan()
    assert plan.rescale_to == 3
    assert "StatefulSet" not in kinds(plan.manifests_to_apply)
    assert world.condition(ConditionType.CONFIG_VALID)[:2] == ("False", "SecretMissing")
    # The same holds when the file that its pods mount is missing and cannot be written.
    world = World().settle()
    world.children[Ref("ConfigMap", "demo-config")] = None
    world.manifest["spec"] |= {"replicas": 3, "policy": {"rules": [UNBOUNDED_RULE]}}
    plan = world.plan()
    assert (plan.rescale_to, "StatefulSet" in kinds(plan.manifests_to_apply)) == (3, False)


def test_without_a_file_or_a_signing_key_no_worker_is_started() -> None:
    for change in (
        {"policy": {"rules": [UNBOUNDED_RULE]}},
        {"ledger": {"signingKeySecretRef": {"name": "x"}}},
    ):
        world = World(**change).settle()
        assert world.children.get(Ref("StatefulSet", "demo-worker")) is None
        assert world.condition(ConditionType.PROGRESSING)[:2] == ("False", "ConfigInvalid")


@pytest.mark.parametrize("broken", ["openai", "acme-keys"])
def test_no_condition_ever_holds_a_key(broken: str) -> None:
    world = World()
    world.secrets[broken] = secret(broken, api_key="", short="sk-secret")
    assert "sk-secret" not in str(world.plan().status)


def test_a_provider_key_that_is_missing_names_secret_and_entry() -> None:
    world = World()
    world.secrets["openai"] = secret("openai", other="x")
    _, reason, message = world.condition(ConditionType.RESOLVED_REFS)
    assert reason == "SecretInvalid"
    assert (
        message
        == "Secret openai, named by spec.providers[openai].auth.apiKeySecretRef, has no text under api-key"
    )


def test_a_brought_signing_key_is_read_and_none_is_generated() -> None:
    world = World(ledger={"signingKeySecretRef": {"name": "mine"}})
    key = SigningKey("proofgate.dev/team/demo", bytes([3] * 32))
    world.secrets["mine"] = secret("mine", signing_key=key.signing_text)
    assert world.plan().secrets_to_generate == ("demo-admin",)
    world.settle()
    assert world.plan().status.ledger == {"verifyingKey": key.verifying_text}


def test_a_brought_key_may_be_held_by_a_process_beside_the_worker_that_shares_a_folder_with_it() -> None:
    public = SigningKey("proofgate.dev/team/demo", bytes([3] * 32)).verifying_text
    limits = {"limits": {"cpu": "100m", "memory": "32Mi"}}
    mount = {"name": "signer", "mountPath": "/run/signer"}
    shim = {"name": "signer", "image": "shim", "restartPolicy": "Always", "resources": limits}
    template = {
        "volumes": [{"name": "signer", "emptyDir": {}}],
        "volumeMounts": [mount],
        "initContainers": [{**shim, "volumeMounts": [mount]}],
    }
    world = World(ledger={"signingKeySecretRef": {"name": "mine"}}, worker={"podTemplate": template})
    world.secrets["mine"] = secret("mine", signing_key=f"SIGNER {public} /run/signer/socket\n")
    assert world.plan().secrets_to_generate == ("demo-admin",)
    world.settle()
    assert world.condition(ConditionType.CONFIG_VALID)[:2] == ("True", "Valid")
    assert world.plan().status.ledger == {"verifyingKey": public}
    pod = world.child("StatefulSet", "demo-worker")["spec"]["template"]["spec"]
    [beside] = pod["initContainers"]
    assert mount in beside["volumeMounts"] and mount in pod["containers"][0]["volumeMounts"]
    assert beside["restartPolicy"] == "Always" and "runAsUser" not in beside["securityContext"]
    mounted = [
        source["secret"]["name"]
        for volume in pod["volumes"]
        if "projected" in volume
        for source in volume["projected"]["sources"]
        if "secret" in source
    ]
    assert "mine" in mounted


def test_the_auditors_key_may_be_held_by_another_process_but_not_be_the_ledgers() -> None:
    for seed, reason in ((4, None), (3, "SecretInvalid")):
        world = World(
            ledger={"signingKeySecretRef": {"name": "mine"}},
            auditor={"signingKeySecretRef": {"name": "audit"}},
        )
        ledger = SigningKey("proofgate.dev/team/demo", bytes([3] * 32))
        audit = SigningKey("audit.example.com/team/demo", bytes([seed] * 32))
        world.secrets["mine"] = secret("mine", signing_key=f"SIGNER {ledger.verifying_text} /run/s/a")
        world.secrets["audit"] = secret("audit", signing_key=f"SIGNER {audit.verifying_text} /run/s/b")
        told = world.condition(ConditionType.AUDITED)
        assert (told[1] == "SecretInvalid") is (reason is not None), told


def test_a_brought_key_of_another_ledger_is_a_condition_that_names_both() -> None:
    world = World(ledger={"signingKeySecretRef": {"name": "mine"}})
    key = SigningKey("proofgate.dev/team/other", bytes([3] * 32))
    world.secrets["mine"] = secret("mine", signing_key=key.signing_text)
    _, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert reason == "SecretInvalid"
    assert "proofgate.dev/team/other" in message and "proofgate.dev/team/demo" in message


def test_a_brought_key_that_is_none_is_a_condition_and_not_quoted() -> None:
    world = World(ledger={"signingKeySecretRef": {"name": "mine"}})
    world.secrets["mine"] = secret("mine", signing_key="hunter2-hunter2")
    _, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert reason == "SecretInvalid" and "signing-key is not a signing key" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("sk upstream", "api-key is not one line of printable ASCII without spaces"),
        ("sk-upstream\nX-Injected: 1", "api-key is not one line of printable ASCII without spaces"),
        ("sk-upstream-\x07", "api-key is not one line of printable ASCII without spaces"),
        (" \n", "api-key is not one line of printable ASCII without spaces"),
        ("sk-upstream-line-end\n", None),
    ],
)
def test_a_provider_key_that_no_header_can_hold_is_a_condition(key: str, complaint: str | None) -> None:
    world = World().settle()
    world.secrets["openai"] = secret("openai", api_key=key)
    status, reason, message = world.condition(ConditionType.RESOLVED_REFS)
    if complaint is None:
        assert status == "True"
    else:
        assert (status, reason) == ("False", "SecretInvalid")
        named = "Secret openai, named by spec.providers[openai].auth.apiKeySecretRef: "
        assert message.startswith(named + complaint)
        assert not key.strip() or key.strip() not in message


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"providers": [{**PROVIDER, "baseURL": "https://10.0.0/v1"}]}, "spec.providers[openai].baseURL"),
        ({"providers": [{**PROVIDER, "baseURL": "http://[1::2::3]"}]}, "spec.providers[openai].baseURL"),
        (
            {"providers": [{**PROVIDER, "baseURL": f"http://{'a.' * 127}de"}]},
            "spec.providers[openai].baseURL",
        ),
        (
            {"jwt": {"issuers": [{"issuer": "me", "audiences": ["x"], "jwksURL": "https://1.2.3/jwks"}]}},
            "spec.jwt.issuers[me].jwksURL",
        ),
        ({"cors": {"allowedOrigins": ["http://[::1::]"]}}, "spec.cors.allowedOrigins[http://[::1::]]"),
        ({"policies": [{"name": "a", "url": "https://1.2.3/v1"}]}, "spec.policies[a].url"),
        (
            {"policy": {"actions": [{"rules": ["no-such-rule"], "action": "Ignore"}]}},
            "spec.policy.actions[0].rules",
        ),
    ],
)
def test_what_no_pattern_tells_is_a_condition_that_names_the_field(
    changes: dict[str, Any], place: str
) -> None:
    world = World(**changes).settle()
    status, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert status == "False" and reason in ("SpecInvalid", "PolicyInvalid")
    assert message.startswith(f"{place}: ")
    assert world.children.get(Ref("StatefulSet", "demo-worker")) is None


def test_a_deleted_child_is_written_again_and_nothing_else() -> None:
    world = World().settle()
    world.children[Ref("Service", "demo")] = None
    assert [ref_of(written) for written in world.plan().manifests_to_apply] == [Ref("Service", "demo")]


def test_a_changed_child_is_set_right() -> None:
    world = World().settle()
    world.child("Deployment", "demo-haproxy")["spec"]["replicas"] = 7
    assert [ref_of(written) for written in world.plan().manifests_to_apply] == [
        Ref("Deployment", "demo-haproxy")
    ]


def test_a_child_on_its_way_out_is_left_alone_until_it_is_gone() -> None:
    world = World().settle()
    world.child("Service", "demo")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not world.plan().has_writes
    assert world.condition(ConditionType.PROGRESSING)[1] == "WaitingForDeletion"


def test_what_belongs_to_somebody_else_is_not_taken() -> None:
    world = World()
    world.children[Ref("Service", "demo")] = {
        "kind": "Service",
        "metadata": {"name": "demo", "namespace": "team"},
    }
    plan = world.plan()
    assert not plan.has_writes
    status, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert (status, reason) == ("False", "NameTaken")
    assert message.startswith("Service demo: exists and does not belong to this gateway")


def test_a_retained_volume_is_taken_up_by_a_gateway_of_the_same_name() -> None:
    world = World().settle()
    claim = world.child("PersistentVolumeClaim", "demo-wal")
    successor = World()
    successor.manifest["metadata"]["uid"] = "another"
    successor.children[Ref("PersistentVolumeClaim", "demo-wal")] = claim
    successor.children[Ref("Secret", "demo-ledger")] = world.child("Secret", "demo-ledger")
    assert "PersistentVolumeClaim" not in kinds(successor.plan().manifests_to_apply)
    assert successor.condition(ConditionType.CONFIG_VALID)[0] == "True"


def test_a_signing_key_that_goes_with_its_gateway_is_waited_out() -> None:
    world = World(ledger={"volume": {"retainPolicy": "Delete"}}).settle()
    assert world.child("Secret", "demo-ledger")["metadata"]["ownerReferences"][0]["uid"] == UID
    world.manifest["metadata"]["uid"] = "another"
    plan = world.plan()
    assert plan.secrets_to_generate == () and "StatefulSet" not in kinds(plan.manifests_to_apply)
    assert world.condition(ConditionType.PROGRESSING)[1] == "WaitingForDeletion"
    for ref in (("Secret", "demo-ledger"), ("Secret", "demo-admin"), ("PersistentVolumeClaim", "demo-wal")):
        world.children[Ref(*ref)] = None
    assert world.plan().secrets_to_generate == ("demo-admin", "demo-ledger")


def test_a_signing_key_lives_as_long_as_the_claim() -> None:
    """After `kubectl delete -f` and `apply -f`, the same key signs the same logs."""
    world = World().settle()
    key = world.child("Secret", "demo-ledger")
    assert "ownerReferences" not in key["metadata"]
    successor = World()
    successor.manifest["metadata"]["uid"] = "another"
    successor.children = {
        ref: live
        for ref, live in world.children.items()
        if live and not live["metadata"].get("ownerReferences")
    }
    successor.settle()
    assert successor.child("Secret", "demo-ledger")["data"] == key["data"]
    assert successor.condition(ConditionType.CONFIG_VALID)[0] == "True"
    assert successor.children[Ref("StatefulSet", "demo-worker")]


@pytest.mark.parametrize("evidence", ["claim", "checkpoints", "status"])
def test_a_lost_signing_key_is_told_and_never_made_anew(evidence: str) -> None:
    world = World(ledger={"volume": {"retainPolicy": "Delete"}}).settle()
    world.children[Ref("Secret", "demo-ledger")] = None
    if evidence != "claim":
        world.children[Ref("PersistentVolumeClaim", "demo-wal")] = None
    if evidence == "checkpoints":
        found = gateway_secrets.ledger_secret_base(world.gateway, owned=True)["metadata"] | {
            "name": "demo-checkpoints"
        }
        world.children[Ref("ConfigMap", "demo-checkpoints")] = {"metadata": found, "data": {"0": "a note"}}
    if evidence == "status":
        world.ledger = {"verifyingKey": "team/demo+aabbccdd+AQ=="}
    before = copy.deepcopy(world.child("StatefulSet", "demo-worker"))
    plan = world.plan()
    assert plan.secrets_to_generate == ()
    status, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert (status, reason) == ("False", "SigningKeyLost")
    assert "Secret demo-ledger is missing" in message and "backup" in message
    world.manifest["spec"]["replicas"] = 3
    assert world.plan().rescale_to == 3, "all other changes continue"
    assert world.child("StatefulSet", "demo-worker") == before
    assert plan.status.ledger == world.ledger


def test_for_a_claim_that_somebody_brought_no_key_is_made() -> None:
    world = World(ledger={"volume": {"existingClaim": "restored"}})
    plan = world.plan()
    assert plan.secrets_to_generate == ("demo-admin",)
    world.carry_out(plan)
    status, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert (status, reason) == ("False", "SigningKeyRequired")
    assert "PersistentVolumeClaim restored" in message and "signingKeySecretRef" in message
    assert world.settle().children.get(Ref("StatefulSet", "demo-worker")) is None
    # The operator's own Secret serves instead of a reference.
    key = SigningKey("proofgate.dev/team/demo", bytes(32))
    world.children[Ref("Secret", "demo-ledger")] = gateway_secrets.ledger_secret(
        world.gateway, key.signing_text, key.verifying_text
    )
    assert world.condition(ConditionType.CONFIG_VALID)[0] == "True"
    assert world.settle().child("StatefulSet", "demo-worker")


def test_former_verifying_keys_are_kept() -> None:
    world = World(ledger={"signingKeySecretRef": {"name": "mine"}})
    keys = [SigningKey("proofgate.dev/team/demo", bytes([number] * 32)) for number in range(3)]
    for key in keys:
        world.secrets["mine"] = secret("mine", signing_key=key.signing_text)
        world.settle()
        world.ledger = world.plan().status.ledger
    assert world.ledger == {
        "verifyingKey": keys[2].verifying_text,
        "formerVerifyingKeys": [key.verifying_text for key in keys[:2]],
    }
    world.secrets["mine"] = None
    assert world.plan().status.ledger == world.ledger


def test_a_claim_is_made_only_after_the_key() -> None:
    plan = World().plan()
    assert "demo-ledger" in plan.secrets_to_generate and "PersistentVolumeClaim" not in kinds(
        plan.manifests_to_apply
    )


def test_a_paused_gateway_changes_nothing_and_says_so() -> None:
    world = World().settle()
    world.children[Ref("Service", "demo")] = None
    world.manifest["spec"]["paused"] = True
    assert not world.plan().has_writes
    assert world.condition(ConditionType.PROGRESSING)[:2] == ("False", "Paused")


def test_the_second_haproxys_budget_goes_with_it() -> None:
    world = World().settle()
    world.manifest["spec"]["loadBalancer"] = {"replicas": 1}
    assert world.plan().objects_to_delete == (Ref("PodDisruptionBudget", "demo-haproxy"),)
    world.settle()
    assert world.children[Ref("PodDisruptionBudget", "demo-haproxy")] is None


def test_a_retain_policy_that_becomes_retain_takes_the_owner_off_the_claim() -> None:
    world = World(ledger={"volume": {"retainPolicy": "Delete"}}).settle()
    assert world.child("PersistentVolumeClaim", "demo-wal")["metadata"]["ownerReferences"][0]["uid"] == UID
    world.manifest["spec"]["ledger"]["volume"]["retainPolicy"] = "Retain"
    written = world.plan().manifests_to_apply
    assert kinds(written) == {"PersistentVolumeClaim", "Secret"}, "the claim and its ledger's key"
    assert all("ownerReferences" not in found["metadata"] for found in written)


def test_every_condition_is_there_from_the_first_reconcile() -> None:
    found = {condition.type for condition in World().plan().status.conditions}
    assert found == set(ConditionType) - ABNORMAL_CONDITIONS - {ConditionType.AUDITED, ConditionType.KEPT}
    pinned = World().plan().status.condition(ConditionType.CPU_PINNED)
    assert pinned.status is ConditionStatus.UNKNOWN


def test_why_a_worker_is_missing_is_told() -> None:
    world = World().settle()
    world.pods = [
        {
            **pod(0),
            "status": {"phase": "Failed", "reason": "SMTAlignmentError", "message": "SMT Alignment Error"},
        },
        {
            **pod(1),
            "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
        },
    ]
    assert world.condition(ConditionType.WORKERS_AVAILABLE)[2] == (
        "0 of 2 workers ready: demo-worker-0 failed: SMTAlignmentError: SMT Alignment Error;"
        " demo-worker-1 waits: ImagePullBackOff"
    )


def test_fields_added_by_others_are_no_drift() -> None:
    wanted = with_digest({"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}})
    live = copy.deepcopy(wanted)
    live["spec"]["ports"][0]["protocol"] = "TCP"
    live["status"] = {}
    assert contains(live, wanted)
    live["spec"]["ports"].append({"port": 81})
    assert not contains(live, wanted)


def test_a_field_that_is_no_longer_wanted_is_drift() -> None:
    before = with_digest({"metadata": {"name": "x"}, "data": {"a": "1", "b": "2"}})
    after = with_digest({"metadata": {"name": "x"}, "data": {"a": "1"}})
    assert not contains(before, after)
