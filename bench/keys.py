"""Measures the cost of 10,000 tenants with 100,000 keys for one worker and HAProxy, and of adding one key.

    make bench-keys                     about three minutes; writes bench/results/keys.json
    python -m bench.keys --changes 2    prints, and writes nothing

A worker with all tenants in shards is compared with a worker with one tenant. A change adds one key, in a file that is
replaced as the kubelet does it. It is measured by the time until the first request with the key is accepted, and by the
worker's additional processor time compared with rest. Both workers serve the same requests in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.haproxy_sidecar.tenant_map import MapFile

from bench import machine
from bench.processes import GATEWAY_CORE
from bench.summary import spread
from e2e.local_gateway import KEYS, MODEL, LocalGateway, wait_until
from e2e.tenant_shards import TenantShards, digest_of

RESULT = Path(__file__).parent / "results" / "keys.json"
TENANTS, KEYS_OF_EACH = 10_000, 10
CHANGES = 10
TURNS = 7
REQUESTS = 2_000
#: Seconds to wait after a change; longer than the longest change.
SETTLED_SECONDS = 4.0

_HAPROXY = """
global
    nbthread 1
    stats socket {folder}/admin.sock level admin
defaults
    mode tcp
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend front
    bind unix@{folder}/front.sock
    tcp-request content set-var(txn.tenant) str(x),map({folder}/tenants.map)
    tcp-request content set-var(txn.owner) var(txn.tenant),map({folder}/owners.map)
    default_backend none
backend none
"""


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, help=f"changes (default {CHANGES}); with them nothing is written")
    options = parser.parse_args()
    about = machine.describe()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        folder = Path(scratch)
        shards = TenantShards(folder / "tenants")
        populate(shards)
        result = {
            "machine": about,
            "tenants": TENANTS,
            "keys": TENANTS * KEYS_OF_EACH,
            **of_worker(folder, shards, options.changes or CHANGES),
            **of_haproxy(folder, shards, options.changes or CHANGES),
        }
    print(json.dumps(result, indent=2))
    if options.changes is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def populate(shards: TenantShards) -> None:
    """Every tenant with its keys and an owner."""
    for number in range(TENANTS):
        name = f"team-{number % 100}/tenant-{number}"
        shards.plans[name], shards.owners[name] = "gold", f"worker-{number % 32}"
        shards.keys |= {digest_of(key_of(number, place)): name for place in range(KEYS_OF_EACH)}
    shards.write()


def key_of(number: int, place: int) -> str:
    """A key of the tenant with this number."""
    return f"bench-key-{number}-{place}-0123456789abcdef"


def of_worker(folder: Path, shards: TenantShards, changes: int) -> dict[str, Any]:
    """Start time, memory, and the costs of a request and of a change; also without the shards, for comparison."""
    plans = [{"name": "gold", "limits": {"requestsPerMinute": 1_000_000}}]
    # All tenants have the same terms; otherwise limits would be compared with no limits.
    tenant = {"name": "acme", "plan": "gold", "keyHashes": [digest_of(KEYS["acme"])]}
    settings: dict[str, Any] = {"plans": plans, "tenants": [tenant]}
    pinned = ["taskset", "-c", str(GATEWAY_CORE)]
    few = LocalGateway(folder / "few", settings=settings, worker_prefix=pinned)
    of_shards = {**settings, "tenantShards": {"directory": str(shards.folder)}}
    many = LocalGateway(folder / "many", settings=of_shards, worker_prefix=pinned)
    try:
        started = {}
        for name, gateway in (("few", few), ("many", many)):
            gateway.folder.mkdir()
            gateway.start_upstream()
            gateway.write_configuration()
            before = time.monotonic()
            gateway.start_worker()
            started[name] = round(time.monotonic() - before, 2)
        memory = {name: resident_mib(gateway) for name, gateway in (("few", few), ("many", many))}
        costs = compared(few, many)
        rest, change = [], []
        seconds = []
        for number in range(changes):
            rest.append(processor_seconds(many, lambda: None))
            key = f"new-key-{number}-0123456789abcdef"
            change.append(processor_seconds(many, lambda key=key: add(shards, key)))
            # Changes come at different moments of the worker's interval for checking its files.
            time.sleep(number * 0.37 % 2)
            seconds.append(seconds_to_accepted(many, shards, f"timed-key-{number}-0123456789abcdef"))
    finally:
        few.stop()
        many.stop()
    extra = [max(one - other, 0.0) for one, other in zip(change, rest, strict=True)]
    return {
        "start_s": started,
        "resident_mib": memory,
        **costs,
        "keys_100k_reload_s": spread(seconds),
        "change_processor_s": spread(extra, 4),
    }


def add(shards: TenantShards, key: str) -> None:
    """Adds one key of an existing tenant."""
    shards.keys[digest_of(key)] = "team-0/tenant-0"
    shards.write([int(digest_of(key)[:2], 16) >> 3])


def compared(few: LocalGateway, many: LocalGateway) -> dict[str, Any]:
    """Processor time of a request, measured in turns with one API key and with all of them."""
    costs: dict[str, list[float]] = {"few": [], "many": []}
    for turn in range(TURNS + 1):
        for name, gateway, key in (("few", few, KEYS["acme"]), ("many", many, key_of(4321, 7))):
            used = request_microseconds(gateway, key)
            if turn > 0:  # the first one warms up
                costs[name].append(used)
    ratios = [one / other for one, other in zip(costs["many"], costs["few"], strict=True)]
    return {
        "request_us": {name: spread(values) for name, values in costs.items()},
        "request_ratio": spread(ratios),
    }


def request_microseconds(gateway: LocalGateway, key: str) -> float:
    """The worker's processor time for one chat completion, averaged over many on one connection."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]})
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(gateway.address, timeout=30)
    before = processor_nanoseconds(gateway)
    for _ in range(REQUESTS):
        connection.request("POST", "/v1/chat/completions", body, headers)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"a request was answered with {response.status}")
    used = processor_nanoseconds(gateway) - before
    connection.close()
    return used / REQUESTS / 1000


def seconds_to_accepted(gateway: LocalGateway, shards: TenantShards, key: str) -> float:
    """From the renewal of a file to the answer of the first request that is accepted with the key in it."""
    connection = http.client.HTTPConnection(gateway.address, timeout=30)

    def accepted() -> bool:
        try:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
            response = connection.getresponse()
            response.read()
        except (http.client.HTTPException, OSError):
            return False  # a refusal ends its connection
        return response.status == 200

    begun = time.monotonic()
    add(shards, key)
    wait_until(accepted, 30, "the key is accepted")
    return round(time.monotonic() - begun, 3)


def processor_seconds(gateway: LocalGateway, change: Any) -> float:
    """Processor time of the worker from `change` on, until it has settled."""
    before = processor_nanoseconds(gateway)
    change()
    time.sleep(SETTLED_SECONDS)
    return round((processor_nanoseconds(gateway) - before) / 1e9, 4)


def processor_nanoseconds(gateway: LocalGateway) -> int:
    """Processor time of all threads of the worker."""
    assert gateway.worker is not None
    return _processor_nanoseconds(gateway.worker.process.pid)


def _processor_nanoseconds(pid: int) -> int:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def resident_mib(gateway: LocalGateway) -> float:
    """Memory of the worker."""
    assert gateway.worker is not None
    return _resident_mib(gateway.worker.process.pid)


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1)


def of_haproxy(folder: Path, shards: TenantShards, changes: int) -> dict[str, Any]:
    """The time that HAProxy's agent takes to fill both maps, and to add one key."""
    where = folder / "haproxy"
    where.mkdir()
    for name in ("tenants.map", "owners.map"):
        (where / name).write_text("")
    with haproxy(where) as process:
        api = RuntimeApi(where / "admin.sock")
        maps = [MapFile(where / name, api, shards.folder) for name in ("tenants.map", "owners.map")]
        follower = SyncLoop(maps, life=api.instance_id)
        filled, agent = timed(follower)
        taken = _processor_nanoseconds(process.pid) / 1e9
        single, own = [], []
        for number in range(changes):
            add(shards, f"routed-key-{number}-0123456789abcdef")
            seconds, used = timed(follower)
            single.append(seconds)
            own.append(used)
        if follower.out_of_sync():
            raise RuntimeError(f"HAProxy is not in sync: {follower.out_of_sync()}")
        return {
            "haproxy_sidecar_fill_s": filled,
            "haproxy_sidecar_fill_processor_s": {"agent": agent, "haproxy": round(taken, 2)},
            "haproxy_sidecar_change_s": spread(single, 3),
            "haproxy_sidecar_change_processor_s": spread(own, 3),
            "haproxy_resident_mib": _resident_mib(process.pid),
        }


def timed(follower: SyncLoop) -> tuple[float, float]:
    """The seconds of one check, and the processor time of this process for it."""
    begun, used = time.monotonic(), time.process_time()
    asyncio.run(follower.sync_once())
    return round(time.monotonic() - begun, 4), round(time.process_time() - used, 4)


@contextmanager
def haproxy(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """HAProxy with two empty maps."""
    configuration = folder / "haproxy.cfg"
    configuration.write_text(_HAPROXY.format(folder=folder))
    command = [os.environ.get("PROOFGATE_HAPROXY", "haproxy"), "-db", "-f", str(configuration)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until((folder / "admin.sock").exists, 10, "HAProxy has its socket")
            yield process
        finally:
            process.terminate()


if __name__ == "__main__":
    raise SystemExit(main())
