"""The lab's network: one namespace per node, connected by one veth pair, with no link to the machine's own network.

lab-1 is 192.0.2.10 with pods in 198.18.0.0/24; lab-2 is 192.0.2.11 with pods in 198.18.1.0/24. Services are in
198.19.0.0/16. All ranges are reserved for documentation and benchmarks, so they hide no real addresses.
"""

from __future__ import annotations

import json
from pathlib import Path

from .layout import LAB, NODES, Node
from .processes import run

NAMESPACES = Path("/run/netns")
_SYSCTLS = ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables")


def create() -> None:
    first, second = NODES
    for node in NODES:
        run(["ip", "netns", "add", node.namespace])
    other_end = ["peer", "name", second.link, "netns", second.namespace]
    run(["ip", "link", "add", first.link, "netns", first.namespace, "type", "veth", *other_end])
    for node, peer in ((first, second), (second, first)):
        _configure(node, peer)


def _configure(node: Node, peer: Node) -> None:
    ip = ["ip", "-n", node.namespace]
    run([*ip, "link", "set", "lo", "up"])
    run([*ip, "address", "add", f"{node.address}/24", "dev", node.link])
    run([*ip, "link", "set", node.link, "up"])
    run([*ip, "route", "add", peer.pod_range, "via", peer.address])
    # Components look for the interface of the default route. Through this route, only the peer is reachable.
    run([*ip, "route", "add", "default", "dev", node.link])
    for name in _SYSCTLS:
        run(["sh", "-c", f"echo 1 > /proc/sys/{name}"], namespace=node.namespace)


def remove() -> None:
    for name in remaining():
        run(["ip", "netns", "delete", name], check=False)


def remaining() -> list[str]:
    """The lab's named network namespaces."""
    if not NAMESPACES.is_dir():
        return []
    return sorted(path.name for path in NAMESPACES.iterdir() if path.name.startswith(f"{LAB}-"))


def bridge_filter_available() -> bool:
    """Whether bridged packets pass iptables. If not, a pod cannot use Services with a backend on its own node."""
    return Path("/proc/sys/net/bridge/bridge-nf-call-iptables").exists()


def inhabitants() -> list[int]:
    """All processes in the lab's namespaces, also those that the lab did not start."""
    inodes = set()
    for name in remaining():
        try:
            inodes.add((NAMESPACES / name).stat().st_ino)
        except OSError:
            continue
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "ns" / "net").stat().st_ino in inodes:
                    pids.append(int(folder.name))
            except OSError:
                continue
    return sorted(pids)


def cni_configuration(node: Node) -> str:
    """The bridge and port map for one node. There is no masquerading, so pods see each other's own addresses."""
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(node.folder / "addresses"),
            "ranges": [[{"subnet": node.pod_range}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "1.0.0", "name": LAB, "plugins": plugins}, indent=2)
