"""A manifest becomes a working gateway, built as promised."""

from __future__ import annotations

import base64
from pathlib import Path

from e2e.kubernetes import CommandError, Namespace, conditions_of, run
from e2e.operations import pods_on_this_machine
from e2e.tests.fleet import MODEL, TENANTS, WORKER, key_of


def test_a_manifest_becomes_ready(namespace: Namespace, gateway: str) -> None:
    found = namespace.get("ggw", gateway)
    assert found is not None
    conditions = conditions_of(found)
    for kind in ("Ready", "WorkersAvailable", "LoadBalancerAvailable", "StorageBound", "ConfigValid"):
        assert conditions[kind]["status"] == "True", conditions[kind]
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]


def test_kubectl_get_answers_the_first_question(namespace: Namespace, gateway: str) -> None:
    head, row = namespace.kubectl("get", "ggw", gateway).splitlines()
    assert {"DESIRED", "WORKERS", "AVAILABLE", "READY", "STATUS", "AGE"} <= set(head.split())
    assert row.split()[:3] == [gateway, "2", "2"]


def test_kubectl_logs_and_exec_reach_a_worker(namespace: Namespace, gateway: str) -> None:
    worker = f"{gateway}-worker-0"
    assert "proofgate ready: traffic=" in namespace.kubectl("logs", worker)
    assert namespace.kubectl("exec", worker, "--", "/opt/proofgate/bin/proofgate", "--version").startswith("proofgate ")


def test_the_openai_client_gets_unary_and_streamed_answers(namespace: Namespace, gateway: str) -> None:
    # Seconds to import, which the other processes of a run need not spend.
    from openai import OpenAI

    with namespace.forwarded(f"service/{gateway}", 80) as address:
        for tenant in TENANTS[:2]:
            with OpenAI(base_url=f"http://{address}/v1", api_key=key_of(tenant)) as client:
                completion = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
                assert completion.usage is not None and completion.usage.completion_tokens == 8
                stream = client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
                )
                assert [chunk.choices[0].finish_reason for chunk in stream][-1] == "stop"


def test_a_worker_is_guaranteed_its_share_of_a_core_and_its_quota_says_so(namespace: Namespace, gateway: str) -> None:
    selector = f"app.kubernetes.io/component=worker,proofgate.dev/gateway={gateway}"
    for pod in namespace.list("pods", selector):
        assert pod["status"]["qosClass"] == "Guaranteed"
        container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        groups = [group for group in pods_on_this_machine().values() if container in group]
        assert groups, f"no process of {pod['metadata']['name']} is found"
        assert cpu_quota(groups[0]) == int(WORKER["cpu"].removesuffix("m")) / 1000


def cpu_quota(group: str) -> float:
    """Cores that a control group may use, from cgroup v1 or v2."""
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in group.splitlines())}
    for controllers, path in paths.items():
        if "cpu" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/cpu") / path.lstrip("/")
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            return quota / int((folder / "cpu.cfs_period_us").read_text())
    quota_text, period = (Path("/sys/fs/cgroup") / paths[""].lstrip("/") / "cpu.max").read_text().split()
    return int(quota_text) / int(period)


def test_no_key_stands_in_clear_in_anything_the_operator_made(namespace: Namespace, gateway: str) -> None:
    keys = [key_of(tenant, number).encode() for tenant in TENANTS for number in (0, 1)]
    selector = "app.kubernetes.io/managed-by=proofgate-operator"
    kinds = "configmaps,statefulsets,deployments,services,pods,events,ggw"
    texts = [namespace.kubectl("get", kinds, "--selector", selector, "--output", "json").encode()]
    texts.append(namespace.kubectl("get", "ggw", gateway, "--output", "json").encode())
    for secret in namespace.list("secrets", selector):
        texts += [base64.b64decode(value) for value in secret.get("data", {}).values()]
    for key in keys:
        assert all(key not in text and base64.b64encode(key) not in text for text in texts)


def test_the_operators_grant_ends_at_its_namespaces(operator: Namespace, namespace: Namespace) -> None:
    account = f"system:serviceaccount:{operator.name}:proofgate-proofgate-operator"

    def may(verb: str, kind: str, where: str) -> bool:
        command = ["kubectl", "auth", "can-i", verb, kind, "--namespace", where, "--as", account]
        try:
            return run(command).strip() == "yes"
        except CommandError as refusal:
            assert "no" in refusal.stderr.split(), refusal
            return False

    assert may("get", "secrets", namespace.name)
    assert not may("get", "secrets", "kube-system")
    assert not may("create", "clusterroles", namespace.name)
