"""Enforce the cluster's NetworkPolicies of direction Ingress in the nodes, as the lab's network plugin does not.

The rules are made from the policies and pods that exist at that moment, and stay until they are made again or removed:
a test makes them again while pods come and go. What is not allowed is dropped, as most plugins do. A pod's own node
always reaches it, for the kubelet's probes.

They are in the table `mangle`, which packets pass after a Service's address was replaced and before kube-proxy's
rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from . import kubectl
from .console import LabError, say
from .layout import NODES
from .processes import run

Object = dict[str, Any]
_CHAIN = "LAB-POLICY"
_GONE = {"Succeeded", "Failed"}


@dataclass(frozen=True)
class Cluster:
    """What rules are made from: objects as the API server has them."""

    policies: list[Object]
    pods: list[Object]
    namespaces: list[Object]

    def addressed(self) -> Iterator[Object]:
        """Pods with an address of their own."""
        for pod in self.pods:
            status = pod.get("status", {})
            if status.get("podIP") and status.get("phase") not in _GONE and not pod["spec"].get("hostNetwork"):
                yield pod

    def labels_of(self, namespace: str) -> dict[str, str]:
        """A namespace's labels."""
        for one in self.namespaces:
            if one["metadata"]["name"] == namespace:
                labels: dict[str, str] = one["metadata"].get("labels", {})
                return labels
        return {}


def enforce(namespace: str | None = None) -> None:
    """Make the rules of every node from what the cluster holds now; of one namespace's policies alone if it is named,
    so that nobody else's new pods are kept out."""
    policies = kubectl.get("networkpolicies", f"--namespace={namespace}" if namespace else "--all-namespaces")["items"]
    pods = kubectl.get("pods", "--all-namespaces")["items"]
    cluster = Cluster(policies, pods, kubectl.get("namespaces")["items"])
    text = rules(cluster)
    for node in NODES:
        run(["iptables-restore", "--noflush"], namespace=node.namespace, text_in=text)
        if run(_jump("-C"), namespace=node.namespace, check=False).returncode:
            run(_jump("-A"), namespace=node.namespace)
    say(f"{len(cluster.policies)} network policies are enforced, as of now")


def lift() -> None:
    """Take the rules away, if there are any."""
    for node in NODES:
        run(_jump("-D"), namespace=node.namespace, check=False)
        run(["iptables", "-t", "mangle", "-F", _CHAIN], namespace=node.namespace, check=False)
        run(["iptables", "-t", "mangle", "-X", _CHAIN], namespace=node.namespace, check=False)
    say("network policies are enforced no longer")


def _jump(how: str) -> list[str]:
    return ["iptables", "-w", "-t", "mangle", how, "FORWARD", "-j", _CHAIN]


def rules(cluster: Cluster) -> str:
    """The rules as iptables-restore reads them: what an isolated pod accepts, and that it accepts nothing else."""
    lines = [f"-A {_CHAIN} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"]
    for pod in cluster.addressed():
        selecting = [policy for policy in cluster.policies if _selects(policy, pod)]
        if not selecting:
            continue
        address = pod["status"]["podIP"]
        for policy in selecting:
            for ingress in policy["spec"].get("ingress", []):
                lines += _accepting(cluster, policy, ingress, pod)
        lines.append(f"-A {_CHAIN} -d {address} -j DROP")
    return "\n".join(["*mangle", f":{_CHAIN} - [0:0]", *lines, "COMMIT", ""])


def _selects(policy: Object, pod: Object) -> bool:
    spec, head = policy["spec"], policy["metadata"]
    # What is not enforced must not look as if it were.
    if spec.get("egress") or "Egress" in spec.get("policyTypes", []):
        raise LabError(f"policy {head['namespace']}/{head['name']} is of direction Egress, which is not enforced here")
    same = pod["metadata"]["namespace"] == head["namespace"]
    return same and matches(spec.get("podSelector", {}), pod["metadata"].get("labels", {}))


def _accepting(cluster: Cluster, policy: Object, ingress: Object, pod: Object) -> Iterator[str]:
    """The rules by which a pod accepts what one entry of a policy allows."""
    ports = list(_ports(ingress.get("ports"), pod))
    peers = ingress.get("from")
    for source in [""] if not peers else _sources(cluster, policy["metadata"]["namespace"], peers):
        for port in ports:
            yield f"-A {_CHAIN} -d {pod['status']['podIP']}{source}{port} -j RETURN"


def _ports(ports: list[Object] | None, pod: Object) -> Iterator[str]:
    if not ports:
        yield ""
        return
    for port in ports:
        protocol = port.get("protocol", "TCP").lower()
        wanted = port.get("port")
        if isinstance(wanted, str):
            named = [
                declared["containerPort"]
                for container in pod["spec"]["containers"]
                for declared in container.get("ports", [])
                if declared.get("name") == wanted and declared.get("protocol", "TCP").lower() == protocol
            ]
        else:
            named = [wanted]
        for number in named:
            last = f":{port['endPort']}" if "endPort" in port else ""
            yield f" -p {protocol}" + (f" --dport {number}{last}" if number is not None else "")


def _sources(cluster: Cluster, namespace: str, peers: list[Object]) -> Iterable[str]:
    """Where packets come from that a policy of this namespace allows, as matches of iptables."""
    found: set[str] = set()
    for peer in peers:
        if "ipBlock" in peer:
            block = peer["ipBlock"]
            if block.get("except"):
                raise LabError("an ipBlock with `except` is not enforced here")
            found.add(f" -s {block['cidr']}")
            continue
        for pod in cluster.addressed():
            head = pod["metadata"]
            if "namespaceSelector" in peer:
                inside = matches(peer["namespaceSelector"], cluster.labels_of(head["namespace"]))
            else:
                inside = head["namespace"] == namespace
            if inside and matches(peer.get("podSelector", {}), head.get("labels", {})):
                found.add(f" -s {pod['status']['podIP']}")
    return sorted(found)


def matches(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector selects these labels; an empty one selects all."""
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions", []):
        value, values = labels.get(one["key"]), one.get("values", [])
        holds = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds[one["operator"]]:
            return False
    return True
