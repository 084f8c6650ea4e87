"""Volumes that every node sees: folders on the one disk, offered as static hostPath PersistentVolumes.

After its claim is deleted, a volume is Released with the old data, and no other claim can use it. `recycle` empties the
folder and makes the volume Available.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import kubectl
from .console import say
from .layout import volume_folder

STORAGE_CLASS = "lab-shared"
COUNT = 48
SIZE = "20Gi"
KIND_FOLDER = Path("/var/lib/proofgate-lab/volumes")


def offer(node_folder: Path | None = None) -> None:
    """Create the folders and their volumes. `node_folder` is their path in the nodes, if it differs from ours."""
    for name in names():
        folder = volume_folder() / name
        folder.mkdir(parents=True, exist_ok=True)
        # fsGroup does not apply to hostPath, and the product's pods do not run as root.
        folder.chmod(0o777)
    kubectl.apply(manifest(node_folder or volume_folder()))


def names() -> list[str]:
    return [f"{STORAGE_CLASS}-{number:02}" for number in range(1, COUNT + 1)]


def manifest(folder: Path) -> str:
    """The storage class and its volumes as one JSON list."""
    items: list[dict[str, Any]] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "kubernetes.io/no-provisioner",
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "Immediate",
        }
    ]
    for name in names():
        items.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": SIZE},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": STORAGE_CLASS,
                    "hostPath": {"path": str(folder / name), "type": "Directory"},
                },
            }
        )
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def released(volumes: Iterable[dict[str, Any]]) -> list[str]:
    """The names of the lab's volumes whose claim is deleted."""
    own = set(names())
    return [
        volume["metadata"]["name"]
        for volume in volumes
        if volume["metadata"]["name"] in own and volume.get("status", {}).get("phase") == "Released"
    ]


def recycle(empty: Callable[[list[str]], None] | None = None) -> int:
    """Empty every Released volume and make it Available; returns their number. `empty` can replace our own deletion."""
    found = released(kubectl.get("persistentvolumes")["items"])
    (empty or _empty)(found)
    for name in found:
        patch = json.dumps([{"op": "remove", "path": "/spec/claimRef"}])
        kubectl.kubectl("patch", "persistentvolume", name, "--type=json", f"--patch={patch}")
    if found:
        say(f"recycled {len(found)} volumes: {', '.join(found)}")
    return len(found)


def _empty(names_of_volumes: list[str]) -> None:
    for path in (path for name in names_of_volumes for path in (volume_folder() / name).iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
