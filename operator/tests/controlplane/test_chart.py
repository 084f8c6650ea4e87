"""The chart on a real API server. All other tests in this folder show that its permissions suffice."""

import subprocess

import pytest
import yaml

from tests.controlplane.conftest import CHART, IMAGES, RELEASE, helm
from tests.controlplane.namespaces import ACCOUNT, Namespace, role_binding
from tests.controlplane.server import ControlPlane, binary, wait_for

pytestmark = pytest.mark.controlplane


@pytest.fixture
def released(empty_namespace: Namespace) -> Namespace:
    """A namespace in which the chart is installed."""
    own = ("--namespace", empty_namespace.name, "--set", "crds.enabled=false")
    helm(empty_namespace.plane, "install", RELEASE, str(CHART), *own, *IMAGES)
    return empty_namespace


def test_the_operators_pod_is_let_into_a_restricted_namespace(released: Namespace) -> None:
    labels = "app.kubernetes.io/name=proofgate-operator"
    wait_for(lambda: released.names("pod", labels), "the operator's pod")


def test_the_grant_ends_at_the_namespace_and_at_what_is_needed(released: Namespace) -> None:
    own = released.name

    def may(verb: str, resource: str, namespace: str = own, name: str = "") -> bool:
        return released.plane.api.may(released.account, verb, resource, namespace, name)

    wait_for(lambda: may("get", "secrets"), "the grants are effective")
    assert not may("get", "secrets", "default")
    assert not may("list", "secrets", "")
    for kind in (
        "secrets",
        "persistentvolumeclaims",
        "statefulsets.apps",
        "governancegateways.proofgate.dev",
    ):
        assert not may("delete", kind), kind
    assert may("delete", "networkpolicies.networking.k8s.io")
    assert not may("create", "pods")
    assert may("patch", "pods")
    leases = "leases.coordination.k8s.io"
    wait_for(
        lambda: may("update", leases, name=ACCOUNT),
        "the grants in the operator's own namespace are effective",
    )
    assert not may("update", leases, name="of-others")
    assert not may("create", "pods/exec")
    assert not may("create", "roles.rbac.authorization.k8s.io")


def test_the_clusters_own_roles_grant_gateways(empty_namespace: Namespace) -> None:
    """The test binds the chart's roles directly: no controller aggregates roles here."""
    for role in ("view", "edit"):
        empty_namespace.apply(role_binding(role, f"proofgate-governancegateways-{role}", role))

    def may(user: str, verb: str) -> bool:
        resource = "governancegateways.proofgate.dev"
        return empty_namespace.plane.api.may(user, verb, resource, empty_namespace.name)

    wait_for(lambda: may("view", "list") and may("edit", "patch"), "the grants are effective")
    assert not may("view", "patch")


def test_what_helm_runs_besides_the_operator_is_let_into_a_restricted_namespace(
    namespace: Namespace,
) -> None:
    command = [binary("helm"), "template", RELEASE, str(CHART), "--namespace", namespace.name, *IMAGES]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    manifests = [manifest for manifest in yaml.safe_load_all(rendered) if manifest]
    (test,) = (manifest for manifest in manifests if manifest["kind"] == "Pod")
    test["metadata"].pop("namespace", None)
    namespace.apply(test)


def test_uninstalling_keeps_the_crd(plane: ControlPlane) -> None:
    helm(plane, "uninstall", "crds", "--namespace", "chart")
    assert plane.get("crd", "governancegateways.proofgate.dev")
    # The new release adopts the CRDs that the first left, as when an administrator installs again.
    helm(plane, "install", "crds", str(CHART), "--namespace", "chart", *IMAGES)


def test_a_kept_crd_is_taken_over_by_a_release_of_another_name_and_namespace(plane: ControlPlane) -> None:
    helm(plane, "uninstall", "crds", "--namespace", "chart")
    other = ("crds-again", str(CHART), "--namespace", "default", *IMAGES)
    with pytest.raises(AssertionError, match="invalid ownership metadata"):
        helm(plane, "install", *other)
    helm(plane, "install", *other, "--take-ownership")
    helm(plane, "uninstall", "crds-again", "--namespace", "default")
    helm(plane, "install", "crds", str(CHART), "--namespace", "chart", *IMAGES, "--take-ownership")
