"""Measures many gateways with two operators: memory, idle processor time, latency of a change, failover time.

    python -m bench.operator.thousand --gateways 1000

Prints JSON. Needs etcd, kube-apiserver and kube-controller-manager on PROOFGATE_TOOLS_PATH, or builds of
`python3 -m e2e.cluster tools kubernetes etcd`. There are no nodes: objects are reported ready at once.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.resources import RESOURCES

from bench import machine
from bench.operator.replica import Replica
from bench.operator.simulation import Simulation

_ROOT = Path(__file__).parents[2]
_NAMESPACES = 10
_MERGE_PATCH = "application/merge-patch+json"
_PATIENCE_SECONDS = 3600


def tests_of_the_operator() -> tuple[ModuleType, ModuleType]:
    """The control plane and the gateway of the operator's own tests."""
    sys.path.insert(0, str(_ROOT / "operator"))
    return importlib.import_module("tests.controlplane.server"), importlib.import_module("tests.gateways")


class Changes:
    """The time of each object's last seen change, and the waiters for its next change."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str, str], asyncio.Event] = {}

    def note(self, kind: str, namespace: str, name: str) -> None:
        """Record a change."""
        waiting = self._waiting.get((kind, namespace, name))
        if waiting:
            waiting.set()

    async def next(self, kind: str, namespace: str, name: str) -> None:
        """Return at the next change of an object."""
        event = self._waiting.setdefault((kind, namespace, name), asyncio.Event())
        await event.wait()
        event.clear()


class Bench:
    """One run."""

    def __init__(self, client: Client, gateways: ModuleType, count: int) -> None:
        self._client = client
        self._gateways = gateways
        self._names = [(f"team-{number % _NAMESPACES}", f"gateway-{number}") for number in range(count)]
        self.changes = Changes()

    async def fill(self) -> None:
        """Make the namespaces, the Secrets and the gateways."""
        for number in range(min(_NAMESPACES, len(self._names))):
            namespace = f"team-{number}"
            await self._client.request("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})
            for secret in self._gateways.user_secrets().values():
                metadata = {"name": secret["metadata"]["name"], "namespace": namespace}
                body = {**secret, "metadata": metadata}
                await self._client.request("POST", RESOURCES["Secret"].path(namespace), body=body)
        for namespace, name in self._names:
            body = {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {**self._gateways.SPEC, "replicas": 1},
            }
            await self._client.request("POST", RESOURCES[KIND].path(namespace), body=body)

    async def change(self, number: int, replicas: int) -> float:
        """Change one gateway; return the seconds until its Deployment has changed."""
        namespace, name = self._names[number % len(self._names)]
        child = f"{name}-haproxy"
        changed = asyncio.create_task(self._changed(namespace, child, replicas))
        begun = time.monotonic()
        await self._client.request(
            "PATCH",
            RESOURCES[KIND].path(namespace, name),
            body={"spec": {"loadBalancer": {"replicas": replicas}}},
            content_type=_MERGE_PATCH,
        )
        await changed
        return time.monotonic() - begun

    async def _changed(self, namespace: str, name: str, replicas: int) -> None:
        while True:
            live = self._client.store.get("Deployment", namespace, name)
            if live and live["spec"]["replicas"] == replicas:
                return
            await self.changes.next("Deployment", namespace, name)


async def _until(condition: Any, what: str) -> float:
    begun = time.monotonic()
    while not await asyncio.to_thread(condition):
        if time.monotonic() - begun > _PATIENCE_SECONDS:
            raise TimeoutError(what)
        await asyncio.sleep(1)
    return time.monotonic() - begun


async def _quiet(replica: Replica, seconds: float) -> None:
    """Wait until the operator has made no request for this long."""
    before, since = -1.0, time.monotonic()
    while time.monotonic() - since < seconds:
        now = await asyncio.to_thread(replica.metric, "proofgate_operator_reconciles_total")
        if now != before:
            before, since = now, time.monotonic()
        await asyncio.sleep(1)


async def _measure(server: ModuleType, gateways: ModuleType, plane: Any, options: Any) -> dict[str, Any]:
    client = await Client.connect(str(plane.kubeconfig))
    bench = Bench(client, gateways, options.gateways)
    simulation = asyncio.create_task(Simulation(client, bench.changes.note).run())
    replicas = [Replica(server, plane, name) for name in ("first", "second")]
    try:
        await _until(lambda: any(found.metric("proofgate_operator_leader") for found in replicas), "a leader")
        leader = next(found for found in replicas if found.metric("proofgate_operator_leader"))
        standby = next(found for found in replicas if found is not leader)
        begun = time.monotonic()
        await bench.fill()
        ready = "proofgate_operator_gateway_ready"
        await _until(lambda: leader.metric(ready) >= options.gateways, "all gateways are ready")
        all_ready = time.monotonic() - begun
        await _quiet(leader, 10)
        requests = leader.metric("proofgate_operator_requests_total")
        cpu = leader.cpu_seconds(), standby.cpu_seconds()
        await asyncio.sleep(options.idle_seconds)
        used = leader.cpu_seconds() - cpu[0], standby.cpu_seconds() - cpu[1]
        idle_requests = leader.metric("proofgate_operator_requests_total") - requests
        latencies = [await bench.change(number * 7, 3) for number in range(options.changes)]
        memory, standby_memory = leader.memory_mb(), standby.memory_mb()
        alive = leader.is_alive() and standby.is_alive()
        await asyncio.to_thread(leader.kill)
        takeover = await bench.change(1, 4)
    finally:
        simulation.cancel()
        for replica in replicas:
            replica.stop()
        await client.close()
    share = 100 / options.idle_seconds
    return {
        "gateways": options.gateways,
        "all_ready_s": round(all_ready, 1),
        "operator_rss_mb": memory[0],
        "operator_rss_highest_mb": memory[1],
        "standby_rss_mb": standby_memory[0],
        "operator_idle_cpu_percent": round(used[0] * share, 2),
        "standby_idle_cpu_percent": round(used[1] * share, 2),
        "idle_requests": idle_requests,
        "changes": len(latencies),
        "reconcile_p50_s": round(statistics.median(latencies), 3),
        "reconcile_p99_s": round(statistics.quantiles(latencies, n=100)[98], 3),
        "takeover_after_kill_s": round(takeover, 1),
        "alive": alive,
        "machine": machine.describe(),
    }


def install_crds(server: ModuleType, plane: Any) -> None:
    """Have the API server serve our kinds."""
    for path in sorted((_ROOT / "crds").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text())
        name = crd["metadata"]["name"]
        plane.apply(crd)

        def served(name: str = name) -> bool:
            conditions = (plane.get("crd", name) or {}).get("status", {}).get("conditions") or []
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

        server.wait_for(served, f"{name} is established")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gateways", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=200, help="single changes to measure")
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    options = parser.parse_args()
    server, gateways = tests_of_the_operator()
    # The started processes end with the run, even if a signal ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as folder, server.control_plane(Path(folder)) as plane:
        # Only the objects are needed, without pods of Deployments and events of controllers.
        plane.processes[-1].stop()
        install_crds(server, plane)
        result = asyncio.run(_measure(server, gateways, plane, options))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
