"""`helm install oci://…` alone: chart and images come from a registry, by the signed digests."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from e2e import tutorial
from e2e.cluster import routes
from e2e.kubernetes import IMAGES, REPOSITORY, Object
from e2e.ports import free_port
from e2e.release import released
from e2e.release.released import Release
from e2e.tests import test_first_hour
from e2e.tests.conftest import HOUR


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Release]:
    """A release in a registry with one address on loopback, for this machine and for each node.

    Nodes of the local cluster cannot reach other machines. So each node runs a registry on the same files.
    """
    if routes.chosen() != "local":
        pytest.skip("kind's nodes have a loopback of their own, where nothing of ours can listen")
    address = f"127.0.0.1:{free_port()}"
    data = tmp_path / "machine" / "data"
    with ExitStack() as stack:
        stack.enter_context(released.registry(tmp_path / "machine", address))
        made = released.release(tmp_path / "dist", address, released.new_key(tmp_path / "release.key"))
        released.publish(made)
        for number in (1, 2):
            inside = (sys.executable, "-m", "e2e.cluster", "inside", "--node", str(number), "--")
            stack.enter_context(released.registry(tmp_path / f"node-{number}", address, inside, data))
        yield made


def digest(made: Release, image: str) -> str:
    """The signed digest of an image."""
    return made.references()[f"proofgate-{image}-{made.version}"]["digest"]


def images(pods: list[Object]) -> set[tuple[str, str]]:
    """The image names of pods, and the digests of their running images.

    If a node has the same image from another registry, the status may contain that registry's name.
    """
    return {
        (container["image"], status["imageID"].rpartition("@")[2])
        for pod in pods
        for container, status in zip(pod["spec"]["containers"], pod["status"]["containerStatuses"], strict=True)
    }


def from_the_registry(made: Release, port: int, folder: Path) -> dict[str, str]:
    """The replacements of a tutorial reader without a checkout: the chart's address instead of its folder."""
    gateway = yaml.safe_load((REPOSITORY / "examples" / "quickstart.yaml").read_text())
    # HAProxy's own image cannot be pulled without internet access; the provider is the stand-in.
    gateway["spec"]["loadBalancer"]["image"] = IMAGES["haproxyImage"]
    gateway["spec"]["providers"][0]["baseURL"] = "http://mock-upstream:9000/v1"
    (folder / "quickstart.yaml").write_text(yaml.safe_dump(gateway))
    chart = f"oci://{made.registry}/charts/proofgate-operator --version {made.version} --plain-http"
    images = " --set operator.image=ghcr.io/you/proofgate-operator --set workerImage=ghcr.io/you/proofgate-worker"
    changed = test_first_hour.changes(port)
    for replaced_here in ("ghcr.io/you/proofgate-operator", "ghcr.io/you/proofgate-worker"):
        del changed[replaced_here]
    return changed | {
        "helm install proofgate charts/proofgate-operator": f"helm install proofgate {chart}",
        f" \\\n   {images}": "",
        "kubectl apply -f examples/quickstart.yaml": f"kubectl apply -f {folder}/quickstart.yaml",
    }


def test_the_chart_of_a_registry_needs_no_value_and_leads_to_a_verified_answer_of_what_was_signed(
    bare_cluster: None, published: Release, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    test_first_hour.prepare()
    port, began = free_port(), time.monotonic()
    script = tutorial.replaced(tutorial.script("Install and ask"), from_the_registry(published, port, tmp_path))
    script += tutorial.replaced(tutorial.script("Verify the answer"), test_first_hour.verifying(port, tmp_path))
    told = test_first_hour.follow(script, tmp_path)
    record_property("seconds", round(time.monotonic() - began))
    assert "\nverified\n" in told

    operator = HOUR.list("pod", "app.kubernetes.io/name=proofgate-operator")
    assert images(operator) == {(published.pinned("proofgate-operator"), digest(published, "operator"))}
    # A gateway without a worker image in its spec uses the release's.
    workers = HOUR.list("pod", "proofgate.dev/gateway=quickstart,app.kubernetes.io/component=worker")
    assert images(workers) == {(published.pinned("proofgate-worker"), digest(published, "worker"))}
