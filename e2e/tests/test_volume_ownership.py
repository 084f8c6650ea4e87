"""A volume that the workers' user cannot write: the worker reports the remedy, and the remedy is sufficient."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import evidence
from e2e.cluster.layout import volume_folder
from e2e.kubernetes import PATIENCE, Namespace, remove_volume, server, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, wait_reachable

NAME = "not-owned"
POD = f"{NAME}-worker-0"
#: The user and group that must own the root of a volume, from docs/how-to/install.md.
WORKERS = 65532


@pytest.fixture
def volume() -> Iterator[Path]:
    """The root of a volume that belongs to root and that only root may write.

    Kubernetes applies no fsGroup to it, as with most shared storage. It is the only volume of its storage class, which
    has the gateway's name.
    """
    # The volume of a killed run is bound to a deleted claim, so no new claim could use it.
    remove_volume(NAME)
    folder = volume_folder() / NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder.chmod(0o755)
    os.chown(folder, 0, 0)
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": NAME},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": str(folder), "type": "Directory"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": NAME,
        },
    }
    server().apply(None, manifest)
    try:
        yield folder
    finally:
        remove_volume(NAME)
        shutil.rmtree(folder)


@pytest.fixture
def not_owned(namespace: Namespace, volume: Path) -> Iterator[Gateway]:
    """A gateway of one worker on this volume."""
    ledger = {"volume": {"storageClassName": NAME, "size": "1Gi", "retainPolicy": "Delete"}}
    namespace.apply(
        fleet.secret(TENANTS[0]), fleet.gateway(NAME, 1, TENANTS[:1], ledger=ledger, loadBalancer=fleet.ONE_BALANCER)
    )
    try:
        yield Gateway(namespace, NAME)
    finally:
        namespace.delete("ggw", NAME)
        wait_until(lambda: not namespace.get("pvc", f"{NAME}-wal"), PATIENCE, "the claim is gone")


def test_a_worker_that_may_not_write_its_volume_says_what_to_do_and_starts_once_that_is_done(
    namespace: Namespace, volume: Path, not_owned: Gateway
) -> None:
    # The log is collected over several attempts, because a container that has just started has not logged anything yet.
    found: set[str] = set()

    def has_told() -> bool:
        found.update(line for line in not_owned.said(POD).splitlines() if "cannot write to" in line)
        return bool(found)

    wait_until(has_told, PATIENCE, "the worker says why it does not start")
    [told] = found
    assert f"runs as user {WORKERS} and group {WORKERS}, and cannot write to /var/lib/proofgate" in told
    assert "does not apply the pod's fsGroup" in told
    assert "access to the directory (chown, chmod g+rwx), or mount the volume with these ids" in told
    assert told.endswith("[ledger_not_writable]")

    def status() -> str:
        message: str = namespace.condition(NAME, "WorkersAvailable").get("message", "")
        return message

    wait_until(lambda: f"{POD} waits: CrashLoopBackOff" in status(), PATIENCE, "the gateway says whose log to read")
    assert not namespace.is_ready(NAME)
    assert not list(volume.iterdir()), "nothing was written"

    os.chown(volume, WORKERS, WORKERS)
    not_owned.wait_settled(1)
    wait_reachable(namespace, NAME)
    assert ask(namespace, NAME, key_of(TENANTS[0])) == 200
    wait_until(
        lambda: "completion" in {record["kind"] for record in evidence.records(volume)},
        PATIENCE,
        "the exchange is recorded",
    )
