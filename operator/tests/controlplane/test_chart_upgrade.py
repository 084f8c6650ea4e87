"""An upgrade from the previous chart to this one, and an uninstall, on a separate control plane.

`fixtures/` holds an earlier chart as `helm package` built it: the oldest whose gateways this chart accepts
unchanged. A release replaces the fixture by its own package.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofgate_operator.plan.drift import contains
from tests.controlplane.api import Manifest
from tests.controlplane.conftest import CHART, IMAGES, RELEASE, established, helm
from tests.controlplane.namespaces import gateway_manifest
from tests.controlplane.server import ControlPlane, control_plane, wait_for

pytestmark = pytest.mark.controlplane

(PREVIOUS,) = (Path(__file__).parent / "fixtures").glob("proofgate-operator-*.tgz")
NAME = f"{RELEASE}-proofgate-operator"
CRD = "governancegateways.proofgate.dev"


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Manifest]]:
    """Install the previous chart, create gateways, upgrade to this chart; yield a gateway from before."""
    with control_plane(tmp_path_factory.mktemp("upgrade"), controllers=False) as plane:
        plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        helm(plane, "install", RELEASE, str(PREVIOUS), "--namespace", "team", *IMAGES)
        wait_for(lambda: established(plane, CRD), "the CRD is established")
        # One gateway stays unchanged; each test that changes a gateway has its own.
        for name in ("demo", "changed", "deleted"):
            manifest = gateway_manifest()
            plane.apply(manifest | {"metadata": {"name": name}}, namespace="team")
        before = plane.get("ggw", "demo", "team")
        assert before
        helm(plane, "upgrade", RELEASE, str(CHART), "--namespace", "team", *IMAGES)
        yield plane, before


def test_gateways_survive_an_upgrade_of_the_chart_unchanged(upgraded: tuple[ControlPlane, Manifest]) -> None:
    plane, before = upgraded
    after = plane.get("ggw", "demo", "team")
    assert after
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    # A new default is stored only with the next write and changes no generation.
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    # Fields renamed since releases before 1.0 must be written again under their new names.
    del before["spec"]["ledger"]["rotation"]
    assert contains(after["spec"], before["spec"])


def test_fields_that_are_new_work_after_the_upgrade(upgraded: tuple[ControlPlane, Manifest]) -> None:
    plane, _ = upgraded
    plane.api.patch("ggw", "changed", {"spec": {"monitoring": {"intervalSeconds": 60}}}, "team")
    after = plane.get("ggw", "changed", "team")
    assert after and after["spec"]["monitoring"]["intervalSeconds"] == 60


def test_an_upgrade_brings_the_second_operator_and_its_lease(upgraded: tuple[ControlPlane, Manifest]) -> None:
    plane, _ = upgraded
    deployment = plane.get("deployment", NAME, "team")
    assert deployment and deployment["spec"]["replicas"] == 2
    account = f"system:serviceaccount:team:{NAME}"
    may = ("update", "leases.coordination.k8s.io", "team", NAME)
    wait_for(lambda: plane.api.may(account, *may), "the operators may renew their Lease")


def test_a_gateway_can_be_deleted_once_the_operators_are_gone(
    upgraded: tuple[ControlPlane, Manifest],
) -> None:
    plane, _ = upgraded
    helm(plane, "uninstall", RELEASE, "--namespace", "team")
    try:
        assert plane.get("deployment", NAME, "team") is None
        assert plane.get("ggw", "deleted", "team"), "uninstalling keeps the gateways"
        plane.api.delete("ggw", "deleted", "team")
        wait_for(lambda: plane.get("ggw", "deleted", "team") is None, "the gateway is gone")
    finally:
        # Later tests need the chart installed.
        helm(plane, "install", RELEASE, str(CHART), "--namespace", "team", *IMAGES)
