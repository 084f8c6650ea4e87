"""The chart on a true API server. Every other test here shows that its permissions suffice."""

import subprocess

import pytest

from tests.controlplane.conftest import CHART, RELEASE, Namespace, helm
from tests.controlplane.server import binary, wait_for

pytestmark = pytest.mark.controlplane


def template(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [binary("helm"), "template", RELEASE, str(CHART), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_operators_pod_is_let_into_a_restricted_namespace(namespace: Namespace) -> None:
    labels = "app.kubernetes.io/name=proofgate-operator"
    wait_for(lambda: namespace.kubectl("get", "pod", "-l", labels, "-o", "name"), 10, "the operator's pod")


def test_the_grant_ends_at_the_namespace_and_at_what_is_needed(namespace: Namespace) -> None:
    account = f"system:serviceaccount:{namespace.name}:{RELEASE}-proofgate-operator"

    def may(*question: str) -> bool:
        result = namespace.plane.kubectl("auth", "can-i", *question, f"--as={account}", check=False)
        return result.stdout.strip() == "yes"

    assert may("get", "secrets", "-n", namespace.name)
    assert not may("get", "secrets", "-n", "default")
    assert not may("list", "secrets", "--all-namespaces")
    for kind in ("secrets", "persistentvolumeclaims", "statefulsets", "pods"):
        assert not may("delete", kind, "-n", namespace.name), kind
    assert not may("create", "pods", "-n", namespace.name)
    assert may("patch", "pods", "-n", namespace.name)
    assert not may("create", "pods/exec", "-n", namespace.name)
    assert not may("create", "roles.rbac.authorization.k8s.io", "-n", namespace.name)


def test_uninstalling_keeps_the_crd(namespace: Namespace) -> None:
    helm(namespace.plane, "uninstall", "crds", "--namespace", "chart")
    assert namespace.plane.get("crd", "governancegateways.proofgate.dev")
    # Adopts what the first release left, as an administrator who installs again does.
    helm(namespace.plane, "install", "crds", str(CHART), "--namespace", "chart")


def test_an_unknown_value_is_refused() -> None:
    refused = template("--set", "workerimage=x")
    assert refused.returncode != 0 and "workerimage" in refused.stderr


def test_watched_namespaces_and_cluster_wide_exclude_each_other() -> None:
    refused = template("--set", "clusterWide=true", "--set", "watchNamespaces={team}")
    assert refused.returncode != 0 and "watchNamespaces" in refused.stderr


def test_every_watched_namespace_gets_a_role_and_nothing_is_cluster_wide() -> None:
    rendered = template("--set", "watchNamespaces={a,b}").stdout
    assert rendered.count("\nkind: Role\n") == 2
    assert "ClusterRole" not in rendered
    assert 'value: "a,b"' in rendered


def test_a_cluster_wide_operator_has_one_cluster_role() -> None:
    rendered = template("--set", "clusterWide=true").stdout
    assert rendered.count("\nkind: ClusterRole\n") == 1
    assert "\nkind: Role\n" not in rendered
    assert 'name: WATCH_NAMESPACES, value: ""' in rendered
