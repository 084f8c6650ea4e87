"""The auditor of a gateway: its objects, its start, and the handling of its findings."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from proofgate_operator.api.conditions import ABNORMAL_CONDITIONS, ConditionType, merge_conditions
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, checkpoint, networkpolicy
from proofgate_operator.build.auditor import held_aggregate_entry
from proofgate_operator.build.checkpoint import InvalidCheckpoint
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.build.naming import Defaults
from proofgate_operator.events import reportable_transitions
from proofgate_operator.plan.audit_reports import UNREACHABLE_AUDITOR, AuditReport, Finding
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of
from tests.auditing import (
    AUDITOR,
    KEY,
    ORIGIN,
    ROLLBACK,
    STALL,
    key_secret,
    note,
    report,
)
from tests.gateways import DEFAULTS, manifest, secret
from tests.world import World

Manifest = dict[str, Any]
HELD = Ref("ConfigMap", "demo-auditor")
POD: Manifest = {
    "metadata": {"name": "demo-auditor-0", "uid": "u"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


class Audited:
    """A settled gateway with an auditor, and the operator's view of both."""

    def __init__(self, key: SigningKey | Manifest | None = KEY, **changes: Any) -> None:
        self.world = World(**{"auditor": AUDITOR, **changes})
        self.world.secrets["auditor-key"] = key_secret(key) if isinstance(key, SigningKey) else key
        self.world.settle()
        self.now = 1_800_000_000.0
        self.conditions: tuple[Manifest, ...] = ()
        self.status: Manifest = {}
        self.pod: Manifest | None = POD

    def plan(self, told: AuditReport | None = None) -> ReconcilePlan:
        seen = ObservedState(
            self.world.children,
            self.world.secrets,
            previous_conditions=self.conditions,
            now=self.now,
            auditor_pod=self.pod,
            audit_report=told,
            auditor_status=self.status,
        )
        return decide(self.world.gateway, seen, DEFAULTS)

    def hear(self, told: AuditReport | None = None) -> ReconcilePlan:
        """Reconcile a minute after the last reconcile; keep the writes and the status."""
        plan = self.plan(told)
        if plan.newer_aggregate is not None:
            metadata = {**plan.newer_aggregate["metadata"], "resourceVersion": "1"}
            self.world.children[HELD] = {**plan.newer_aggregate, "metadata": metadata}
        self.conditions = tuple(
            merge_conditions(self.conditions, plan.status.conditions, 1, "2026-11-25T12:00:00Z")
        )
        self.status = plan.status.auditor
        self.now += 61
        return plan

    def condition(self, told: AuditReport | None = None) -> tuple[str, str, str]:
        found = self.plan(told).status.condition(ConditionType.AUDITED)
        return found.status.value, found.reason, found.message

    @property
    def held(self) -> dict[str, str]:
        live = self.world.children.get(HELD)
        return dict(live["data"]) if live else {}


def made(world: World) -> set[Ref]:
    return {ref for ref, live in world.children.items() if live and "auditor" in ref.name}


WHOLE = {
    Ref(kind, "demo-auditor")
    for kind in ("ServiceAccount", "NetworkPolicy", "Service", "PersistentVolumeClaim", "StatefulSet")
}


def test_a_gateway_without_an_auditor_has_nothing_of_one() -> None:
    world = World().settle()
    assert made(world) == set()
    assert ConditionType.AUDITED not in {found.type for found in world.plan().status.conditions}
    assert world.plan().status.auditor == {}
    with_one = Audited().plan().status.conditions
    assert {found.type for found in with_one} == set(ConditionType) - ABNORMAL_CONDITIONS - {
        ConditionType.KEPT
    }


def test_an_auditor_changes_nothing_of_the_gateway_itself() -> None:
    without, audited = World().settle().children, Audited().world.children
    assert {ref: live for ref, live in audited.items() if ref not in WHOLE} == without
    assert made(Audited().world) == WHOLE


def test_its_pod_reads_the_ledger_only_and_has_neither_the_workers_key_nor_a_token() -> None:
    template = Audited().world.child("StatefulSet", "demo-auditor")["spec"]["template"]["spec"]
    [container] = template["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["ledger"]["readOnly"] is True
    assert [name for name, mount in mounts.items() if not mount.get("readOnly")] == ["state", "tmp"]
    secrets = [volume["secret"]["secretName"] for volume in template["volumes"] if "secret" in volume]
    assert secrets == ["auditor-key"] and template["automountServiceAccountToken"] is False
    resources = container["resources"]
    assert resources["requests"] == resources["limits"] == {"cpu": "500m", "memory": "256Mi"}
    text = str(Audited().world.child("StatefulSet", "demo-auditor"))
    assert KEY.signing_text.split("+", 4)[4] not in text


def test_two_auditors_never_write_one_state() -> None:
    found = Audited().world.child("StatefulSet", "demo-auditor")["spec"]
    assert found["replicas"] == 1
    # This setting also replaces a pod that never became ready (kubernetes#67250).
    assert (found["podManagementPolicy"], found["updateStrategy"]) == ("Parallel", {"type": "RollingUpdate"})
    once = {"storage": {"accessMode": "ReadWriteOncePod"}, **AUDITOR}
    claim = Audited(auditor=once).world.child("PersistentVolumeClaim", "demo-auditor")
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_its_port_is_for_monitoring_the_operator_and_whom_the_spec_names_and_it_calls_nobody() -> None:
    peer = {"namespaceSelector": {"matchLabels": {"witness": "true"}}}
    of = Gateway.from_manifest(manifest(auditor={**AUDITOR, "allowFrom": [peer]}))
    assert of.enabled_auditor is not None
    defaults = Defaults("w", "h", operator_namespace="ops")
    policy = networkpolicy.auditor_policy(of, of.enabled_auditor, defaults)["spec"]
    [rule] = policy["ingress"]
    assert rule["ports"] == [{"port": auditor.PORT, "protocol": "TCP"}]
    assert len(rule["from"]) == 3 and peer in rule["from"]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and "egress" not in policy


@pytest.mark.parametrize(
    ("policy", "owned"), [("Retain", False), ("Delete", True)], ids=["retained", "deleted with the gateway"]
)
def test_its_state_and_what_is_held_of_it_stay_as_long_as_the_evidence(policy: str, owned: bool) -> None:
    audited = Audited(ledger={"volume": {"retainPolicy": policy}})
    held = audited.plan(report()).newer_aggregate
    assert held is not None
    for found in (audited.world.child("PersistentVolumeClaim", "demo-auditor"), held):
        assert bool(found["metadata"].get("ownerReferences")) is owned


def test_a_claim_that_somebody_brought_is_mounted_and_not_made() -> None:
    world = Audited(auditor={**AUDITOR, "storage": {"existingClaim": "restored"}}).world
    assert Ref("PersistentVolumeClaim", "demo-auditor") not in made(world)
    volumes = world.child("StatefulSet", "demo-auditor")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "state", "persistentVolumeClaim": {"claimName": "restored"}} in volumes


@pytest.mark.parametrize("gone", [{"enabled": False, **AUDITOR}, None], ids=["disabled", "left out"])
def test_an_auditor_that_is_not_wanted_any_more_is_stopped_and_what_it_knew_stays(
    gone: Manifest | None,
) -> None:
    audited = Audited()
    before = copy.deepcopy(audited.world.children)
    audited.hear(report())
    if gone is None:
        del audited.world.manifest["spec"]["auditor"]
    else:
        audited.world.manifest["spec"]["auditor"] = gone
    audited.world.settle()
    assert audited.world.child("StatefulSet", "demo-auditor")["spec"]["replicas"] == 0
    assert not audited.plan().has_writes and audited.plan().status.auditor == {}
    assert made(audited.world) == {*WHOLE, HELD}
    audited.world.manifest["spec"]["ledger"]["volume"]["retainPolicy"] = "Delete"
    audited.world.settle()
    owners = audited.world.child("PersistentVolumeClaim", "demo-auditor")["metadata"]["ownerReferences"]
    assert owners[0]["name"] == "demo", "the claim still follows the retain policy"
    held = audited.plan().newer_aggregate
    assert held and held["metadata"]["ownerReferences"] and held["data"] == audited.held
    audited.world.manifest["spec"] |= {"auditor": AUDITOR}
    audited.world.manifest["spec"]["ledger"]["volume"]["retainPolicy"] = "Retain"
    audited.world.settle()
    assert {ref: audited.world.children[ref] for ref in WHOLE} == {ref: before[ref] for ref in WHOLE}


LEDGER = "proofgate.dev/team/demo"


@pytest.mark.parametrize(
    ("key", "reason", "words"),
    [
        (
            None,
            "SecretMissing",
            "Secret auditor-key, named by spec.auditor.signingKeySecretRef, does not exist",
        ),
        (secret("auditor-key", other="x"), "SecretInvalid", "has no text under signing-key"),
        (secret("auditor-key", signing_key="hunter2"), "SecretInvalid", "is not a signing key"),
        (SigningKey(LEDGER, b"\x07" * 32), "SecretInvalid", "neither may be a path below the other"),
        (
            SigningKey(f"{LEDGER}/audit", b"\x07" * 32),
            "SecretInvalid",
            "neither may be a path below the other",
        ),
        (
            SigningKey("proofgate.dev/team", b"\x07" * 32),
            "SecretInvalid",
            "neither may be a path below the other",
        ),
        (SigningKey(ORIGIN, bytes(32)), "SecretInvalid", "is the ledger's own key"),
    ],
    ids=["missing", "no entry", "no key", "the ledger's name", "below it", "above it", "the ledger's key"],
)
def test_a_key_that_cannot_be_an_auditors_is_told_and_costs_the_auditor_alone(
    key: Manifest | SigningKey | None, reason: str, words: str
) -> None:
    audited = Audited(key)
    assert Ref("StatefulSet", "demo-auditor") not in made(audited.world)
    assert Ref("StatefulSet", "demo-worker") in audited.world.children
    status, told, message = audited.condition()
    assert (status, told) == ("False", reason) and words in message and "hunter2" not in message
    faults = audited.plan().status.faults
    assert [fault["field"] for fault in faults] == ["spec.auditor"]
    assert audited.plan().status.condition(ConditionType.CONFIG_VALID).is_true


def test_its_pod_runs_where_the_spec_lets_it_and_a_bad_addition_costs_the_auditor_alone() -> None:
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    world = Audited(auditor={**AUDITOR, "podTemplate": {"tolerations": tolerations}}).world
    pod = world.child("StatefulSet", "demo-auditor")["spec"]["template"]["spec"]
    assert pod["tolerations"] == tolerations
    mounts = [{"name": "x", "mountPath": "/var/lib/proofgate/0"}]
    audited = Audited(auditor={**AUDITOR, "podTemplate": {"volumeMounts": mounts}})
    assert Ref("StatefulSet", "demo-auditor") not in made(audited.world)
    status, reason, message = audited.condition()
    assert (status, reason) == ("False", "PodTemplateInvalid")
    assert "spec.auditor.podTemplate.volumeMounts[/var/lib/proofgate/0]" in message
    assert audited.plan().status.condition(ConditionType.CONFIG_VALID).is_true


def test_another_key_replaces_the_auditor_and_a_broken_one_leaves_it_as_it_is() -> None:
    audited = Audited()
    before = audited.world.child("StatefulSet", "demo-auditor")
    audited.world.secrets["auditor-key"] = secret("auditor-key", signing_key="broken")
    audited.world.settle()
    assert audited.world.child("StatefulSet", "demo-auditor") == before
    audited.world.secrets["auditor-key"] = key_secret(SigningKey("audit.example.com/second", b"\x08" * 32))
    audited.world.settle()
    assert (
        audited.world.child("StatefulSet", "demo-auditor")["spec"]["template"] != before["spec"]["template"]
    )


def test_the_newest_checkpoint_is_held_and_never_an_older_or_another_one() -> None:
    audited = Audited()
    entry = held_aggregate_entry(ORIGIN)
    audited.hear(report(0))
    assert audited.held == {entry: note(0)}, "the checkpoint of an empty log is held too"
    audited.hear(report(5))
    assert audited.held == {entry: note(5)}
    foreign = SigningKey(ORIGIN, b"\x09" * 32)
    for told in (note(4), note(5, b"\x01" * 32), note(9, key=foreign), note(9, origin=f"{ORIGIN}/x"), "none"):
        audited.hear(report(checkpoint=told))
        assert audited.held == {entry: note(5)}, told
    audited.hear(UNREACHABLE_AUDITOR)
    assert audited.held == {entry: note(5)}


def test_a_log_of_another_name_is_held_beside_it() -> None:
    audited = Audited()
    audited.hear(report(5))
    second = SigningKey("audit.example.com/second", b"\x08" * 32)
    audited.world.secrets["auditor-key"] = key_secret(second)
    audited.world.settle()
    audited.hear(report(checkpoint=note(0, key=second)))
    assert audited.held == {
        held_aggregate_entry(ORIGIN): note(5),
        held_aggregate_entry(second.name): note(0, key=second),
    }


def test_what_is_about_to_go_with_a_deleted_gateway_is_not_kept_for_the_next_one() -> None:
    audited = Audited(ledger={"volume": {"retainPolicy": "Delete"}})
    audited.hear(report(5))
    live = audited.world.child(HELD.kind, HELD.name)
    live["metadata"]["ownerReferences"][0]["uid"] = "of-the-gateway-before"
    assert audited.plan(report(6)).newer_aggregate is None


def test_it_is_written_once_a_minute_but_the_first_at_once() -> None:
    audited = Audited()
    audited.hear(report(1))
    audited.now -= 60
    assert audited.plan(report(2)).newer_aggregate is None
    audited.now += 60
    found = audited.plan(report(2)).newer_aggregate
    assert found is not None and found["metadata"]["resourceVersion"] == "1"
    assert not audited.plan(report(2)).has_writes


@pytest.mark.parametrize(
    ("told", "expected", "words"),
    [
        (report(3), ("True", "NothingFound"), "3 tree heads"),
        (
            report(3, ROLLBACK),
            ("False", "LedgerDiverged"),
            "rollback (1). rollback: proofgate.dev/team/demo/0/X",
        ),
        (report(3, STALL), ("False", "LedgerIncomplete"), "stalled (1)"),
        (report(3, ROLLBACK, replace(STALL, verdict="invalid")), ("False", "LedgerInvalid"), "stalled (1)"),
        (report(3, last_poll_at=0.0), ("Unknown", "AuditorStarting"), "first poll"),
        (report(3, stale=True), ("Unknown", "AuditorStalled"), "more than a minute"),
        (report(3, lag=301), ("Unknown", "AuditorBehind"), "301 s"),
        (
            report(checkpoint=note(3, key=SigningKey(ORIGIN, bytes(32)))),
            ("Unknown", "AuditorKeyDiffers"),
            ORIGIN,
        ),
        (UNREACHABLE_AUDITOR, ("Unknown", "AuditorUnreachable"), "does not answer"),
        (None, ("Unknown", "AuditorUnreachable"), "does not answer"),
    ],
)
def test_the_condition_says_what_the_auditors_word_is_worth(
    told: AuditReport | None, expected: tuple[str, str], words: str
) -> None:
    status, reason, message = Audited().condition(told)
    assert (status, reason) == expected and words in message


def test_what_contradicts_what_is_held_is_said_before_anything_else() -> None:
    audited = Audited()
    audited.hear(report(5))
    assert audited.condition(report(4))[:2] == ("False", "AuditorStateSetBack")
    assert audited.condition(report(checkpoint=note(5, b"\x01" * 32)))[:2] == ("False", "AuditorForked")
    assert audited.condition(report(5))[:2] == ("True", "NothingFound")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("auditor_state_lost", "AuditorStateLost"),
        ("auditor_state_set_back", "AuditorStateSetBack"),
        ("auditor_state_corrupt", "AuditorStateCorrupt"),
        ("auditor_held_refused", "AuditorKeyReplaced"),
        ("auditor_state_io", "AuditorStateUnusable"),
    ],
)
def test_why_an_auditor_does_not_start_is_told_in_its_own_words(code: str, reason: str) -> None:
    audited = Audited()
    ended = {"terminated": {"message": f"something earlier\nproofgate: it cannot be [{code}]\n"}}
    audited.pod = {**POD, "status": {"containerStatuses": [{"state": {"waiting": {}}, "lastState": ended}]}}
    assert audited.condition(UNREACHABLE_AUDITOR) == ("False", reason, f"it cannot be [{code}]")


def test_what_was_found_stays_said_while_the_auditor_is_silent_and_so_does_its_status() -> None:
    audited = Audited()
    audited.hear(report(3, ROLLBACK))
    before = audited.status
    assert before == {
        "origin": ORIGIN,
        "verifyingKey": KEY.verifying_text,
        "size": 3,
        "lagSeconds": 0,
        "findings": [{"code": "rollback", "count": 1}],
        "newestHeadTime": "2027-01-15T08:00:00Z",
        "lastPollTime": "2027-01-15T08:00:00Z",
    }
    audited.hear(UNREACHABLE_AUDITOR)
    audited.pod = None
    audited.hear(None)
    assert audited.condition()[:2] == ("False", "LedgerDiverged") and audited.status == before


def test_evidence_is_an_event_of_its_own_whatever_was_the_case_before() -> None:
    audited = Audited()
    audited.hear(report(3, STALL))
    news = reportable_transitions(audited.conditions, audited.plan(report(3, ROLLBACK)).status.conditions)
    assert [found.reason for found in news] == ["LedgerDiverged"]
    audited.hear(report(3, ROLLBACK))
    assert (
        reportable_transitions(audited.conditions, audited.plan(report(3, ROLLBACK)).status.conditions) == []
    )


def test_ready_and_available_do_not_depend_on_the_auditor() -> None:
    audited = Audited()
    for told in (report(3), report(3, ROLLBACK), UNREACHABLE_AUDITOR):
        conditions = audited.plan(told).status
        assert conditions.condition(ConditionType.READY) == audited.plan(report(3)).status.condition(
            ConditionType.READY
        )


def test_a_checkpoint_of_the_log_of_heads_bears_the_keys_own_name() -> None:
    assert checkpoint.read_aggregate_checkpoint(note(0), KEY.verifying_text).size == 0
    with pytest.raises(InvalidCheckpoint, match="origin"):
        checkpoint.read_aggregate_checkpoint(note(1, origin=f"{ORIGIN}/below"), KEY.verifying_text)
    with pytest.raises(InvalidCheckpoint, match="size"):
        checkpoint.read_aggregate_checkpoint(note(-1), KEY.verifying_text)


def test_the_manifests_of_an_auditor_are_settled_after_one_reconcile() -> None:
    audited = Audited()
    assert not audited.plan(report()).has_writes
    assert {ref_of(found) for found in audited.plan(report()).manifests_to_apply} == set()


FOREIGN: Manifest = {"metadata": {"name": "demo-auditor", "namespace": "team", "uid": "foreign"}, "spec": {}}


@pytest.mark.parametrize("kind", sorted(ref.kind for ref in {*WHOLE, HELD}))
def test_a_foreign_object_of_the_auditors_name_costs_the_auditor_alone(kind: str) -> None:
    taken = Ref(kind, "demo-auditor")
    world = World(auditor=AUDITOR)
    world.secrets["auditor-key"] = key_secret()
    world.children[taken] = copy.deepcopy(FOREIGN)
    world.settle()
    assert world.children[taken] == FOREIGN, "the foreign object stays unchanged"
    assert Ref("StatefulSet", "demo-worker") in world.children
    assert Ref("Deployment", "demo-haproxy") in world.children
    if kind != "StatefulSet":
        assert Ref("StatefulSet", "demo-auditor") not in world.children, (
            "the auditor would mount or use a foreign object"
        )
    status, reason, message = world.condition(ConditionType.AUDITED)
    assert (status, reason) == ("False", "NameTaken") and message.startswith(f"{kind} demo-auditor: exists")
    assert world.condition(ConditionType.CONFIG_VALID)[0] == "True"
    assert world.condition(ConditionType.PROGRESSING)[1] != "NameTaken"


def test_an_auditor_that_runs_goes_on_as_it_is_while_another_object_bears_its_name() -> None:
    audited = Audited()
    before = audited.world.child("StatefulSet", "demo-auditor")
    audited.world.children[Ref("Service", "demo-auditor")] = copy.deepcopy(FOREIGN)
    audited.world.manifest["spec"]["auditor"] = {**AUDITOR, "beatSeconds": 60}
    audited.world.settle()
    assert audited.world.child("StatefulSet", "demo-auditor") == before
    assert audited.condition(report(3))[:2] == ("False", "NameTaken")


def test_that_the_ledger_cannot_be_read_is_named_by_the_condition() -> None:
    blind = Finding("unreadable", "proofgate.dev/team/demo", "incomplete", 1, "permission denied")
    status, reason, message = Audited().condition(report(3, blind))
    assert (status, reason) == ("False", "LedgerIncomplete")
    assert "unreadable: proofgate.dev/team/demo: permission denied" in message
