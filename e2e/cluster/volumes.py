"""Volumes that every node sees: folders on the one disk, offered as static hostPath PersistentVolumes.

A volume that its claim has left is Released, with the old data in it, and nothing takes it up again by itself:
`recycle` empties the folder and makes the volume Available.
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
    """Create the folders and their volumes. `node_folder` is where the nodes see them, if elsewhere than we do."""
    for name in names():
        folder = volume_folder() / name
        folder.mkdir(parents=True, exist_ok=True)
        # fsGroup does not apply to hostPath, and the product's pods are not root.
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
    """The names of the lab's own volumes whose claim is gone."""
    own = set(names())
    return [
        volume["metadata"]["name"]
        for volume in volumes
        if volume["metadata"]["name"] in own and volume.get("status", {}).get("phase") == "Released"
    ]


def recycle(empty: Callable[[list[str]], None] | None = None) -> int:
    """Make every Released volume Available again, emptied first (by `empty`, if not by us). Returns their number."""
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
