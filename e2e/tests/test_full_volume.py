"""A full volume stops admission with a clear answer; space resumes it, and nothing that was answered is lost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from proofgate import _core

from e2e import evidence
from e2e.cluster.layout import volume_folder
from e2e.kubernetes import PATIENCE, Namespace, lab, remove_volume, server, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import MODEL, TENANTS, key_of
from e2e.tests.traffic import ask, url, wait_reachable

KEY = key_of(TENANTS[0])
#: Room for one segment of 32 MiB and not for a second one.
SMALL, LARGE = "48m", "256m"
#: Of a size that fills it soon.
QUICK = {"cpu": "500m", "memory": "512Mi"}


@pytest.fixture
def small_volume(namespace: Namespace) -> Iterator[Path]:
    """A claim `small` on a volume of its own, which is a file system of 48 MiB."""
    folder = volume_folder() / "small"
    folder.mkdir(exist_ok=True)
    # What a run left that was killed: its volume is bound to a claim that is gone, and no other claim gets it.
    remove_volume("small")
    while folder.is_mount():
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=0777", "tmpfs", str(folder)], check=True)
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeMode": "Filesystem"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "small"},
        "spec": {
            **common,
            "capacity": {"storage": "48Mi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "small"},
        "spec": {**common, "volumeName": "small", "resources": {"requests": {"storage": "48Mi"}}},
    }
    server().apply(None, volume)
    namespace.apply(claim)
    try:
        yield folder
    finally:
        namespace.delete("pvc", "small")
        remove_volume("small")
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def flood(namespace: Namespace, gateway: str, folder: Path) -> None:
    """Five seconds of requests, as many as the gateway takes."""
    script = folder / "request.lua"
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]})
    script.write_text(
        f'wrk.method = "POST"\nwrk.body = {json.dumps(body)}\nwrk.headers["Authorization"] = "Bearer {KEY}"\n'
    )
    target = f"{url(namespace, gateway)}/chat/completions"
    lab("inside", "--", "wrk", "-t1", "-c16", "-d5s", "-s", str(script), target)


def test_a_full_volume_stops_admission_until_there_is_space(
    namespace: Namespace, small_volume: Path, tmp_path: Path
) -> None:
    # Nobody knows what is on a claim that somebody brings, so whoever brings it names the key as well.
    key, _ = _core.generate_key(f"proofgate.dev/{namespace.name}/small")
    head = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "small-key"}}
    namespace.apply({**head, "stringData": {"signing-key": key}})
    ledger = {"volume": {"existingClaim": "small"}, "signingKeySecretRef": {"name": "small-key"}}
    namespace.apply(
        fleet.secret(TENANTS[0]),
        fleet.gateway("small", 1, TENANTS[:1], worker=QUICK, ledger=ledger, loadBalancer=fleet.ONE_BALANCER),
    )
    small = Gateway(namespace, "small")
    try:
        small.wait_settled(1)
        wait_reachable(namespace, "small")
        assert ask(namespace, "small", KEY) == 200

        def refused() -> bool:
            flood(namespace, "small", tmp_path)
            return ask(namespace, "small", KEY) == 503

        wait_until(refused, 2 * PATIENCE, "the volume is full and admission has stopped")
        assert small.restarts("small-worker-0") == 0
        assert namespace.is_ready("small", 1), "a full volume is no reason to be restarted"
        subprocess.run(["mount", "-o", f"remount,size={LARGE}", str(small_volume)], check=True)
        wait_until(lambda: ask(namespace, "small", KEY) == 200, PATIENCE, "admission has resumed")
        kinds = [record["kind"] for record in evidence.records(small_volume)]
        assert kinds.count("admission") == kinds.count("completion")
    finally:
        small.delete()
