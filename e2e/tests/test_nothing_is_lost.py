"""Kills: no record of a completed answer is lost, no work is left undone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from proofgate import _core

from e2e.kubernetes import REPOSITORY, Namespace, ledger_directory, wait_until
from e2e.load import steady_load
from e2e.operations import process_in
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import records

VERIFIER = REPOSITORY / "e2e" / "verifier"
KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def restarts(namespace: Namespace, pod: str) -> int:
    found = namespace.get("pod", pod) or {}
    statuses = found.get("status", {}).get("containerStatuses") or [{}]
    count: int = statuses[0].get("restartCount", 0)
    return count


def test_a_worker_killed_under_load_loses_no_record_of_a_completed_answer(
    namespace: Namespace, gateway: str, tmp_path: Path
) -> None:
    victim = f"{gateway}-worker-0"
    before = restarts(namespace, victim)
    with steady_load(namespace, gateway, tmp_path, KEYS) as load:
        load.goes_on(250)
        os.kill(process_in(namespace, victim, b"serve"), signal.SIGKILL)
        wait_until(lambda: restarts(namespace, victim) > before, 60, "the worker is restarted")
        wait_until(lambda: namespace.is_ready(gateway, 2), 90, "the gateway is Ready again")
    assert len(load.report.whole) > 250 and not load.report.lost
    written = records(namespace, gateway)
    completions = {record["id"] for record in written if record["kind"] == "completion"}
    admissions = {record["id"] for record in written if record["kind"] == "admission"}
    aborted = {record["id"] for record in written if record["kind"] == "aborted"}
    assert admissions == completions | aborted


@pytest.mark.parametrize("moment", [0.0, 0.3, 0.8, 1.5])
def test_an_operator_killed_at_any_moment_finishes_its_work(
    operator: Namespace, namespace: Namespace, two_workers: str, moment: float
) -> None:
    namespace.kubectl("scale", f"ggw/{two_workers}", "--replicas=3")
    subprocess.run(["sleep", str(moment)], check=True)
    operator.kubectl(
        "delete", "pod", "--selector", "app.kubernetes.io/instance=proofgate", "--grace-period=0", "--force"
    )
    wait_until(lambda: namespace.is_ready(two_workers, 3), 120, "the new operator has finished the scaling")


def test_the_ledger_equals_the_tree_that_an_independent_verifier_computes(
    namespace: Namespace, gateway: str, tmp_path: Path
) -> None:
    secret = namespace.get("ggw", gateway)
    assert secret is not None
    verifying_key = secret["status"]["ledger"]["verifyingKey"]
    checked = 0
    for directory in sorted(ledger_directory(namespace, gateway).glob("*/*/")):
        checkpoint = directory / "checkpoint"
        leaves = tmp_path / "leaves"
        exported = _core.export_leaves(str(directory), str(leaves))
        origin, size, root = checkpoint.read_text().split("\n")[:3]
        if exported != int(size):
            continue
        command = ["go", "run", ".", "root", "--leaves", str(leaves)]
        computed = subprocess.run(command, cwd=VERIFIER, capture_output=True, text=True, timeout=300)
        assert computed.returncode == 0 and size in computed.stdout and root in computed.stdout
        assert origin.startswith("proofgate.dev/")
        checked += 1
    assert checked > 0
    assert verify_one_proof(namespace, gateway, verifying_key, tmp_path)


def verify_one_proof(namespace: Namespace, gateway: str, verifying_key: str, scratch: Path) -> bool:
    """Exports the proof of one completion from the volume and has the independent verifier check it."""
    request = next(record["id"] for record in records(namespace, gateway) if record["kind"] == "completion")
    for evidence in json.loads(_core.prove(str(ledger_directory(namespace, gateway)), request))["records"]:
        record, proof = scratch / "record", scratch / "record.tlog-proof"
        record.write_text(evidence["record"])
        proof.write_text(evidence["proof"])
        command = ["go", "run", ".", "proof", "--vkey", verifying_key, "--record", str(record), str(proof)]
        done = subprocess.run(command, cwd=VERIFIER, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    return True
