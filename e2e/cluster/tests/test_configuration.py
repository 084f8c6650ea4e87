"""Generated configurations: the settings that the lab relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.cluster import certs, control_plane, kind, network, nodes, volumes
from e2e.cluster.layout import NODES


def test_nodes_share_no_path_address_or_cgroup() -> None:
    first, second = NODES
    for name in ("name", "namespace", "address", "pod_range", "link", "cgroup", "folder", "containerd_socket"):
        assert getattr(first, name) != getattr(second, name)


def test_socket_paths_fit_however_deep_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFGATE_CACHE", "/" + "deep/" * 40)
    shim = f"{NODES[0].sockets}/shims/{'f' * 64}"
    assert len(shim) < 108


def test_kubelet_reserves_nothing_and_accepts_cgroup_v1() -> None:
    configuration = json.loads(nodes.kubelet_configuration(NODES[0]))
    assert configuration["failCgroupV1"] is False
    assert not {"kubeReserved", "systemReserved", "reservedSystemCPUs"} & configuration.keys()


def test_containerd_keeps_to_the_folders_of_its_node() -> None:
    text = nodes.containerd_configuration(NODES[1], Path("/cni"))
    assert str(NODES[0].folder) not in text
    assert "/run/containerd" not in text
    assert "/var/lib" not in text


def test_scheduler_packs_more_strongly_than_anything_spreads() -> None:
    profile = json.loads(control_plane.scheduler_configuration("/kubeconfig"))["profiles"][0]
    assert profile["plugins"]["score"]["enabled"] == [{"name": "NodeResourcesFit", "weight": 1000}]
    assert profile["pluginConfig"][0]["args"]["scoringStrategy"]["type"] == "MostAllocated"


def test_pods_keep_their_own_addresses() -> None:
    bridge = json.loads(network.cni_configuration(NODES[0]))["plugins"][0]
    assert bridge["ipMasq"] is False
    assert bridge["hairpinMode"] is True


def test_only_released_volumes_of_the_lab_are_recycled() -> None:
    own, other = volumes.names()[:2], "someone-elses"
    found = [
        {"metadata": {"name": own[0]}, "status": {"phase": "Released"}},
        {"metadata": {"name": own[1]}, "status": {"phase": "Bound"}},
        {"metadata": {"name": other}, "status": {"phase": "Released"}},
    ]
    assert volumes.released(found) == [own[0]]


def test_volumes_are_shared_and_kept() -> None:
    items = json.loads(volumes.manifest(Path("/volumes")))["items"]
    specs = [item["spec"] for item in items if item["kind"] == "PersistentVolume"]
    assert len(specs) == volumes.COUNT
    assert all(spec["accessModes"] == ["ReadWriteMany", "ReadWriteOnce"] for spec in specs)
    assert all(spec["persistentVolumeReclaimPolicy"] == "Retain" for spec in specs)


def test_kind_mounts_the_volumes_where_their_manifest_says() -> None:
    text = kind.configuration(Path("/made/here"))
    assert text.count(f'hostPath: "/made/here", containerPath: {volumes.KIND_FOLDER}') == 2
    assert "@" not in text


def test_a_kubeconfig_can_be_copied_into_a_pod() -> None:
    certs.folder().mkdir(parents=True)
    certs.certificate("ca").write_text("authority")
    document = json.loads(certs.kubeconfig_text("https://127.0.0.1:1", "user", "token"))
    assert "certificate-authority-data" in document["clusters"][0]["cluster"]
