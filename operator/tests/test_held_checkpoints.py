"""The held checkpoints of workers: the newest, signed with the ledger's key, for the current volume."""

import asyncio
import base64
import hashlib
import itertools
import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proofgate_operator.api.conditions import ConditionType, merge_conditions
from proofgate_operator.build import checkpoint, ledger_key
from proofgate_operator.build.checkpoint import InvalidCheckpoint
from proofgate_operator.build.gateway_secrets import ledger_secret
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.events import reportable_transitions
from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.reconcile import ReconcileResult, reconcile
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.held_checkpoints import CLAIMS_ANNOTATION, HOLD_INTERVAL_SECONDS
from proofgate_operator.plan.observed_state import ObservedState, Ref
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.workers.reports import WorkerReports
from tests.fake_cluster import FakeCluster, Killed
from tests.gateways import DEFAULTS, NAMESPACE, UID
from tests.test_convergence import new_cluster, settle
from tests.test_faults import mortal
from tests.world import World, pod

Manifest = dict[str, Any]

LOG = logging.getLogger("test")
LEDGER = "proofgate.dev/team/demo"
KEY = SigningKey(LEDGER, bytes(32))
#: Each reconcile is later than the last by more than the interval between two writes.
CLOCK = itertools.count(2_000_000_000.0, HOLD_INTERVAL_SECONDS + 1)
EARLIER, LATER = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"
HELD = Ref("ConfigMap", "demo-checkpoints")
SHARED, OTHER = "uid-of-the-claim", "uid-of-another-claim"


def note(
    shard: int = 0, size: int = 7, log: str = EARLIER, root: bytes = bytes(32), key: SigningKey = KEY
) -> str:
    text = f"{key.name}/{shard}/{log}\n{size}\n{base64.b64encode(root).decode()}\n"
    return signed(text, key)


def signed(text: str, key: SigningKey = KEY) -> str:
    private = Ed25519PrivateKey.from_private_bytes(key.seed)
    name = text.split("\n")[0]
    public = b"\x01" + private.public_key().public_bytes_raw()
    key_hash = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
    return f"{text}\n— {name} {base64.b64encode(key_hash + private.sign(text.encode())).decode()}\n"


class Ledger:
    """A settled gateway whose workers report checkpoints."""

    def __init__(self, claim: str = SHARED, **changes: Any) -> None:
        self.world = World(**changes)
        # The Secret as from a backup, because the operator generates none for a user's claim.
        self.world.children[Ref("Secret", "demo-ledger")] = ledger_secret(
            self.world.gateway, KEY.signing_text, "verifying"
        )
        self.world.settle()
        self.claim = claim
        self.now = 1_800_000_000.0
        self.version = 1

    def plan(self, *told: tuple[int, str | WorkerReport]) -> ReconcilePlan:
        children = dict(self.world.children)
        for ref, live in children.items():
            if ref.kind == "PersistentVolumeClaim" and live:
                uid = f"{self.claim}-{ref.name}" if "worker" in ref.name else self.claim
                children[ref] = {**live, "metadata": {**live["metadata"], "uid": uid}}
        reports = {
            number: WorkerReport(checkpoint=report) if isinstance(report, str) else report
            for number, report in told
        }
        pods = tuple(self.world.pods)
        seen = ObservedState(
            children,
            self.world.secrets,
            pods,
            worker_reports=reports,
            now=self.now,
            ledger_status=self.world.ledger,
        )
        return decide(self.world.gateway, seen, DEFAULTS)

    def hear(self, *told: tuple[int, str | WorkerReport]) -> dict[str, str]:
        """Reconcile once, and return the held checkpoints."""
        plan = self.plan(*told)
        if plan.newer_checkpoints is not None:
            # The API server refuses a write that is based on another version.
            live = self.world.children.get(HELD)
            assert plan.newer_checkpoints["metadata"].get("resourceVersion") == (live and str(self.version))
            self.version += 1
            metadata = {**plan.newer_checkpoints["metadata"], "resourceVersion": str(self.version)}
            self.world.children[HELD] = {**plan.newer_checkpoints, "metadata": metadata}
        self.now += HOLD_INTERVAL_SECONDS + 1
        return self.held

    @property
    def held(self) -> dict[str, str]:
        live = self.world.children.get(HELD)
        return dict(live["data"]) if live else {}


def test_nothing_is_held_before_a_worker_has_signed() -> None:
    assert Ledger().plan((0, "")).newer_checkpoints is None


def test_the_newest_of_each_shard_is_held() -> None:
    ledger = Ledger()
    assert ledger.hear((0, note(0)), (1, note(1))) == {"0": note(0), "1": note(1)}
    assert ledger.hear((0, note(0, 8)), (1, note(1))) == {"0": note(0, 8), "1": note(1)}
    assert ledger.hear((0, note(0, 2, LATER))) == {"0": note(0, 2, LATER), "1": note(1)}


@pytest.mark.parametrize(
    "told",
    [
        note(0, 6),
        note(0, 99, "01ARZ3NDEKTSV4RRFFQ69G5FAA"),
        note(1, 9),
        note(0, 9, key=SigningKey(LEDGER, b"\x01" * 32)),
        note(0, 9, key=SigningKey("proofgate.dev/team/other", bytes(32))),
        note(0, 9).replace("\n9\n", "\n10\n"),
        note(0, 9) + "\n" * 5000,
        "no checkpoint",
        "\ud800",
        "",
    ],
    ids=[
        "fewer records",
        "an earlier log",
        "another shard",
        "another key",
        "another ledger",
        "changed",
        "padded",
        "none",
        "no text",
        "silence",
    ],
)
def test_nothing_else_takes_its_place(told: str) -> None:
    ledger = Ledger()
    before = ledger.hear((0, note(0, 7)))
    assert ledger.plan((0, told)).newer_checkpoints is None and ledger.hear((0, told)) == before


def rotated() -> tuple[SigningKey, str, str]:
    """Return the next key, and its Secret's text with and without the previous key."""
    new = SigningKey(LEDGER, b"\x02" * 32)
    statement = (
        f"proofgate.dev/key-succession@v1\nold {KEY.verifying_text}\nnew {new.verifying_text}\n"
        f"made 1\nuntil 2\n\n— {LEDGER} eA==\n— {LEDGER} eA==\n"
    )
    return new, f"{new.signing_text}\n{KEY.signing_text}\n\n{statement}", f"{new.signing_text}\n\n{statement}"


def test_while_shards_go_over_to_another_key_one_by_one_the_newest_of_each_is_held() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0)), (1, note(1)))
    new, rolling, alone = rotated()
    for text in (rolling, alone):
        ledger.world.children[Ref("Secret", "demo-ledger")] = ledger_secret(ledger.world.gateway, text, "")
        over = note(0, 2, LATER, key=new)
        assert ledger.hear((0, over), (1, note(1, 8))) == {"0": over, "1": note(1, 8)}
        assert ledger.hear((0, over), (1, note(1, 8, root=b"\x01" * 32))) == {"0": over, "1": note(1, 8)}
    told = ledger.plan((1, note(1, 7)))
    assert "LedgerSetBack" in str(told), "the old key's checkpoint still reveals a rollback"


def test_the_status_says_which_shards_sign_with_which_key_while_they_go_over() -> None:
    ledger = Ledger()
    ledger.world.pods = [pod(0), pod(1), pod(2)]

    def signing(*told: tuple[int, str]) -> dict[str, list[int]]:
        ledger.world.ledger = ledger.plan(*told).status.ledger
        return {item["verifyingKey"]: item["shards"] for item in ledger.world.ledger.get("signing", ())}

    old, (new, rolling, alone) = KEY.verifying_text, rotated()
    assert signing() == {}
    assert signing((0, note(0)), (1, note(1)), (2, "")) == {old: [0, 1]}
    ledger.world.children[Ref("Secret", "demo-ledger")] = ledger_secret(ledger.world.gateway, rolling, "")
    over = note(0, 2, LATER, key=new)
    assert signing((0, over), (1, note(1)), (2, note(2))) == {new.verifying_text: [0], old: [1, 2]}
    # A missing report changes nothing; a checkpoint with an unknown key counts as nothing.
    stranger = note(1, 9, key=SigningKey(LEDGER, b"\x07" * 32))
    assert signing((0, ""), (1, stranger)) == {new.verifying_text: [0], old: [2]}
    ledger.world.children[Ref("Secret", "demo-ledger")] = ledger_secret(ledger.world.gateway, alone, "")
    both = ((1, note(1, 2, LATER, key=new)), (2, note(2, 2, LATER, key=new)))
    assert signing(*both) == {new.verifying_text: [0, 1, 2]}
    ledger.world.pods = [pod(0)]
    assert signing() == {new.verifying_text: [0]}


def test_a_key_that_follows_rolls_the_workers_and_that_the_one_before_goes_rolls_nobody() -> None:
    ledger = Ledger()

    def digests(text: str) -> list[str]:
        ledger.world.children[Ref("Secret", "demo-ledger")] = ledger_secret(ledger.world.gateway, text, "")
        sets = [
            manifest for manifest in ledger.plan().manifests_to_apply if manifest["kind"] == "StatefulSet"
        ]
        return [
            one["spec"]["template"]["metadata"]["annotations"]["proofgate.dev/start-digest"] for one in sets
        ]

    _, rolling, alone = rotated()
    assert digests(KEY.signing_text) == [], "with the key in use, the StatefulSet is not written"
    assert len(digests(rolling)) == 1
    assert digests(alone) == digests(rolling)


def test_it_is_written_once_a_minute_and_a_shard_that_is_new_at_once() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0, 7)))
    ledger.now -= 31
    assert ledger.plan((0, note(0, 8))).newer_checkpoints is None
    found = ledger.plan((0, note(0, 8)), (1, note(1))).newer_checkpoints
    assert found and found["data"] == {"0": note(0, 8), "1": note(1)}
    ledger.now += 31
    assert ledger.plan((0, note(0, 8))).newer_checkpoints


def test_the_last_of_a_worker_that_leaves_is_written_at_once_and_only_once() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0, 7)))
    ledger.now -= 31
    serving, idle = (WorkerReport(checkpoint=note(0, 8), retiring=True, in_flight=n) for n in (1, 0))
    assert ledger.plan((0, serving)).newer_checkpoints is None
    assert ledger.plan((0, idle)).newer_checkpoints
    assert ledger.hear((0, idle)) == {"0": note(0, 8)}
    ledger.now -= HOLD_INTERVAL_SECONDS
    assert ledger.plan((0, idle)).newer_checkpoints is None


def test_a_settled_gateway_stays_settled_while_it_is_written() -> None:
    ledger = Ledger()
    plan = ledger.plan((0, note()))
    assert plan.newer_checkpoints and not plan.has_writes and not plan.manifests_to_apply
    assert plan.status.condition(ConditionType.PROGRESSING).reason != "Applying"


def test_a_shard_that_was_scaled_away_keeps_its_entry() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0)), (1, note(1)))
    ledger.world.manifest["spec"]["replicas"] = 1
    assert ledger.hear((0, note(0, 8))) == {"0": note(0, 8), "1": note(1)}


def test_what_is_held_of_another_claim_is_dropped() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0)), (1, note(1)))
    ledger.claim = OTHER
    assert ledger.hear() == {}
    assert ledger.hear((0, note(0, 3))) == {"0": note(0, 3)}
    live = ledger.world.children[HELD]
    assert live and json.loads(live["metadata"]["annotations"][CLAIMS_ANNOTATION]) == {"0": OTHER}


def test_a_worker_with_a_claim_of_its_own_is_known_by_that() -> None:
    ledger = Ledger(ledger={"volume": {"mode": "PerWorker", "size": "1Gi"}})
    ledger.hear((0, note(0)), (1, note(1)))
    live = ledger.world.children[HELD]
    assert live
    claims = json.loads(live["metadata"]["annotations"][CLAIMS_ANNOTATION])
    assert claims == {str(n): f"{SHARED}-ledger-demo-worker-{n}" for n in (0, 1)}


@pytest.mark.parametrize("claims", ["[" * 100_000, "{", "[]", "7"], ids=["deep", "broken", "list", "number"])
def test_claims_that_nobody_can_read_drop_nothing(claims: str) -> None:
    ledger = Ledger()
    ledger.hear((0, note(0)))
    live = ledger.world.children[HELD]
    assert live
    live["metadata"]["annotations"][CLAIMS_ANNOTATION] = claims
    assert ledger.hear((0, note(0))) == {"0": note(0)}


def test_a_claim_that_is_not_seen_drops_nothing() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0)))
    ledger.world.children[Ref("PersistentVolumeClaim", "demo-wal")] = None
    assert ledger.hear() == {"0": note(0)}


def test_an_entry_that_a_person_deletes_comes_back_only_from_a_worker_that_runs() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0, 9)))
    ledger.world.children[HELD] = None
    assert ledger.hear() == {}
    assert ledger.hear((0, note(0, 4))) == {"0": note(0, 4)}


@pytest.mark.parametrize(
    ("volume", "owned"),
    [
        ({"retainPolicy": "Retain"}, False),
        ({"retainPolicy": "Delete"}, True),
        ({"retainPolicy": "Delete", "existingClaim": "brought"}, False),
    ],
    ids=["a claim that stays", "a claim that goes", "a claim that somebody brought"],
)
def test_it_goes_with_the_volume_of_which_it_speaks(volume: Manifest, owned: bool) -> None:
    plan = Ledger(ledger={"volume": volume}).plan((0, note()))
    assert plan.newer_checkpoints and ("ownerReferences" in plan.newer_checkpoints["metadata"]) is owned


@pytest.mark.parametrize(("before", "after"), [("Delete", "Retain"), ("Retain", "Delete")])
def test_it_follows_another_retain_policy_at_once_though_nothing_is_signed(before: str, after: str) -> None:
    ledger = Ledger(ledger={"volume": {"retainPolicy": before}})
    ledger.hear((0, note()))
    ledger.now -= HOLD_INTERVAL_SECONDS
    ledger.world.manifest["spec"]["ledger"]["volume"]["retainPolicy"] = after
    found = ledger.plan().newer_checkpoints
    assert found and ("ownerReferences" in found["metadata"]) is (after == "Delete")
    ledger.hear()
    assert ledger.held == {"0": note()} and ledger.plan().newer_checkpoints is None


@pytest.mark.parametrize(
    ("size", "log"),
    [(6, EARLIER), (99, "01ARZ3NDEKTSV4RRFFQ69G5FAA")],
    ids=["fewer records", "an earlier log"],
)
def test_a_worker_that_falls_behind_what_is_held_is_told_and_what_is_held_stays(size: int, log: str) -> None:
    ledger = Ledger()
    ledger.hear((0, note(0, 7)), (1, note(1)))
    behind = (0, note(0, size, log))
    told = ledger.plan(behind, (1, note(1))).status.condition(ConditionType.STORAGE_BOUND)
    assert (told.status.value, told.reason) == ("False", "LedgerSetBack")
    assert (
        f"worker 0 reports {size} records of {log}, but the held checkpoint has 7 of {EARLIER}"
    ) in told.message
    assert "worker 1" not in told.message
    assert ledger.hear(behind) == {"0": note(0, 7), "1": note(1)}


def test_two_checkpoints_that_contradict_each_other_are_told_and_the_first_stays() -> None:
    ledger = Ledger()
    ledger.hear((0, note(0, 7)))
    forked = (0, note(0, 7, root=b"\x01" * 32))
    told = ledger.plan(forked).status.condition(ConditionType.STORAGE_BOUND)
    assert (told.status.value, told.reason) == ("False", "LedgerForked") and "worker 0" in told.message
    assert ledger.hear(forked) == {"0": note(0, 7)}


def test_nothing_is_written_while_the_gateway_is_paused_or_the_name_is_taken() -> None:
    ledger = Ledger()
    ledger.world.manifest["spec"]["paused"] = True
    assert ledger.plan((0, note())).newer_checkpoints is None
    ledger = Ledger()
    ledger.world.children[HELD] = {"kind": "ConfigMap", "metadata": {"name": "demo-checkpoints"}, "data": {}}
    assert ledger.plan((0, note())).newer_checkpoints is None


def test_what_comes_there_rolls_no_worker() -> None:
    ledger = Ledger()
    before = ledger.world.child("StatefulSet", "demo-worker")["spec"]["template"]
    ledger.hear((0, note()))
    ledger.world.settle()
    assert ledger.world.child("StatefulSet", "demo-worker")["spec"]["template"] == before


def test_a_checkpoint_that_a_worker_signed_verifies() -> None:
    origin = "proofgate.dev/proofgate-e2e/fleet/0/01M842SXNBHXGGAQ9955EVBJBZ"
    signature = "MmhpEcoJ+EiYq5Mkb5wmXTFLI1kQoOhmSDjrM1DSgLpA6EFG4QWwQE473Q8dF/yb26vnjBMcnTfCxWqZ1PxAlgWs0wM="
    text = f"{origin}\n1\nvKR+qnl1Jjsh+91vKkV/psfS3NMovCXOU6b5a6VyxCw=\n\n— {origin} {signature}\n"
    key = "proofgate.dev/proofgate-e2e/fleet+37d7ad6e+AflQgk5ykQkWCc8oTZfJMAIbOWVtWFJpgje86HHHfqQP"
    found = checkpoint.read(text, key)
    assert (found.shard, found.size) == (0, 1)
    with pytest.raises(InvalidCheckpoint, match="not signed"):
        checkpoint.read(text.replace("\n1\n", "\n2\n"), key)


def test_a_checkpoint_says_which_log_it_is_of() -> None:
    found = checkpoint.read(note(3, 12, LATER), KEY.verifying_text)
    assert (found.shard, found.incarnation, found.size) == (3, LATER, 12)
    assert replace(found, size=13).sort_key > found.sort_key


@pytest.mark.parametrize("origin", [f"{LEDGER}/00/{LATER}", f"{LEDGER}/0/x", f"{LEDGER}/0/{LATER}/1", LEDGER])
def test_an_origin_that_is_no_log_of_the_ledger_is_refused(origin: str) -> None:
    text = f"{origin}\n1\n{base64.b64encode(bytes(32)).decode()}\n"
    with pytest.raises(InvalidCheckpoint, match="origin"):
        checkpoint.read(signed(text), KEY.verifying_text)


@pytest.mark.parametrize("ready", [True, False], ids=["a gateway that was ready", "one that was not"])
@pytest.mark.parametrize("told", [note(0, 6), note(0, 7, root=b"\x01" * 32)], ids=["set back", "forked"])
def test_what_contradicts_what_is_held_is_an_event_of_its_own_and_only_once(told: str, ready: bool) -> None:
    ledger = Ledger()
    ledger.hear((0, note(0, 7)))
    conditions = ledger.plan((0, told)).status.conditions
    before = [{"type": "Ready", "status": str(ready), "reason": "Any"}]
    events = [
        found
        for found in reportable_transitions(before, conditions)
        if found.type is ConditionType.STORAGE_BOUND
    ]
    assert [found.status.value for found in events] == ["False"]
    again = merge_conditions(before, conditions, 1, "2026-11-23T12:00:00Z")
    assert reportable_transitions(again, conditions) == []


class Telling(WorkerReports):
    """Workers that report one checkpoint of the first shard."""

    def __init__(self, text: str, now: float) -> None:
        super().__init__(time_now=lambda: now)
        self.text = text

    async def reports(self, *_: Any) -> dict[int, WorkerReport]:
        return {0: WorkerReport(checkpoint=self.text)}


def held_by(cluster: FakeCluster) -> list[str]:
    """Return the record counts in the held checkpoints."""
    return [text.split("\n")[1] for text in cluster.find("ConfigMap", "demo-checkpoints")["data"].values()]


def test_what_another_operator_held_meanwhile_is_not_set_back_and_the_reconcile_does_not_fail() -> None:
    cluster = new_cluster()
    settle(cluster)
    assert not hear(cluster, 7).failed and held_by(cluster) == ["7"]
    cluster.stale = True
    # The other operator is ahead, and this operator's watch has not reported it yet.
    cluster.find("ConfigMap", "demo-checkpoints")["data"]["0"] = note(0, 9, key=key_of(cluster))
    assert not hear(cluster, 8).failed and held_by(cluster) == ["9"]
    cluster.stale = False
    assert not hear(cluster, 8).failed and held_by(cluster) == ["9"]
    assert not hear(cluster, 10).failed and held_by(cluster) == ["10"]


def test_an_operator_killed_while_it_holds_loses_nothing_and_its_successor_goes_on() -> None:
    begin = cluster_that_holds(7)
    reference = mortal(begin)
    hear(reference, 9)
    assert held_by(reference) == ["9"] and reference.fatal()
    for count in range(len(reference.requests)):
        cluster = mortal(begin)
        cluster.requests_left = count
        with pytest.raises(Killed):
            hear(cluster, 9)
        cluster.requests_left = None
        cluster.restart()
        assert held_by(cluster) in (["7"], ["9"]), f"killed at request {count}"
        hear(cluster, 9)
        assert held_by(cluster) == ["9"], f"killed at request {count}"


def cluster_that_holds(size: int) -> FakeCluster:
    """Return a settled cluster with a held checkpoint of `size` records."""
    cluster = new_cluster()
    settle(cluster)
    hear(cluster, size)
    assert held_by(cluster) == [str(size)]
    return cluster


def hear(cluster: FakeCluster, size: int) -> ReconcileResult:
    """Reconcile, a minute after the last reconcile, with a worker that reports `size` records."""
    workers = Telling(note(0, size, key=key_of(cluster)), next(CLOCK))
    return asyncio.run(reconcile(cluster, NAMESPACE, "demo", UID, DEFAULTS, LOG, workers, ApplyHistory()))


def key_of(cluster: FakeCluster) -> SigningKey:
    """Return the ledger's key, which the operator generated."""
    generated = cluster.find("Secret", "demo-ledger")["data"]["signing-key"]
    return ledger_key.read(base64.b64decode(generated).decode())
