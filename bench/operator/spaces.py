"""Measures thousands of namespaces, most of them only of tenants: memory, connections, a restart, a key change.

    python -m bench.operator.spaces --namespaces 2000 --gateways 200 --tenants 5000

Prints JSON. `--cluster-wide` has the operator serve all namespaces in place of a list. Needs what
`bench.operator.thousand` does; objects are reported ready at once.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.build.tenant_shards import KEYS
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.resources import RESOURCES

from bench import machine
from bench.operator.replica import Replica
from bench.operator.simulation import Simulation
from bench.operator.thousand import install_crds, tests_of_the_operator

_ACCOUNT = "operator"
_GATEWAY = "gateway"
_CONCURRENCY = 16
_MERGE_PATCH = "application/merge-patch+json"
_PATIENCE_SECONDS = 3600
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_READ = ["get", "list", "watch"]
#: The rules of the chart's Role for a namespace of tenants.
_TENANT_RULES = [
    {"apiGroups": ["proofgate.dev"], "resources": ["gatewaytenants"], "verbs": _READ},
    {"apiGroups": ["proofgate.dev"], "resources": ["gatewaytenants/status"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": _READ},
]
#: These rules allow more than the chart's, which does not matter here.
_GATEWAY_RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


@dataclass(frozen=True)
class Size:
    """The size of the cluster: namespaces, gateways (one namespace each), and tenants in the other namespaces."""

    namespaces: int
    gateways: int
    tenants: int

    @property
    def homes(self) -> list[str]:
        """The namespaces of gateways."""
        return [f"gateways-{number}" for number in range(self.gateways)]

    @property
    def teams(self) -> list[str]:
        """The namespaces of tenants."""
        return [f"team-{number}" for number in range(self.namespaces - self.gateways)]

    def home_of(self, tenant: int) -> str:
        """The namespace of a tenant's gateway."""
        return f"gateways-{tenant % self.gateways}"

    def team_of(self, tenant: int) -> str:
        """The namespace of a tenant."""
        return f"team-{tenant % (self.namespaces - self.gateways)}"


class World:
    """The content of the cluster."""

    def __init__(self, client: Client, gateways: ModuleType, size: Size) -> None:
        self._client, self._gateways, self._size = client, gateways, size

    async def make_namespaces(self, *, cluster_wide: bool) -> None:
        """Make the namespaces, and the operator's account with its grants there."""
        for name, rules in (("bench-gateways", _GATEWAY_RULES), ("bench-tenants", _TENANT_RULES)):
            body = {"metadata": {"name": name}, "rules": rules}
            await self._make(f"{_RBAC}/clusterroles", body)
        await self._make(RESOURCES["ServiceAccount"].path("default"), {"metadata": {"name": _ACCOUNT}})
        await self._grant("bench-gateways", "default")
        names = [*self._size.homes, *self._size.teams]
        await _each(names, lambda name: self._make("/api/v1/namespaces", {"metadata": {"name": name}}))
        if cluster_wide:
            await self._grant("bench-gateways", None)
            return
        await _each(self._size.homes, lambda name: self._grant("bench-gateways", name))
        await _each(self._size.teams, lambda name: self._grant("bench-tenants", name))

    async def fill(self) -> None:
        """Make gateways, tenants and the Secrets of both."""
        await _each(self._size.homes, self._make_gateway)
        await _each(range(self._size.tenants), self._make_tenant)

    async def change_key(self, tenant: int, text: str) -> float:
        """Give a tenant another key; return the seconds until its gateway's shard has it."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        begun = time.monotonic()
        path = RESOURCES["Secret"].path(self._size.team_of(tenant), f"keys-{tenant}")
        await self._client.request("PATCH", path, body={"stringData": {"key": text}}, content_type=_MERGE_PATCH)
        while time.monotonic() - begun < _PATIENCE_SECONDS / 60:
            if digest in await self._keys(self._size.home_of(tenant)):
                return time.monotonic() - begun
            await asyncio.sleep(0.02)
        raise TimeoutError(f"the key of tenant {tenant} is in no shard")

    async def _keys(self, home: str) -> str:
        """Return the lines of keys of a namespace's shards."""
        found = await self._client.list("Secret", home)
        shards = (live for live in found if live["metadata"]["name"].startswith(f"{_GATEWAY}-tenants-"))
        return "".join(base64.b64decode((live.get("data") or {}).get(KEYS, "")).decode() for live in shards)

    async def told(self) -> int:
        """Return the number of tenants whose status says that their keys are in effect."""
        found = await self._client.list(TENANT_KIND, None)
        return sum(
            any(one["type"] == "Programmed" and one["status"] == "True" for one in tenant["status"]["conditions"])
            for tenant in found
            if tenant.get("status", {}).get("conditions")
        )

    async def _make_gateway(self, home: str) -> None:
        for secret in self._gateways.user_secrets().values():
            body = {**secret, "metadata": {"name": secret["metadata"]["name"]}}
            await self._make(RESOURCES["Secret"].path(home), body)
        plan = {"name": "gold", "models": ["gpt-4o-mini"]}
        attached = {"plans": [plan], "allowedTenants": {"namespaces": {"from": "All"}}}
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": _GATEWAY},
            "spec": {**self._gateways.SPEC, "replicas": 1, **attached},
        }
        await self._make(RESOURCES[KIND].path(home), body)

    async def _make_tenant(self, number: int) -> None:
        team = self._size.team_of(number)
        body = {"metadata": {"name": f"keys-{number}"}, "stringData": {"key": _key("bench", number)}}
        await self._make(RESOURCES["Secret"].path(team), body)
        tenant = {
            "apiVersion": API_VERSION,
            "kind": TENANT_KIND,
            "metadata": {"name": f"tenant-{number}"},
            "spec": {
                "gatewayRef": {"name": _GATEWAY, "namespace": self._size.home_of(number)},
                "plan": "gold",
                "apiKeys": [{"name": "key", "secretRef": {"name": f"keys-{number}", "key": "key"}}],
            },
        }
        await self._make(RESOURCES[TENANT_KIND].path(team), tenant)

    async def _grant(self, role: str, namespace: str | None) -> None:
        group = "rbac.authorization.k8s.io"
        body = {
            "metadata": {"name": "bench-operator"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": "default"}],
        }
        home = f"namespaces/{namespace}/rolebindings" if namespace else "clusterrolebindings"
        await self._make(f"{_RBAC}/{home}", body)

    async def _make(self, path: str, body: dict[str, Any]) -> None:
        for attempt in range(10):
            try:
                await self._client.request("POST", path, body=body)
                return
            except ApiError as error:
                if attempt == 9 or (error.status < 500 and error.status != 429):
                    raise
                await asyncio.sleep(0.5)


def _key(prefix: str, number: int) -> str:
    return f"sk-{prefix}-{number:05d}-0123456789abcdef"


async def _each(items: Iterable[Any], make: Callable[[Any], Awaitable[None]]) -> None:
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def made(item: Any) -> None:
        async with gate:
            await make(item)

    await asyncio.gather(*(made(item) for item in items))


async def _until(condition: Callable[[], Any], what: str) -> float:
    begun = time.monotonic()
    while not await asyncio.to_thread(condition):
        if time.monotonic() - begun > _PATIENCE_SECONDS:
            raise TimeoutError(what)
        await asyncio.sleep(0.1)
    return time.monotonic() - begun


def _say(text: str) -> None:
    print(f"== {time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def _settled(replica: Replica, gateways: int) -> Callable[[], bool]:
    return lambda: replica.metric("proofgate_operator_gateway_ready") >= gateways


def _usage(replica: Replica, prefix: str) -> dict[str, float]:
    now, highest = replica.memory_mb()
    return {
        f"{prefix}_rss_mb": now,
        f"{prefix}_rss_highest_mb": highest,
        f"{prefix}_sockets": replica.sockets(),
        f"{prefix}_watch_connections": int(replica.metric("proofgate_operator_watch_connections")),
        f"{prefix}_watches_begun": int(replica.metric("proofgate_operator_watches_total")),
    }


async def measure(server: ModuleType, gateways: ModuleType, plane: Any, options: Any) -> dict[str, Any]:
    """Make everything, step by step, and return what was measured."""
    size = Size(options.namespaces, options.gateways, options.tenants)
    client = await Client.connect(str(plane.kubeconfig))
    world, figures = World(client, gateways, size), {}
    simulation = asyncio.create_task(Simulation(client, lambda *_: None).run())
    replicas: list[Replica] = []
    try:
        _say("namespaces and grants")
        await world.make_namespaces(cluster_wide=options.cluster_wide)
        token = await asyncio.to_thread(plane.api.token, _ACCOUNT, "default")
        settings = {"KUBECONFIG": str(plane.write_kubeconfig(plane.folder / "operator.kubeconfig", token))}
        if not options.cluster_wide:
            settings |= {"WATCH_NAMESPACES": ",".join(size.homes), "TENANT_NAMESPACES": ",".join(size.teams)}

        def start(name: str) -> Replica:
            replicas.append(Replica(server, plane, name, **settings))
            return replicas[-1]

        _say("an operator, and nothing in the namespaces")
        first = start("first")
        figures["empty_start_s"] = await _until(first.is_ready, "it is ready")
        await asyncio.sleep(options.idle_seconds / 2)
        figures |= _usage(first, "empty")
        _say("gateways and tenants")
        begun = time.monotonic()
        await world.fill()
        await _until(_settled(first, size.gateways), "all gateways are ready")
        while await world.told() < size.tenants:
            await asyncio.sleep(1)
        figures["all_ready_s"] = time.monotonic() - begun
        figures |= _usage(first, "full")
        _say("restart")
        await asyncio.to_thread(first.stop)
        begun = time.monotonic()
        second = start("second")
        await _until(second.is_ready, "it is ready")
        figures["restart_listed_s"] = time.monotonic() - begun
        await _until(_settled(second, size.gateways), "all gateways are reconciled")
        figures["restart_s"] = time.monotonic() - begun
        figures["restart_cpu_s"] = second.cpu_seconds()
        _say("keys")
        changed = [await world.change_key(number * 7 % size.tenants, _key("other", number)) for number in range(20)]
        figures["key_change_p50_s"] = statistics.median(changed)
        figures["key_change_highest_s"] = max(changed)
        cpu = second.cpu_seconds()
        await asyncio.sleep(options.idle_seconds)
        figures["idle_cpu_percent"] = 100 * (second.cpu_seconds() - cpu) / options.idle_seconds
        figures |= _usage(second, "restarted")
        figures["alive"] = second.is_alive()
    finally:
        simulation.cancel()
        for replica in replicas:
            replica.stop()
        await client.close()
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--namespaces", type=int, default=2000)
    parser.add_argument("--gateways", type=int, default=200)
    parser.add_argument("--tenants", type=int, default=5000)
    parser.add_argument("--cluster-wide", action="store_true")
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    options = parser.parse_args()
    server, gateways = tests_of_the_operator()
    # The started processes end with the run, even if a signal ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as folder, server.control_plane(Path(folder)) as plane:
        plane.processes[-1].stop()
        install_crds(server, plane)
        figures = asyncio.run(measure(server, gateways, plane, options))
    described = {"namespaces": options.namespaces, "gateways": options.gateways, "tenants": options.tenants}
    print(
        json.dumps(
            {**described, "cluster_wide": options.cluster_wide, **figures, "machine": machine.describe()}, indent=2
        )
    )


if __name__ == "__main__":
    main()
