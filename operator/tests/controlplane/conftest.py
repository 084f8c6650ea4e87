"""One control plane for the run, with the CRD from the chart; one namespace and one operator per test."""

import itertools
import json
import os
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.controlplane.api import Manifest
from tests.controlplane.namespaces import Namespace
from tests.controlplane.server import ControlPlane, binary, wait_for
from tests.controlplane.shared import shared_plane

CHART = Path(__file__).parents[3] / "charts" / "proofgate-operator"
RELEASE = "proofgate"
# The values that the chart requires.
IMAGES = ("--set", "operator.image=operator:test", "--set", "workerImage=worker:test")
_CRDS = ("governancegateways.proofgate.dev", "gatewaytenants.proofgate.dev")
_process = os.environ.get("PYTEST_XDIST_WORKER", "main")
_numbers = itertools.count(1)


def helm(plane: ControlPlane, *arguments: str) -> str:
    """Run helm as the admin and return its output."""
    home = str(plane.folder / f"helm-{_process}")
    folders = {name: home for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
    result = subprocess.run(
        [binary("helm"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig), **folders},
        cwd=plane.folder,
    )
    assert result.returncode == 0, f"helm {' '.join(arguments)}: {result.stdout}{result.stderr}"
    return result.stdout


def established(plane: ControlPlane, crd: str) -> bool:
    """Return whether the API server serves what a CRD defines."""
    found = plane.get("crd", crd) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _install_crds(plane: ControlPlane) -> None:
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "chart"}})
    helm(plane, "install", "crds", str(CHART), "--namespace", "chart", *IMAGES)
    wait_for(lambda: all(established(plane, crd) for crd in _CRDS), "the CRDs are established")


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Iterator[ControlPlane]:
    """One control plane for all test processes, with the CRDs from the chart."""
    own = tmp_path_factory.getbasetemp()
    # Each process of pytest-xdist has its own folder in one parent folder.
    shared = own.parent if _process != "main" else own
    with shared_plane(shared / f"plane-{testrun_uid}", _install_crds) as running:
        yield running


@pytest.fixture(scope="session")
def grants() -> list[Manifest]:
    """The service account, Roles and RoleBindings of the chart for the operator in its own namespace."""
    own = ("--namespace", "NAMESPACE", "--set", "crds.enabled=false")
    command = [binary("helm"), "template", RELEASE, str(CHART), *own, *IMAGES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kinds = ("ServiceAccount", "Role", "RoleBinding")
    return [found for found in yaml.safe_load_all(done.stdout) if found and found["kind"] in kinds]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the gateway's conditions and the operator's output to the report of a failed test."""
    report = yield
    namespace = getattr(item, "funcargs", {}).get("namespace")
    if report.failed and namespace is not None:
        try:
            found = namespace.report()
        except (OSError, httpx.HTTPError) as error:
            found = f"the API server does not answer: {error!r}"
        report.sections.append(("namespace", found))
    return report


@pytest.fixture
def empty_namespace(plane: ControlPlane) -> Namespace:
    """Make a namespace in which nothing is installed.

    No test deletes it; it ends with the control plane.
    """
    made = Namespace(plane, f"test-{_process}-{next(_numbers)}")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.name, "labels": labels}})
    # The API server admits no pod without a service account.
    wait_for(lambda: made.get("sa", "default"), "the namespace has its service account")
    return made


@pytest.fixture
def namespace(empty_namespace: Namespace, grants: list[Manifest]) -> Iterator[Namespace]:
    """Make a namespace with the operator's grants from the chart; the test starts the operator."""
    found = empty_namespace
    found.apply(*json.loads(json.dumps(grants).replace("NAMESPACE", found.name)))
    # The API server's authorizer reads a cache, which receives the grants later.
    wait_for(
        lambda: found.plane.api.may(found.account, "list", "secrets", found.name), "the grants are effective"
    )
    yield found
    found.end()
