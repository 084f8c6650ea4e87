"""Where network policies are enforced: who reaches workers, HAProxy and their metrics, and who does not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from e2e.kubernetes import IMAGES, Namespace, Object, run, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, wait_reachable

PROMETHEUS = Namespace("proofgate-e2e-prometheus")
STRANGERS = Namespace("proofgate-e2e-strangers")
WORKER = {"cpu": "300m", "memory": "512Mi"}
ALLOWED = {"app": "assistant"}
#: Connects to every address at once, and prints those that took the connection.
_CONNECT = """
import concurrent.futures, socket, sys
def taken(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 2).close()
        return address
    except OSError:
        return None
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(*filter(None, pool.map(taken, sys.argv[1:])))
"""


def client(name: str, **labels: str) -> Object:
    """A pod from which connections are tried."""
    container = {
        "name": "client",
        "image": IMAGES["workerImage"],
        "imagePullPolicy": "IfNotPresent",
        "command": ["/opt/proofgate/bin/python", "-c", "import signal; signal.pause()"],
        "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


def enforce(*arguments: str) -> None:
    """Makes the nodes' rules of the policies and pods that there are now."""
    run([sys.executable, "-m", "e2e.cluster", "enforce-policies", *arguments])


@pytest.fixture(scope="module")
def guarded(namespace: Namespace, gateway: str) -> Iterator[Gateway]:
    """A gateway whose metrics one namespace may read, and clients within and without its own namespace."""
    Gateway(namespace, gateway).scale(1)
    for other in (PROMETHEUS, STRANGERS):
        other.create()
        other.apply(client("client", **ALLOWED))
    namespace.apply(client("neighbour"), client("assistant", **ALLOWED))
    namespace.apply(client("monitoring", **{"proofgate.dev/monitoring": "true"}))
    namespace.apply(manifest())
    found = Gateway(namespace, "guarded")
    try:
        found.wait_settled(2)
        wait_reachable(namespace, "guarded")
        for home, name in CLIENTS.values():
            home.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
        yield found
    finally:
        enforce("--off")
        namespace.kubectl("delete", "ggw", "guarded", "--timeout=120s")
        namespace.kubectl("delete", "pod", "neighbour", "assistant", "monitoring", "--ignore-not-found")
        for other in (PROMETHEUS, STRANGERS):
            other.delete()
        Gateway(namespace, gateway).scale(2)


GATEWAYS = Namespace("proofgate-e2e")
CLIENTS = {
    "neighbour": (GATEWAYS, "neighbour"),
    "assistant": (GATEWAYS, "assistant"),
    "monitoring": (GATEWAYS, "monitoring"),
    "prometheus": (PROMETHEUS, "client"),
    "stranger": (STRANGERS, "client"),
}


def manifest(**balancer: object) -> Object:
    return fleet.gateway(
        "guarded",
        2,
        TENANTS[:12],
        worker=WORKER,
        monitoring={"fromNamespaces": [PROMETHEUS.name]},
        loadBalancer={"replicas": 2, **balancer},
    )


def ports_that_take_connections(guarded: Gateway, who: str) -> dict[str, set[int]]:
    """The ports of workers and load balancers that a client reaches: of every pod of them, or of none."""
    home, name = CLIENTS[who]
    pods = {
        component: [pod["status"]["podIP"] for pod in guarded.pods(component)]
        for component in ("worker", "load-balancer")
    }
    ports = {"worker": (8080, 9090), "load-balancer": (8080, 8404, 8405)}
    asked = {
        (component, port): {f"{address}:{port}" for address in pods[component]}
        for component in pods
        for port in ports[component]
    }
    every = sorted(set.union(*asked.values()))
    printed = home.kubectl("exec", name, "--", "/opt/proofgate/bin/python", "-c", _CONNECT, *every)
    taken = set(printed.split())
    found: dict[str, set[int]] = {component: set() for component in pods}
    for (component, port), addresses in asked.items():
        reached = addresses & taken
        assert reached in (set(), addresses), f"{who} reaches {reached} alone"
        if reached:
            found[component].add(port)
    return found


def test_without_enforcement_every_port_is_reached_by_everybody(guarded: Gateway) -> None:
    """Else the other tests would say nothing."""
    enforce("--off")
    assert ports_that_take_connections(guarded, "stranger") == {
        "worker": {8080, 9090},
        "load-balancer": {8080, 8404, 8405},
    }


@pytest.mark.parametrize(
    ("who", "worker", "balancer"),
    [
        ("stranger", set(), {8080}),
        ("neighbour", set(), {8080}),
        ("monitoring", {9090}, {8080, 8404, 8405}),
        ("prometheus", {9090}, {8080, 8404, 8405}),
    ],
)
def test_workers_are_reached_by_haproxy_alone_and_metrics_by_monitoring(
    guarded: Gateway, who: str, worker: set[int], balancer: set[int]
) -> None:
    enforce()
    assert ports_that_take_connections(guarded, who) == {"worker": worker, "load-balancer": balancer}


def test_requests_pass_and_the_operator_scales_where_policies_are_enforced(guarded: Gateway) -> None:
    enforce()
    for tenant in TENANTS[:12]:
        assert ask(guarded.namespace, guarded.name, key_of(tenant)) == 200
    # Before a worker goes, the operator asks it on its admin port whether it may.
    guarded.scale(1)
    guarded.scale(2)


def test_allow_from_shuts_everybody_else_out_of_haproxy(guarded: Gateway) -> None:
    guarded.namespace.apply(manifest(allowFrom=[{"podSelector": {"matchLabels": ALLOWED}}]))
    try:
        guarded.wait_settled(2)
        wait_until(
            lambda: "assistant" in json.dumps(guarded.namespace.get("networkpolicy", "guarded-haproxy")),
            60,
            "the policy is as the spec",
        )
        enforce()
        assert ports_that_take_connections(guarded, "assistant")["load-balancer"] == {8080}
        assert ports_that_take_connections(guarded, "neighbour")["load-balancer"] == set()
        # Its labels are the right ones, its namespace is not.
        assert ports_that_take_connections(guarded, "stranger")["load-balancer"] == set()
        assert ports_that_take_connections(guarded, "prometheus")["load-balancer"] == {8404, 8405}
    finally:
        guarded.namespace.apply(manifest())
