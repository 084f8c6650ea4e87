"""Enforce the cluster's NetworkPolicies of direction Ingress in the nodes, because the lab's network plugin does not.

The rules are generated from the current policies and pods, and do not change until they are generated again or removed.
A test generates them again while pods come and go. Packets that are not allowed are dropped, as with most plugins. A
pod's own node always reaches it, for the kubelet's probes.

The rules are in the table `mangle`, which packets pass after a Service's address was replaced and before kube-proxy's
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
    """The objects from which rules are generated, as the API server returns them."""

    policies: list[Object]
    pods: list[Object]
    namespaces: list[Object]

    def addressed(self) -> Iterator[Object]:
        """The pods that have their own address."""
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
    """Generate the rules of every node from the current objects. With a namespace, only its policies count, so that
    new pods of other namespaces stay reachable.
    """
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
    """Remove the rules, if there are any."""
    for node in NODES:
        run(_jump("-D"), namespace=node.namespace, check=False)
        run(["iptables", "-t", "mangle", "-F", _CHAIN], namespace=node.namespace, check=False)
        run(["iptables", "-t", "mangle", "-X", _CHAIN], namespace=node.namespace, check=False)
    say("network policies are enforced no longer")


def _jump(how: str) -> list[str]:
    return ["iptables", "-w", "-t", "mangle", how, "FORWARD", "-j", _CHAIN]


def rules(cluster: Cluster) -> str:
    """The input of iptables-restore: the packets that each isolated pod accepts; all others are dropped."""
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
    # Policies that this module cannot enforce are errors, so that no test relies on them.
    if spec.get("egress") or "Egress" in spec.get("policyTypes", []):
        raise LabError(f"policy {head['namespace']}/{head['name']} is of direction Egress, which is not enforced here")
    same = pod["metadata"]["namespace"] == head["namespace"]
    return same and matches(spec.get("podSelector", {}), pod["metadata"].get("labels", {}))


def _accepting(cluster: Cluster, policy: Object, ingress: Object, pod: Object) -> Iterator[str]:
    """The rules with which a pod accepts the traffic that one ingress entry allows."""
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
    """The allowed sources of a policy in this namespace, as iptables matches."""
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
