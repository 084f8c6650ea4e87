"""A manifest becomes a ready gateway with the documented properties."""

from __future__ import annotations

from pathlib import Path

from e2e.kubernetes import Namespace, conditions_of
from e2e.operations import pods_on_this_machine
from e2e.tests.fleet import WORKER


def test_a_manifest_becomes_ready(namespace: Namespace, gateway: str) -> None:
    found = namespace.get("ggw", gateway)
    assert found is not None
    conditions = conditions_of(found)
    for kind in ("Ready", "WorkersAvailable", "LoadBalancerAvailable", "StorageBound", "ConfigValid"):
        assert conditions[kind]["status"] == "True", conditions[kind]
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]


def test_kubectl_logs_and_exec_reach_a_worker(namespace: Namespace, gateway: str) -> None:
    worker = f"{gateway}-worker-0"
    assert "proofgate ready: traffic=" in namespace.kubectl("logs", worker)
    assert namespace.kubectl("exec", worker, "--", "/opt/proofgate/bin/proofgate", "--version").startswith("proofgate ")


def test_a_worker_is_guaranteed_its_share_of_a_core_and_its_quota_says_so(namespace: Namespace, gateway: str) -> None:
    selector = f"app.kubernetes.io/component=worker,proofgate.dev/gateway={gateway}"
    for pod in namespace.list("pods", selector):
        assert pod["status"]["qosClass"] == "Guaranteed"
        container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        groups = [group for group in pods_on_this_machine().values() if container in group]
        assert groups, f"no process of {pod['metadata']['name']} is found"
        assert cpu_quota(groups[0]) == int(WORKER["cpu"].removesuffix("m")) / 1000


def cpu_quota(group: str) -> float:
    """The number of cores that a control group may use, from cgroup v1 or v2."""
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in group.splitlines())}
    for controllers, path in paths.items():
        if "cpu" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/cpu") / path.lstrip("/")
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            return quota / int((folder / "cpu.cfs_period_us").read_text())
    quota_text, period = (Path("/sys/fs/cgroup") / paths[""].lstrip("/") / "cpu.max").read_text().split()
    return int(quota_text) / int(period)
