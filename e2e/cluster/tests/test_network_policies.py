"""The packets that the rules for network policies let through."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.cluster.console import LabError
from e2e.cluster.network_policies import Cluster, matches, rules

ACCEPTED_ALREADY = "-A LAB-POLICY -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"


def pod(address: str, namespace: str = "team", **labels: str) -> dict[str, Any]:
    ports = [{"name": "http", "containerPort": 8080}]
    return {
        "metadata": {"namespace": namespace, "labels": labels},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"podIP": address, "phase": "Running"},
    }


def made(spec: dict[str, Any], *pods: dict[str, Any]) -> list[str]:
    """The rules of one policy, without the rule that lets answers through."""
    names = {one["metadata"]["namespace"] for one in pods}
    spaces = [{"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}} for name in sorted(names)]
    policy = {"metadata": {"namespace": "team", "name": "policy"}, "spec": spec}
    head, chain, *lines, end, _ = rules(Cluster([policy], list(pods), spaces)).split("\n")
    assert (head, chain, end, lines.pop(0)) == ("*mangle", ":LAB-POLICY - [0:0]", "COMMIT", ACCEPTED_ALREADY)
    return lines


def test_a_pod_that_no_policy_selects_is_open() -> None:
    assert made({"podSelector": {"matchLabels": {"app": "other"}}}, pod("10.0.0.1", app="web")) == []


def test_a_policy_without_an_entry_lets_nothing_through() -> None:
    assert made({"podSelector": {}}, pod("10.0.0.1")) == ["-A LAB-POLICY -d 10.0.0.1 -j DROP"]


def test_a_peer_of_another_namespace_needs_a_selector_of_namespaces() -> None:
    web, near, far = pod("10.0.0.1", app="web"), pod("10.0.0.2", app="ask"), pod("10.0.1.2", "far", app="ask")
    asking = {"podSelector": {"matchLabels": {"app": "ask"}}}
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [asking]}]}
    assert made(spec, web, near, far) == [
        "-A LAB-POLICY -d 10.0.0.1 -s 10.0.0.2 -j RETURN",
        "-A LAB-POLICY -d 10.0.0.1 -j DROP",
    ]
    named = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "far"}}}
    spec["ingress"] = [{"from": [{**asking, **named}]}]
    assert made(spec, web, near, far)[0] == "-A LAB-POLICY -d 10.0.0.1 -s 10.0.1.2 -j RETURN"


def test_ports_are_numbers_names_and_ranges() -> None:
    ports = [{"port": 9090}, {"port": "http", "protocol": "TCP"}, {"port": 1, "endPort": 9, "protocol": "UDP"}]
    assert made({"podSelector": {}, "ingress": [{"ports": ports}]}, pod("10.0.0.1")) == [
        "-A LAB-POLICY -d 10.0.0.1 -p tcp --dport 9090 -j RETURN",
        "-A LAB-POLICY -d 10.0.0.1 -p tcp --dport 8080 -j RETURN",
        "-A LAB-POLICY -d 10.0.0.1 -p udp --dport 1:9 -j RETURN",
        "-A LAB-POLICY -d 10.0.0.1 -j DROP",
    ]


def test_peers_that_are_no_pod_of_now_open_nothing() -> None:
    nobody = {"podSelector": {"matchLabels": {"app": "ask"}}}
    assert made({"podSelector": {}, "ingress": [{"from": [nobody]}]}, pod("10.0.0.1")) == [
        "-A LAB-POLICY -d 10.0.0.1 -j DROP"
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"podSelector": {}, "policyTypes": ["Egress"]},
        {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}]},
    ],
)
def test_what_is_not_enforced_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(LabError, match="not enforced"):
        made(spec, pod("10.0.0.1"))


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [("In", ["a"], True), ("NotIn", ["a"], False), ("Exists", [], True), ("DoesNotExist", [], False)],
)
def test_expressions_of_a_selector(operator: str, values: list[str], selected: bool) -> None:
    expression = {"key": "app", "operator": operator, "values": values}
    assert matches({"matchExpressions": [expression]}, {"app": "a"}) is selected
