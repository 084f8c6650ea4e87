"""Enforced network policies: which clients reach workers, HAProxy and their metrics, and which do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest

from e2e.kubernetes import IMAGES, MADE_BY_TESTS, PATIENCE, Namespace, Object, lab, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, wait_reachable

PROMETHEUS = Namespace("proofgate-e2e-prometheus")
OUTSIDE = Namespace("proofgate-e2e-outside")
ALLOWED = {"app": "assistant"}
#: Connects to all addresses in parallel, and prints those that accepted the connection.
_CONNECT = """
import concurrent.futures, socket, sys
def taken(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
        return address
    except OSError:
        return None
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(*filter(None, pool.map(taken, sys.argv[1:])))
"""


def client(name: str, **labels: str) -> Object:
    """A pod that tries connections."""
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


@contextmanager
def enforced(namespace: Namespace) -> Iterator[None]:
    """Updates the nodes' rules repeatedly during the block, because pods (also the operator's) may be replaced and
    get new addresses.
    """

    def enforce() -> None:
        lab("enforce-policies", "--namespace", namespace.name)

    def follow() -> None:
        while not done.wait(1):
            enforce()

    done = Event()
    enforce()
    with ThreadPoolExecutor(1) as follower:
        following = follower.submit(follow)
        try:
            yield
        finally:
            done.set()
        following.result()


@pytest.fixture(scope="module")
def guarded(namespace: Namespace) -> Iterator[Gateway]:
    """A gateway whose metrics one namespace may read, and clients in its own and in other namespaces."""
    for other in (PROMETHEUS, OUTSIDE):
        other.create(**MADE_BY_TESTS)
        other.apply(client("client", **ALLOWED))
    namespace.apply(*fleet.secrets())
    namespace.apply(client("neighbour"), client("assistant", **ALLOWED))
    namespace.apply(client("monitoring", **{"proofgate.dev/monitoring": "true"}))
    namespace.apply(manifest())
    found = Gateway(namespace, "guarded")
    try:
        found.wait_settled(2)
        wait_reachable(namespace, "guarded")
        for who in (*WITHIN, *OTHERS):
            home, name = home_of(found, who)
            home.wait_ready("pod", name)
        # Without enforcement, every client must reach every port, or the tests would prove nothing.
        lab("enforce-policies", "--off")
        wait_reached(found, "stranger", set(PORTS["worker"]), set(PORTS["load-balancer"]))
        yield found
    finally:
        lab("enforce-policies", "--off")
        namespace.delete("ggw", "guarded", wait=False)
        for name in WITHIN:
            namespace.delete("pod", name, wait=False)
        for other in (PROMETHEUS, OUTSIDE):
            other.remove(wait=False)


#: Clients in the gateway's own namespace, by the names of their pods, and clients in other namespaces.
WITHIN = ("neighbour", "assistant", "monitoring")
OTHERS = {"prometheus": PROMETHEUS, "stranger": OUTSIDE}


def home_of(guarded: Gateway, who: str) -> tuple[Namespace, str]:
    """The namespace of a client, and the name of its pod."""
    return (guarded.namespace, who) if who in WITHIN else (OTHERS[who], "client")


def manifest(**balancer: object) -> Object:
    return fleet.gateway(
        "guarded",
        2,
        TENANTS[:12],
        monitoring={"fromNamespaces": [PROMETHEUS.name]},
        loadBalancer={"replicas": 2, **balancer},
    )


PORTS = {"worker": (8080, 9090), "load-balancer": (8080, 8404, 8405)}


def reached(guarded: Gateway, who: str) -> set[tuple[str, int, str]]:
    """The ports that accept a client's connections: component, port and the pod's address."""
    home, name = home_of(guarded, who)
    asked = {f"{address}:{port}": (component, port, address) for component, port, address in every_port(guarded)}
    printed = home.kubectl("exec", name, "--", "/opt/proofgate/bin/python", "-c", _CONNECT, *asked)
    return {asked[one] for one in printed.split()}


def every_port(guarded: Gateway) -> set[tuple[str, int, str]]:
    """Every port of every worker and load balancer."""
    return {
        (component, port, pod["status"]["podIP"])
        for component, ports in PORTS.items()
        for pod in guarded.pods(component)
        for port in ports
    }


def wait_reached(guarded: Gateway, who: str, worker: set[int], balancer: set[int]) -> None:
    """Waits until a client reaches exactly these ports of every pod."""
    allowed = {"worker": worker, "load-balancer": balancer}
    wanted = {found for found in every_port(guarded) if found[1] in allowed[found[0]]}

    def as_wanted() -> bool:
        found = reached(guarded, who)
        if found != wanted:
            print(f"{who} reaches {sorted(found - wanted)} and not {sorted(wanted - found)}")
        return found == wanted

    wait_until(as_wanted, PATIENCE, f"{who} reaches {allowed}")


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
    with enforced(guarded.namespace):
        wait_reached(guarded, who, worker, balancer)


def test_requests_pass_and_the_operator_scales_where_policies_are_enforced(guarded: Gateway) -> None:
    with enforced(guarded.namespace):
        for tenant in TENANTS[:12]:
            assert ask(guarded.namespace, guarded.name, key_of(tenant)) == 200
        # Before the operator removes a worker, it sends a request to the worker's admin port.
        guarded.scale(1)
        guarded.scale(2)


def test_allow_from_shuts_everybody_else_out_of_haproxy(guarded: Gateway) -> None:
    guarded.namespace.apply(manifest(allowFrom=[{"podSelector": {"matchLabels": ALLOWED}}]))
    try:
        guarded.wait_settled(2)
        wait_until(
            lambda: "assistant" in json.dumps(guarded.namespace.get("networkpolicy", "guarded-haproxy")),
            PATIENCE,
            "the policy is as the spec",
        )
        with enforced(guarded.namespace):
            wait_reached(guarded, "assistant", set(), {8080})
            wait_reached(guarded, "neighbour", set(), set())
            # Its labels match, but its namespace does not.
            wait_reached(guarded, "stranger", set(), set())
            wait_reached(guarded, "prometheus", {9090}, {8404, 8405})
    finally:
        guarded.namespace.apply(manifest())
