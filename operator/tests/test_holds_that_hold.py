"""Evidence under a hold is not deleted with the gateway, whatever its manifest says."""

import json
from typing import Any

import pytest

from proofgate_operator.build.auditor import held_aggregate_entry
from proofgate_operator.build.naming import KEEPING_PLAN_ANNOTATION
from proofgate_operator.plan.observed_state import Ref
from tests.retention import KEEPING, KEY, run, said
from tests.test_keeping import Kept

Manifest = dict[str, Any]


def volume(policy: str) -> Manifest:
    return {"volume": {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": policy}}


def goes(kept: Kept) -> bool:
    """Return whether the evidence, its signing key, the holds and the record of them are deleted with the
    gateway; asserts that all of them are or none."""
    evidence = [("PersistentVolumeClaim", "demo-wal"), ("Secret", "demo-ledger")]
    whole = [*evidence, ("PersistentVolumeClaim", "demo-retention"), ("ConfigMap", "demo-retention")]
    made = [kept.world.child(*ref) for ref in whole if kept.world.children.get(Ref(*ref))]
    [owned] = {"ownerReferences" in live["metadata"] for live in made}
    assert len(made) >= 3 and owned is not needs_retain(kept)
    return owned


def needs_retain(kept: Kept) -> bool:
    return "HoldsNeedRetain" in {fault["reason"] for fault in kept.plan().status.faults}


def delete_with_the_gateway(kept: Kept) -> None:
    """Change the manifest once: no holds, and everything is deleted with the gateway."""
    kept.world.manifest["spec"] |= {"ledger": volume("Delete"), "keeping": {**KEEPING, "holds": []}}


def test_what_holds_hold_never_goes_with_the_gateway_whatever_the_manifest_says() -> None:
    kept = Kept()
    kept.hear(said())
    delete_with_the_gateway(kept)
    kept.hear(said())
    assert not goes(kept)
    # Without a retention job there is neither a report nor a status, so the record in the ConfigMap decides.
    del kept.world.manifest["spec"]["keeping"]
    kept.hear()
    assert kept.status == {} and not goes(kept)
    # Once a run reports no holds any more, the manifest decides.
    delete_with_the_gateway(kept)
    kept.hear(said(day=2, holds=0))
    assert goes(kept)
    kept.hear()
    assert goes(kept)
    # The same applies to a gateway that never had holds.
    assert goes(Kept(ledger=volume("Delete"), keeping={**KEEPING, "holds": []}))


def test_owners_of_before_are_taken_off_and_either_place_where_holds_are_remembered_is_enough() -> None:
    kept = Kept(ledger=volume("Delete"), keeping={**KEEPING, "holds": []})
    kept.hear(said(holds=0))
    assert goes(kept)
    # Somebody placed a hold by hand.
    kept.hear(said(day=2, outside=["#3"]))
    assert not goes(kept)
    told = dict(kept.status)
    kept.status = {}
    kept.hear()
    assert not goes(kept)
    kept.world.child("ConfigMap", "demo-retention")["data"] = {held_aggregate_entry(KEY.name): "2"}
    kept.status = told
    kept.hear()
    assert not goes(kept)


def test_holds_of_which_nothing_but_their_number_is_known_may_hold() -> None:
    kept = Kept(ledger=volume("Delete"), keeping={**KEEPING, "holds": []})
    kept.hear(said(holds=0))
    # The format of an earlier operator.
    kept.world.child("ConfigMap", "demo-retention")["data"] = {held_aggregate_entry(KEY.name): "2"}
    kept.status, kept.pods = {}, ()
    kept.hear()
    assert not goes(kept)
    kept.hear(said(day=2, holds=0))
    assert goes(kept)


@pytest.mark.parametrize("phase", ["Running", "Failed", "Evicted"])
def test_what_a_run_was_to_hold_of_which_nothing_is_heard_may_hold(phase: str) -> None:
    kept = Kept()
    carried = kept.carried
    silent = run("", exit_code=137)
    silent["metadata"]["annotations"] = {KEEPING_PLAN_ANNOTATION: json.dumps(carried)}
    if phase != "Failed":
        silent["status"] = {"phase": "Running" if phase == "Running" else "Failed"}
    delete_with_the_gateway(kept)
    kept.hear(silent)
    assert not goes(kept)
    assert kept.carried["begin"] is True, "no state is known"
    kept.hear()
    assert not goes(kept)
    kept.hear(said(day=2, holds=0))
    assert goes(kept)
