"""The chart on a true API server. Every other test here shows that its permissions suffice."""

import subprocess

import pytest
import yaml

from tests.controlplane.conftest import CHART, IMAGES, RELEASE, Namespace, helm
from tests.controlplane.server import binary, wait_for

pytestmark = pytest.mark.controlplane


def test_the_operators_pod_is_let_into_a_restricted_namespace(namespace: Namespace) -> None:
    labels = "app.kubernetes.io/name=proofgate-operator"
    wait_for(lambda: namespace.kubectl("get", "pod", "-l", labels, "-o", "name"), "the operator's pod")


def test_the_grant_ends_at_the_namespace_and_at_what_is_needed(namespace: Namespace) -> None:
    account = f"system:serviceaccount:{namespace.name}:{RELEASE}-proofgate-operator"

    def may(*question: str) -> bool:
        result = namespace.plane.kubectl("auth", "can-i", *question, f"--as={account}", check=False)
        return result.stdout.strip() == "yes"

    assert may("get", "secrets", "-n", namespace.name)
    assert not may("get", "secrets", "-n", "default")
    assert not may("list", "secrets", "--all-namespaces")
    for kind in ("secrets", "persistentvolumeclaims", "statefulsets", "governancegateways.proofgate.dev"):
        assert not may("delete", kind, "-n", namespace.name), kind
    assert may("delete", "networkpolicies.networking.k8s.io", "-n", namespace.name)
    assert not may("create", "pods", "-n", namespace.name)
    assert may("patch", "pods", "-n", namespace.name)
    lease = "leases.coordination.k8s.io/proofgate-proofgate-operator"
    assert may("update", lease, "-n", namespace.name)
    assert not may("update", "leases.coordination.k8s.io/of-others", "-n", namespace.name)
    assert not may("create", "pods/exec", "-n", namespace.name)
    assert not may("create", "roles.rbac.authorization.k8s.io", "-n", namespace.name)


def test_the_clusters_own_roles_grant_gateways(namespace: Namespace) -> None:
    """The roles themselves, because no controller aggregates here."""
    for role, verb, granted in (("view", "list", True), ("view", "patch", False), ("edit", "patch", True)):
        account = f"{role}-{verb}"
        name = f"proofgate-governancegateways-{role}"
        namespace.kubectl("create", "rolebinding", account, f"--clusterrole={name}", f"--user={account}")
        asked = ("auth", "can-i", verb, "ggw", "-n", namespace.name, f"--as={account}")
        answer = namespace.plane.kubectl(*asked, check=False).stdout.strip()
        assert (answer == "yes") is granted, (role, verb)


def test_what_helm_runs_besides_the_operator_is_let_into_a_restricted_namespace(namespace: Namespace) -> None:
    command = [binary("helm"), "template", RELEASE, str(CHART), "--namespace", namespace.name, *IMAGES]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    manifests = [manifest for manifest in yaml.safe_load_all(rendered) if manifest]
    (test,) = (manifest for manifest in manifests if manifest["kind"] == "Pod")
    test["metadata"].pop("namespace", None)
    namespace.apply(test)


def test_uninstalling_keeps_the_crd(namespace: Namespace) -> None:
    helm(namespace.plane, "uninstall", "crds", "--namespace", "chart")
    assert namespace.plane.get("crd", "governancegateways.proofgate.dev")
    # Adopts what the first release left, as an administrator who installs again does.
    helm(namespace.plane, "install", "crds", str(CHART), "--namespace", "chart", *IMAGES)


def test_a_kept_crd_is_taken_over_by_a_release_of_another_name_and_namespace(namespace: Namespace) -> None:
    plane = namespace.plane
    helm(plane, "uninstall", "crds", "--namespace", "chart")
    other = ("crds-again", str(CHART), "--namespace", "default", *IMAGES)
    with pytest.raises(AssertionError, match="invalid ownership metadata"):
        helm(plane, "install", *other)
    helm(plane, "install", *other, "--take-ownership")
    helm(plane, "uninstall", "crds-again", "--namespace", "default")
    helm(plane, "install", "crds", str(CHART), "--namespace", "chart", *IMAGES, "--take-ownership")
