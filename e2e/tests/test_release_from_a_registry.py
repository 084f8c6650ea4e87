"""`helm install oci://…` and nothing else: chart and images come from a registry, by the digests that were signed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from e2e.cluster import routes
from e2e.kubernetes import IMAGES, REPOSITORY, Object, run
from e2e.ports import free_port
from e2e.release import released
from e2e.release.released import Release
from e2e.tests.conftest import HOUR


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Release]:
    """A release in a registry that has one address, on loopback, for this machine and for each node.

    Nodes of the local cluster reach nobody outside. So each runs a registry of its own on the same files.
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
    """The digest of an image that was signed."""
    return made.references()[f"proofgate-{image}-{made.version}"]["digest"]


def images(pods: list[Object]) -> set[tuple[str, str]]:
    """What pods name as their images, and the digests of what they run.

    The same image of another registry, if a node has it, goes by that one's name.
    """
    return {
        (container["image"], status["imageID"].rpartition("@")[2])
        for pod in pods
        for container, status in zip(pod["spec"]["containers"], pod["status"]["containerStatuses"], strict=True)
    }


def test_the_chart_of_a_registry_needs_no_value_and_every_pod_runs_what_was_signed(
    bare_cluster: None, published: Release
) -> None:
    HOUR.create()
    chart = f"oci://{published.registry}/charts/proofgate-operator"
    place = ["--version", published.version, "--namespace", HOUR.name, "--plain-http"]
    run(["helm", "install", "proofgate", chart, *place, "--wait"])
    HOUR.wait_ready("deployment", "proofgate-proofgate-operator")
    assert images(HOUR.list("pod")) == {(published.pinned("proofgate-operator"), digest(published, "operator"))}

    # A gateway that names no worker's image gets the release's. HAProxy's comes from elsewhere.
    for name, key in (("openai", "api-key"), ("acme-keys", "ci")):
        HOUR.kubectl("create", "secret", "generic", name, f"--from-literal={key}={'x' * 48}")
    gateway = yaml.safe_load((REPOSITORY / "examples" / "quickstart.yaml").read_text())
    gateway["spec"]["loadBalancer"]["image"] = IMAGES["haproxyImage"]
    HOUR.apply(gateway)
    HOUR.wait_ready("statefulset", "quickstart-worker")
    workers = HOUR.list("pod", "proofgate.dev/gateway=quickstart,app.kubernetes.io/component=worker")
    assert images(workers) == {(published.pinned("proofgate-worker"), digest(published, "worker"))}
