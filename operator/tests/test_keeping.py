"""The retention job of a gateway: its objects, the conditions for a run, and the status of its runs."""

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType, merge_conditions
from proofgate_operator.build import retention
from proofgate_operator.build.auditor import held_aggregate_entry
from proofgate_operator.build.ledger_key import ExternalSigningKey, LedgerKey, SigningKey
from proofgate_operator.build.naming import KEEPING_PLAN_ANNOTATION
from proofgate_operator.events import reportable_transitions
from proofgate_operator.plan import retention_runs
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.observed_state import ObservedState, Ref, is_retention_run, ref_of
from tests.auditing import AUDITOR
from tests.auditing import KEY as AUDITORS_KEY
from tests.auditing import key_secret as auditors_secret
from tests.gateways import DEFAULTS, NAMESPACE, gateway
from tests.retention import KEEPING, KEY, key_secret, report, run, said
from tests.world import World

Manifest = dict[str, Any]
JOB = Ref("CronJob", "demo-retention")
#: 2 December 2026, at noon.
NOON = 1_796_212_800.0
WHOLE = {
    Ref(kind, "demo-retention")
    for kind in ("ServiceAccount", "NetworkPolicy", "PersistentVolumeClaim", "CronJob")
}


def test_the_retention_job_is_of_the_operators_release_whatever_image_workers_are_pinned_to() -> None:
    world = Kept(worker={"image": "registry.example/worker:before"}).world
    pod = world.child("CronJob", "demo-retention")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert [container["image"] for container in pod["containers"]] == [DEFAULTS.worker_image]


class Kept:
    """A settled gateway with a retention job, and the operator's view of both."""

    def __init__(self, key: Manifest | None = None, **changes: Any) -> None:
        self.world = World(**{"keeping": KEEPING, **changes})
        self.world.secrets["retention-key"] = key or key_secret()
        self.world.secrets["auditor-key"] = auditors_secret()
        self.world.settle()
        self.pods: tuple[Manifest, ...] = ()
        self.auditor_pod: Manifest | None = None
        self.status: Manifest = {}
        self.now = NOON

    def plan(self) -> ReconcilePlan:
        seen = ObservedState(
            self.world.children,
            self.world.secrets,
            now=self.now,
            auditor_pod=self.auditor_pod,
            retention_pods=self.pods,
            keeping_status=self.status,
        )
        return decide(self.world.gateway, seen, DEFAULTS)

    def hear(self, *pods: Manifest) -> ReconcilePlan:
        """Reconcile until the reports of these runs are written."""
        self.pods = pods
        for _ in range(3):
            plan = self.plan()
            self.world.carry_out(plan)
            self.status = plan.status.keeping
        return plan

    def condition(self, *pods: Manifest) -> tuple[str, str, str]:
        found = self.hear(*pods).status.condition(ConditionType.KEPT)
        return found.status.value, found.reason, found.message

    @property
    def carried(self) -> Manifest:
        """The plan for the next run."""
        template = self.world.child("CronJob", "demo-retention")["spec"]["jobTemplate"]["spec"]["template"]
        found: Manifest = json.loads(template["metadata"]["annotations"][KEEPING_PLAN_ANNOTATION])
        return found


def digest() -> str:
    wanted = gateway(keeping=KEEPING).spec.keeping
    assert wanted is not None
    return retention.digest(wanted)


def made(world: World) -> set[Ref]:
    return {ref for ref, live in world.children.items() if live and "retention" in ref.name}


def test_a_retention_job_comes_beside_everything_else_and_nothing_of_it_is_there_without_one() -> None:
    without = World().settle()
    assert made(without) == set()
    assert ConditionType.KEPT not in {found.type for found in without.plan().status.conditions}
    assert without.plan().status.keeping == {}
    with_one = Kept().world
    assert made(with_one) == WHOLE
    assert {ref: live for ref, live in with_one.children.items() if ref not in WHOLE} == without.children


def test_its_pod_writes_the_ledger_and_its_state_and_has_no_token_and_no_workers_key() -> None:
    job = Kept().world.child("CronJob", "demo-retention")["spec"]
    assert (job["concurrencyPolicy"], job["schedule"], job["timeZone"]) == ("Forbid", "30 2 * * *", "Etc/UTC")
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    writable = [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["ledger", "state", "tmp"]
    secrets = [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume]
    assert secrets == ["retention-key"]
    assert pod["automountServiceAccountToken"] is False
    assert KEY.signing_text.split("+", 4)[4] not in str(job)
    policy = Kept().world.child("NetworkPolicy", "demo-retention")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & policy.keys()


def test_the_first_run_begins_and_later_ones_have_to_know_as_many_holds_as_were_known() -> None:
    kept = Kept()
    assert (kept.carried["begin"], "known" in kept.carried) == (True, False)
    assert kept.carried["holds"][0]["name"] == "case-17"
    assert kept.carried["quietDays"] == 8, "a log lasts a day, and a worker may be away for a week"
    kept.hear(said(known=2))
    assert ("begin" in kept.carried, kept.carried["known"]) == (False, 2)
    entry = held_aggregate_entry(KEY.name)
    assert kept.world.child("ConfigMap", "demo-retention")["data"] == {entry: "2", f"{entry}.holds": "1"}
    # The report disappears with its pod, and an older report has a smaller number.
    kept.hear()
    assert kept.carried["known"] == 2
    kept.hear(said(known=1))
    assert kept.carried["known"] == 2
    # Each of the two places that store the number is sufficient.
    kept.world.children[Ref("ConfigMap", "demo-retention")] = None
    kept.hear()
    assert kept.carried["known"] == 2
    kept.status = {}
    kept.hear()
    assert kept.carried["known"] == 2


def test_what_another_retention_jobs_run_said_is_not_said_by_this_one() -> None:
    kept = Kept()
    kept.hear(said(known=9, retentionKeyName="keeping.example.com/another"))
    assert kept.carried["begin"] is True
    assert "lastRunTime" not in kept.status


def test_the_status_tells_what_the_last_run_did() -> None:
    kept = Kept()
    assert kept.condition()[:2] == ("Unknown", "NeverRun")
    status, reason, message = kept.condition(said(plan=digest()))
    assert (status, reason, message) == (
        "True",
        "Kept",
        "all expired data is removed; active holds: 1",
    )
    assert kept.status == {
        "retentionKeyName": KEY.name,
        "verifyingKey": KEY.verifying_text,
        "knownHolds": 2,
        "lastRunTime": "2026-12-01T02:30:00Z",
        "lastSuccessTime": "2026-12-01T02:30:00Z",
        "result": "ok",
        "plan": digest(),
        "holds": 1,
        "holdsNotInManifest": [],
        "holdsNotInManifestCount": 0,
        "removedLogs": 3,
        "erasedExchanges": 40,
        "staying": [{"reason": "held", "count": 1}, {"reason": "young", "count": 5}],
    }
    before = dict(kept.status)
    # A failed run keeps the results of the previous one.
    lost = {"v": 1, "result": "keeping_state_missing", "message": "it is gone", "removed": 0, "erased": 0}
    later = run(json.dumps({**lost, "retentionKeyName": KEY.name}), day=2, exit_code=1)
    assert kept.condition(said(plan=digest()), later) == ("False", "StateLost", "it is gone")
    assert kept.status["lastSuccessTime"] == before["lastSuccessTime"]
    assert (kept.status["removedLogs"], kept.status["lastRunTime"]) == (3, "2026-12-02T02:30:00Z")
    # The failure stays in the status after its pod is deleted.
    assert kept.condition() == ("False", "StateLost", "it is gone")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("staying", "Overdue"),
        ("hold_changed", "HoldChanged"),
        ("keeping_state_set_back", "StateSetBack"),
        ("keeping_state_corrupt", "StateCorrupt"),
        ("clock_doubtful", "ClockDoubtful"),
        ("retention_key_differs", "KeyDiffers"),
        ("not_anchored", "NotAnchored"),
        ("auditor_unreachable", "AuditorUnreachable"),
        ("auditor_log_refused", "AuditorLogRefused"),
        ("usage", "Failed"),
        ("io", "Failed"),
    ],
)
def test_a_run_that_did_not_do_all_of_it_is_told_with_its_reason(result: str, reason: str) -> None:
    kept = Kept()
    ended = said(exit_code=1, result=result, message="this is why")
    status, found, message = kept.condition(ended)
    assert (status, found) == ("False", reason)
    assert message == "this is why; spec.keeping has changed since then: the next run applies the change"


def test_a_hold_that_left_the_manifest_is_told_and_is_news() -> None:
    kept = Kept()
    before = [Condition(ConditionType.KEPT, ConditionStatus.TRUE, "Kept", "")]
    outside = said(outside=["case-3", "#4"], outsideCount=40, plan=digest())
    status, reason, message = kept.condition(outside)
    assert (status, reason) == ("True", "HeldOutsideManifest")
    assert message.startswith(
        "active holds that are not in the manifest: 40 (case-3, #4). Release them with `released`"
    )
    assert kept.status["holdsNotInManifestCount"] == 40
    found = kept.plan().status.condition(ConditionType.KEPT)
    assert reportable_transitions(merge_conditions((), before, 1, ""), [found]) == [found]


def test_what_changed_since_the_last_run_is_told() -> None:
    kept = Kept()
    assert "the next run" not in kept.condition(said(plan=digest()))[2]
    kept.world.manifest["spec"]["keeping"] = {**KEEPING, "holds": []}
    assert "spec.keeping has changed since" in kept.condition()[2]


GARBAGE = [
    "",
    "Traceback (most recent call last):",
    "[]",
    "[" * 4000,
    "null",
    json.dumps(report(v=2)),
    json.dumps(report(result="Ok; rm")),
    json.dumps(report(known=-1)),
    json.dumps(report(known=True)),
    json.dumps(report(holds=None)),
    json.dumps(report(known=10**30)),
    json.dumps(report(outside=["a\nb"])),
    json.dumps(report(outside=["x"] * 17)),
    json.dumps(report(staying={"No": 1})),
    json.dumps(report(staying={"a": "1"})),
    json.dumps(report(message=7)),
    json.dumps(report(anchor="a witness")),
    json.dumps(report(anchor=["auditor"])),
    json.dumps(report(message="m" * 4096)),
]


@pytest.mark.parametrize("words", GARBAGE)
def test_last_words_that_are_no_report_are_a_failure_and_teach_nothing(words: str) -> None:
    kept = Kept()
    kept.hear(said(day=1, plan=digest()))
    status, reason, message = kept.condition(run(words, day=2, exit_code=137))
    assert (status, reason) == ("False", "Failed")
    assert message.startswith("the run ended (Error, exit code 137) without a usable report: ")
    assert (kept.carried["known"], kept.status["removedLogs"]) == (2, 3)


@settings(max_examples=60)
@given(
    st.one_of(
        st.text(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=20),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
            ),
        ).map(json.dumps),
        st.dictionaries(
            st.sampled_from(sorted(report())), st.integers() | st.text(max_size=9) | st.none()
        ).map(lambda changes: json.dumps(report(**changes))),
    )
)
def test_whatever_a_container_says_it_is_a_run_that_ended(words: str) -> None:
    [found] = retention_runs.finished_runs([run(words)], KEY.name) or [None]
    if found is not None:
        assert len(found.message) <= 512
        assert found.known_hold_count is None or found.known_hold_count >= 0


def test_the_clock_of_a_node_hides_no_later_run() -> None:
    kept = Kept()
    ahead = said(day=1)
    ahead["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2040-01-01T00:00:00Z"
    kept.hear(ahead)
    assert kept.condition(ahead, said(day=2, result="io", message="later"))[1] == "Failed"


def test_messages_bear_no_control_characters() -> None:
    [found] = retention_runs.finished_runs([said(message="a\x1b[31m\nb")], KEY.name)
    assert found.message == "a [31m b"


def test_a_copy_of_a_pod_for_debugging_is_no_run() -> None:
    copied = copy.deepcopy(said())
    assert is_retention_run(gateway(), copied)
    del copied["metadata"]["ownerReferences"]
    assert not is_retention_run(gateway(), copied)


def test_a_run_that_does_not_begin_or_does_not_start_is_told() -> None:
    kept = Kept()
    job = kept.world.child("CronJob", "demo-retention")
    job["status"] = {"lastScheduleTime": "2026-12-02T02:30:00Z"}
    assert kept.condition()[:2] == ("False", "NotReported"), "the run was due nine hours ago"
    kept.now = NOON - 6 * 3600
    assert kept.condition()[:2] == ("Unknown", "NeverRun")
    waiting = said(day=2)
    waiting["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
    kept.now = NOON
    status, reason, message = kept.condition(waiting)
    assert (status, reason) == ("False", "NotReported")
    assert "is not scheduled" in message
    waiting["status"] = {"phase": "Running"}
    assert kept.condition(waiting)[:2] == ("Unknown", "NeverRun"), "a long run is not a missing run"


def test_a_suspended_retention_job_runs_not_and_says_so() -> None:
    kept = Kept(keeping={**KEEPING, "suspend": True})
    assert kept.world.child("CronJob", "demo-retention")["spec"]["suspend"] is True
    assert kept.condition()[:2] == ("Unknown", "Suspended")


def command(kept: Kept) -> list[str]:
    """Return the command of a run."""
    pod = kept.world.child("CronJob", "demo-retention")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    found: list[str] = pod["containers"][0]["command"]
    return found


def egress(kept: Kept) -> list[Manifest]:
    found: list[Manifest] = kept.world.child("NetworkPolicy", "demo-retention")["spec"].get("egress", [])
    return found


def test_a_retention_job_waits_for_the_log_of_its_gateways_auditor_and_may_ask_nobody_else() -> None:
    kept = Kept(auditor=AUDITOR)
    url = f"http://demo-auditor.{NAMESPACE}.svc.cluster.local:9091"
    assert command(kept)[-4:] == ["--auditor", url, "--auditor-key", AUDITORS_KEY.verifying_text]
    names, asked = egress(kept)
    assert {port["port"] for port in names["ports"]} == {53, 5353}
    assert "to" not in names
    [auditor] = asked["to"]
    assert auditor["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "auditor"
    assert asked["ports"] == [{"port": 9091, "protocol": "TCP"}]
    [readers] = kept.world.child("NetworkPolicy", "demo-auditor")["spec"]["ingress"]
    retention_jobs = [
        {"podSelector": kept.world.child("NetworkPolicy", "demo-retention")["spec"]["podSelector"]}
    ]
    assert [peer for peer in readers["from"] if "retention" in str(peer)] == retention_jobs


@pytest.mark.parametrize("auditor", [None, {**AUDITOR, "enabled": False}])
def test_without_an_auditor_it_waits_for_none_and_says_that_there_is_no_anchor(
    auditor: Manifest | None,
) -> None:
    kept = Kept(auditor=auditor)
    assert "--auditor" not in command(kept)
    assert egress(kept) == []
    ended = said(plan=digest(), anchor="none")
    message = (
        "all expired data is removed; active holds: 1; no independent witness confirms the times that the "
        "job signs, because there is no auditor"
    )
    assert kept.condition(ended) == ("True", "Kept", message)
    assert kept.status["anchor"] == "none"
    # With an auditor, the message disappears after the next run.
    kept.condition(ended, said(day=2, plan=digest(), anchor="auditor"))
    assert kept.status["anchor"] == "auditor"
    assert "independent witness" not in kept.plan().status.condition(ConditionType.KEPT).message


def test_what_waits_for_the_auditors_log_is_told_until_a_run_finds_it_there() -> None:
    kept = Kept(auditor=AUDITOR)
    template = copy.deepcopy(kept.world.child("StatefulSet", "demo-auditor")["spec"]["template"])
    kept.auditor_pod = {"metadata": {"name": "demo-auditor-0"}, "spec": template["spec"]}
    why = "signed statements about 2 logs wait until the auditor's log contains them"
    left = {"result": "not_anchored", "message": why, "staying": {"not_anchored": 2}, "removed": 1}
    waits = said(exit_code=10, plan=digest(), anchor="auditor", **left)
    assert kept.condition(waits) == ("False", "NotAnchored", why)
    assert kept.status["staying"] == [{"reason": "not_anchored", "count": 2}]
    assert kept.status["removedLogs"] == 1
    assert kept.condition(waits, said(day=2, plan=digest(), anchor="auditor"))[:2] == ("True", "Kept")


def test_nothing_runs_while_nobody_knows_by_which_key_the_auditor_signs() -> None:
    kept = Kept(auditor=AUDITOR)
    template = copy.deepcopy(kept.world.child("StatefulSet", "demo-auditor")["spec"]["template"])
    kept.auditor_pod = {"metadata": {"name": "demo-auditor-0"}, "spec": template["spec"]}
    kept.world.secrets["auditor-key"] = None
    assert kept.condition()[:2] == ("Unknown", "WaitingForAuditor")
    assert kept.world.child("CronJob", "demo-retention")["spec"]["suspend"] is True
    assert kept.carried["retentionKey"] == "", "a run by hand is also prevented"
    kept.world.secrets["auditor-key"] = auditors_secret()
    kept.hear()
    assert kept.world.child("CronJob", "demo-retention")["spec"]["suspend"] is False


def test_nothing_is_removed_before_the_auditor_knows_whose_tombstones_hold() -> None:
    kept = Kept(auditor=AUDITOR)
    template = kept.world.child("StatefulSet", "demo-auditor")["spec"]["template"]
    command = template["spec"]["containers"][0]["command"]
    assert command[command.index("--keeping-key") + 1] == KEY.verifying_text
    job = kept.world.child("CronJob", "demo-retention")
    assert job["spec"]["suspend"] is False, "every pod of the StatefulSet knows the key"
    # A pod of the previous template still runs.
    kept.auditor_pod = {
        "metadata": {"name": "demo-auditor-0"},
        "spec": {"containers": [{"command": ["auditor"]}]},
    }
    assert kept.condition()[:2] == ("Unknown", "WaitingForAuditor")
    assert kept.world.child("CronJob", "demo-retention")["spec"]["suspend"] is True
    kept.auditor_pod = {"metadata": {"name": "demo-auditor-0"}, "spec": template["spec"]}
    kept.hear()
    assert kept.world.child("CronJob", "demo-retention")["spec"]["suspend"] is False


def test_the_first_reconcile_of_a_gateway_with_both_lets_the_retention_job_wait() -> None:
    world = World(keeping=KEEPING, auditor=AUDITOR)
    world.secrets |= {"retention-key": key_secret(), "auditor-key": auditors_secret()}
    while not any(ref_of(found) == JOB for found in world.plan().manifests_to_apply):
        world.carry_out(world.plan())
    [job] = [found for found in world.plan().manifests_to_apply if ref_of(found) == JOB]
    assert job["spec"]["suspend"] is True


def test_the_plan_names_the_key_that_may_carry_it_out_once_the_auditor_knows_it() -> None:
    assert Kept().carried["retentionKey"] == KEY.verifying_text
    kept = Kept(auditor=AUDITOR)
    template = copy.deepcopy(kept.world.child("StatefulSet", "demo-auditor")["spec"]["template"])
    kept.auditor_pod = {"metadata": {"name": "demo-auditor-0"}, "spec": template["spec"]}
    kept.hear()
    assert kept.carried["retentionKey"] == KEY.verifying_text
    # After a key rotation, while the auditor with the old key runs, no run is allowed, not even by hand.
    successor = SigningKey(KEY.name, b"\x0d" * 32)
    kept.world.secrets["retention-key"] = key_secret(successor)
    kept.hear()
    assert kept.carried["retentionKey"] == ""
    template = kept.world.child("StatefulSet", "demo-auditor")["spec"]["template"]
    kept.auditor_pod = {"metadata": {"name": "demo-auditor-0"}, "spec": template["spec"]}
    kept.hear()
    assert kept.carried["retentionKey"] == successor.verifying_text
    assert kept.world.child("CronJob", "demo-retention")["spec"]["suspend"] is False


def test_a_key_that_was_rotated_goes_to_the_auditor_with_its_line() -> None:
    old = SigningKey(KEY.name, b"\x0a" * 32)
    statement = f"succession\nold {old.verifying_text}\nnew {KEY.verifying_text}\n\n- signatures\n"
    for text in (
        f"{KEY.signing_text}\n\n{statement}",
        f"{KEY.signing_text}\n{old.signing_text}\n\n{statement}",
    ):
        rotated = key_secret()
        rotated["data"] = {"signing-key": base64.b64encode(text.encode()).decode()}
        kept = Kept(rotated, auditor=AUDITOR | {"keepingKey": old.verifying_text})
        template = kept.world.child("StatefulSet", "demo-auditor")["spec"]["template"]
        command = template["spec"]["containers"][0]["command"]
        assert command[command.index("--keeping-key") + 1] == f"{KEY.verifying_text}\n\n{statement}"
        assert "PRIVATE" not in str(command)


OTHER = SigningKey("keeping.example.com/other", b"\x0b" * 32)


@pytest.mark.parametrize(
    ("key", "changes", "reason", "words"),
    [
        (None, {}, "SecretMissing", "does not exist"),
        (SigningKey("proofgate.dev/team/demo", b"\x0c" * 32), {}, "SecretInvalid", "and the ledger"),
        (SigningKey("proofgate.dev", b"\x0c" * 32), {}, "SecretInvalid", "and the ledger"),
        (SigningKey("keeping.example.com/x", bytes(32)), {}, "SecretInvalid", "the ledger's own key"),
        (SigningKey(f"k.example.com/{'x' * 500}", b"\x0c" * 32), {}, "SecretInvalid", "1 to 256 characters"),
        (
            ExternalSigningKey(KEY.name, KEY.public, socket="/run/signer/socket"),
            {},
            "SecretInvalid",
            "a process that holds the key",
        ),
        (
            SigningKey(f"{AUDITORS_KEY.name}/retention", b"\x0c" * 32),
            {"auditor": AUDITOR},
            "SecretInvalid",
            "and the auditor's",
        ),
        (
            SigningKey("k.example.com", AUDITORS_KEY.seed),
            {"auditor": AUDITOR},
            "SecretInvalid",
            "the auditor's",
        ),
        (
            KEY,
            {"auditor": AUDITOR | {"keepingKey": OTHER.verifying_text}},
            "KeepingKeyDiffers",
            "remove the field",
        ),
    ],
)
def test_a_key_that_cannot_be_the_retention_key_costs_the_retention_job_alone_and_lets_nothing_run(
    key: LedgerKey | None, changes: Manifest, reason: str, words: str
) -> None:
    kept = Kept(**{**changes, "auditor": None} if "keepingKey" in str(changes) else changes)
    assert made(kept.world) >= WHOLE
    kept.world.manifest["spec"] |= changes
    kept.world.secrets["retention-key"] = key_secret(key) if key else None
    status, found, message = kept.condition()
    assert (status, found) == ("False", reason)
    assert words in message
    assert kept.world.children[JOB] is None
    assert made(kept.world) >= WHOLE - {JOB}
    assert kept.plan().status.condition(ConditionType.CONFIG_VALID).is_true


def test_an_auditor_never_loses_the_retention_key_by_a_secret_that_is_gone() -> None:
    kept = Kept(auditor=AUDITOR)
    before = copy.deepcopy(kept.world.child("StatefulSet", "demo-auditor"))
    kept.world.secrets["retention-key"] = None
    kept.hear()
    assert kept.world.child("StatefulSet", "demo-auditor") == before


def test_a_retention_job_that_is_taken_out_of_the_manifest_runs_no_more_and_its_holds_stay() -> None:
    kept = Kept()
    kept.hear(said())
    del kept.world.manifest["spec"]["keeping"]
    kept.hear()
    assert kept.world.children[JOB] is None
    claim = kept.world.child("PersistentVolumeClaim", "demo-retention")
    assert "ownerReferences" not in claim["metadata"]
    # A new retention job knows that a state existed.
    kept.world.manifest["spec"]["keeping"] = KEEPING
    kept.hear()
    assert kept.carried["known"] == 2


def test_the_claim_and_what_is_known_go_with_the_evidence_only() -> None:
    for policy, owned in (("Retain", False), ("Delete", True)):
        ledger = {"volume": {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": policy}}
        kept = Kept(ledger=ledger, keeping={**KEEPING, "holds": []})
        kept.hear(said(holds=0))
        for kind in ("PersistentVolumeClaim", "ConfigMap"):
            assert ("ownerReferences" in kept.world.child(kind, "demo-retention")["metadata"]) is owned


def test_a_claim_that_was_brought_is_used_and_not_made() -> None:
    kept = Kept(keeping={**KEEPING, "storage": {"existingClaim": "holds"}})
    assert made(kept.world) == WHOLE - {Ref("PersistentVolumeClaim", "demo-retention")}
    assert "'claimName': 'holds'" in str(kept.world.child("CronJob", "demo-retention"))


def test_a_name_that_is_taken_costs_the_retention_job_alone() -> None:
    kept = Kept()
    foreign = {"metadata": {"name": "demo-retention", "labels": {}}, "data": {}}
    kept.world.children[Ref("ConfigMap", "demo-retention")] = foreign
    kept.world.children[JOB] = None
    status, reason, message = kept.condition(said())
    assert (status, reason) == ("False", "NameTaken")
    assert "ConfigMap demo-retention" in message
    assert kept.world.children[JOB] is None
    assert kept.world.children[Ref("ConfigMap", "demo-retention")] is foreign
    assert kept.plan().status.condition(ConditionType.CONFIG_VALID).is_true


def test_the_longest_plan_fits_into_an_annotation() -> None:
    line = "\U0001f512" * 128
    hold = {
        **{
            "tenant": "t" * 317,
            "id": "i" * 128,
            "since": "2026-01-01T00:00:00Z",
            "until": "2026-01-02T00:00:00Z",
        },
        **{"reason": line, "reference": line, "released": line},
    }
    keeping = {
        **KEEPING,
        "holds": [{**hold, "name": f"{'n' * 60}-{number:02}"} for number in range(32)],
        "retention": {
            "tenants": [
                {"name": f"{'t' * 313}-{number:03}", "minimumDays": 1, "maximumDays": 36500}
                for number in range(128)
            ]
        },
    }
    subject = gateway(keeping=keeping)
    assert subject.spec.keeping is not None
    assert len(retention.plan(subject, subject.spec.keeping, KEY.verifying_text, 2**53).encode()) < 240 * 1024
