"""Commands of the local cluster: start, status and images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import (
    catalogue,
    cgroups,
    control_plane,
    kubectl,
    network,
    nodes,
    packages,
    processes,
    state,
    teardown,
    toolchain,
    volumes,
)
from .console import LabError, say, wait_until
from .layout import NODES, PACKAGE, kubeconfig_path, log_folder


def up() -> None:
    """Start the lab unless a healthy one runs; the remains of a broken lab are removed first."""
    state.require_root()
    state.refuse_other_owner()
    packages.ensure()
    toolchain.ensure()
    if healthy():
        volumes.recycle()
        say(f"the lab is up: {kubeconfig_path()}")
        return
    teardown.down()
    _check_machine()
    try:
        _start()
    except LabError as failure:
        say(f"it did not start, and is started once more: {failure}")
        teardown.down()
        _start()
    say(f"the lab is up: {kubeconfig_path()}")


def _start() -> None:
    """Start everything. If a part does not become ready, the error contains its name and output."""
    state.create("local")
    state.claim_machine()
    cgroups.create()
    network.create()
    archives = [catalogue.find_archive(name) for name in ("pause", "coredns")]
    say("starting containerd on both nodes, and the control plane")
    nodes.start_runtimes()
    control_plane.start_all(control_plane.open_door())
    nodes.start_kubelets()
    for name, archive in archives:
        catalogue.load(name, archive, nodes.import_image, catalogue.in_local_nodes)
    nodes.wait_until_ready()
    say("both nodes are Ready")
    kubectl.apply((PACKAGE / "manifests" / "coredns.yaml").read_text())
    volumes.offer()
    _wait_for_dns()


def down() -> None:
    state.require_root()
    teardown.down()


def healthy() -> bool:
    return control_plane.healthy() and nodes.healthy()


def status() -> list[str]:
    """One line per part: the running processes with their pids, and the nodes as the cluster reports them."""
    daemons = {daemon.name: daemon for daemon in processes.recorded()}
    expected = [*control_plane.DAEMONS, *(name for node in NODES for name in nodes.daemon_names(node))]
    lines = []
    for name in expected:
        daemon = daemons.get(name)
        running = daemon is not None and daemon.alive
        lines.append(f"{name:22} {f'pid {daemon.pid}' if daemon and running else 'not running'}")
    ready = kubectl.ready_nodes() if kubectl.ready() else set()
    for node in NODES:
        lines.append(f"node {node.name:17} {'Ready' if node.name in ready else 'not Ready'}  {node.address}")
    lines.append(f"kubeconfig             {kubeconfig_path()}")
    lines.append(f"logs                   {log_folder()}")
    return lines


def load_image(name: str) -> None:
    """Load a lab image, a built image, or an archive file into both nodes."""
    _require_lab()
    reference, archive = catalogue.find_archive(name)
    catalogue.load(reference, archive, nodes.import_image, catalogue.in_local_nodes)


def tag_image(name: str, second: str) -> None:
    """Give an image a second name on both nodes."""
    _require_lab()
    for node in NODES:
        nodes.ctr(node, "images", "tag", "--force", name, second)


def build_image(
    name: str, dockerfile: Path, context: Path, arguments: Mapping[str, str], stages: Mapping[str, Path]
) -> None:
    """Build a product image on the lab's base and load it into both nodes; unchanged steps are skipped."""
    _require_lab()
    recipe = catalogue.product_recipe(name, dockerfile, context, arguments, stages)
    catalogue.load(recipe.name, catalogue.ensure_archive(recipe), nodes.import_image, catalogue.in_local_nodes)


def node_stop(number: int, *, crash: bool) -> None:
    _require_lab()
    nodes.stop(nodes.node_numbered(number), crash=crash)


def node_start(number: int) -> None:
    _require_lab()
    nodes.restart(nodes.node_numbered(number))


def recycle_volumes() -> int:
    _require_lab()
    return volumes.recycle()


def _require_lab() -> None:
    state.require_root()
    if state.route() != "local":
        raise LabError("the lab is down", "run up first")


def _check_machine() -> None:
    """Report missing kernel features now, because otherwise a kubelet would crash a minute later."""
    left = teardown.remnants()
    if left:
        raise LabError("something of an earlier lab is left", "\n".join(left))
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    if "overlay" not in known:
        processes.run(["modprobe", "overlay"], check=False)
    if not network.bridge_filter_available():
        processes.run(["modprobe", "br_netfilter"], check=False)


def _wait_for_dns() -> None:
    def available() -> bool:
        processes.require_all()
        deployment = kubectl.get("deployment", "coredns", "--namespace=kube-system")
        return int(deployment.get("status", {}).get("availableReplicas", 0)) > 0

    def pods() -> str:
        return kubectl.kubectl("describe", "pods", "--namespace=kube-system", check=False)[-2000:]

    wait_until("CoreDNS to be available", available, 300, pods, pause=0.3)
