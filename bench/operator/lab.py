"""Measures a gateway on a real cluster: its start time, and the effects of changes on a steady load.

Needs a cluster with the product's images (`make images`). Installs the operator as the end-to-end tests do, and removes
it completely.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e import evidence, operations, unkind
from e2e.kubernetes import OPERATOR, REPOSITORY, Namespace, clear, install_operator, ledger_directory, wait_until
from e2e.load import Report, SteadyLoad, steady_load
from e2e.operations import Gateway
from e2e.revocation import seconds_to_the_last_accepted_request
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask

_NAMESPACE = Namespace("proofgate-bench")
#: The keys of the load. Each is used often enough to detect an outage of its tenant.
_KEYS = [key_of(tenant) for tenant in TENANTS[:12]]
#: So many keys that some belong to a new worker from its first stage on.
_ALL_KEYS = [key_of(tenant) for tenant in TENANTS]
_WORKER = {"cpu": "300m", "memory": "512Mi"}
_ROUNDS = 3
_REVOCATIONS = 7
_OFTEN = 0.05
#: Seconds for which a node is stopped.
_STANDS = 20


@dataclass
class Lab:
    """The measurements: several seconds values by name, and the load's reports by change."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)

    def noticed(self) -> dict[str, Any]:
        """The effects on a load: the counts for all voluntary changes together, and for each."""
        voluntary = [report for name, report in self.reports.items() if not _is_an_accident(name)]
        counted = list(self.reports.values())
        return {
            "failed_requests_voluntary": sum(len(report.failed) for report in voluntary),
            "broken_streams_voluntary": sum(len(report.broken) for report in voluntary),
            "records_lost": sum(len(report.lost) for report in counted),
            "requests_sent_twice": sum(len(report.repeated) for report in counted),
            "operations": {
                name: {
                    "requests": len(report.attempts),
                    "failed": len(report.failed),
                    "broken_streams": len(report.broken),
                    "longest_wait_s": round(report.longest_wait(_KEYS), 2),
                }
                for name, report in self.reports.items()
            },
        }

    def times(self) -> dict[str, Any]:
        """The medians and single values of the times."""
        return {
            **{name: round(statistics.median(values), 2) for name, values in self.seconds.items()},
            "spread": {name: [round(value, 2) for value in sorted(values)] for name, values in self.seconds.items()},
        }

    def figures(self) -> dict[str, Any]:
        """The times, and the effects on the load."""
        return {**self.times(), **self.noticed()}

    def note(self, name: str, seconds: float) -> None:
        """Adds a measurement."""
        self.seconds.setdefault(name, []).append(seconds)


def run(say: Callable[[str], None]) -> dict[str, Any]:
    """Runs everything; `say` gets the current step."""
    lab = Lab()
    with _installed(say), tempfile.TemporaryDirectory(prefix="proofgate-bench-") as folder:
        for number in range(_ROUNDS):
            say(f"apply to Ready, round {number + 1} of {_ROUNDS}")
            ready(lab, f"bench-{number}", keep=number == _ROUNDS - 1)
        gateway = Gateway(_NAMESPACE, f"bench-{_ROUNDS - 1}")
        for number in range(_ROUNDS):
            say(f"scale-up and drift, round {number + 1} of {_ROUNDS}")
            scale_up(lab, gateway, Path(folder))
            drift(lab, gateway)
        revocations(lab, gateway, Path(folder), say)
        _change_all(lab, gateway, Path(folder), say)
        for number in range(_ROUNDS):
            say(f"under load: worker killed, round {number + 1} of {_ROUNDS}")
            report = _under_load(gateway, Path(folder), lambda load: _kill_worker(gateway, load))
            lab.reports[f"{number + 1}: worker killed"] = report
            lab.note("takeover_s", report.longest_wait(_KEYS))
    return lab.figures()


def run_profile(name: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures the effects of every change on the same load, with a profile of `e2e.unkind` on the cluster."""
    lab = Lab()
    with _installed(say), tempfile.TemporaryDirectory(prefix="proofgate-bench-") as folder:
        ready(Lab(), "bench-0", keep=True)
        gateway = Gateway(_NAMESPACE, "bench-0")
        say(f"profile {name}: {unkind.MEANING[name]}")
        with unkind.profile(name, [_NAMESPACE.name]):
            _change_all(lab, gateway, Path(folder), say)
            say("under load: a node stands for 20 s")
            lab.reports["node stands"] = _under_load(gateway, Path(folder), lambda load: _pause_a_node(gateway, load))
    return lab.noticed()


def _change_all(lab: Lab, gateway: Gateway, folder: Path, say: Callable[[str], None]) -> None:
    for name, action in _voluntary(gateway).items():
        say(f"under load: {name}")
        lab.reports[name] = _under_load(gateway, folder, action)


def _is_an_accident(name: str) -> bool:
    return name.endswith(("killed", "stands"))


def run_revocations(say: Callable[[str], None]) -> dict[str, Any]:
    """Runs only the measurement of revocations."""
    lab = Lab()
    with _installed(say), tempfile.TemporaryDirectory(prefix="proofgate-bench-") as folder:
        ready(Lab(), "bench-0", keep=True)
        revocations(lab, Gateway(_NAMESPACE, "bench-0"), Path(folder), say)
    return lab.times()


@contextmanager
def _installed(say: Callable[[str], None]) -> Iterator[None]:
    """Installs the operator, the stand-in upstream and the tenants' keys during the block."""
    clear(_NAMESPACE, Namespace("proofgate-demo"), Namespace("proofgate-e2e"))
    try:
        OPERATOR.create()
        _NAMESPACE.create()
        install_operator([_NAMESPACE.name])
        _NAMESPACE.kubectl("apply", "-f", str(REPOSITORY / "examples" / "demo" / "20-mock-upstream.yaml"))
        _NAMESPACE.kubectl("rollout", "status", "deployment/mock-upstream", "--timeout", "90s")
        _NAMESPACE.apply(*[fleet.secret(tenant) for tenant in TENANTS])
        yield
    finally:
        say("removing what the run made")
        clear(_NAMESPACE)


def ready(lab: Lab, name: str, *, keep: bool) -> None:
    """Seconds from `kubectl apply` to Ready."""
    begun = time.monotonic()
    _NAMESPACE.apply(fleet.gateway(name, 2, TENANTS, worker=_WORKER, loadBalancer={"replicas": 2}))
    wait_until(lambda: _NAMESPACE.is_ready(name, 2), 180, "the gateway is Ready", every=_OFTEN)
    lab.note("ready_s", time.monotonic() - begun)
    if not keep:
        _NAMESPACE.kubectl("delete", "ggw", name, "--timeout=120s")
        _NAMESPACE.kubectl(
            "wait", "--for=delete", "pod", "--selector", f"proofgate.dev/gateway={name}", "--timeout=120s"
        )


def scale_up(lab: Lab, gateway: Gateway, folder: Path) -> None:
    """Seconds from `kubectl scale` to the admission, in the new worker's ledger, of the first request it served."""
    gateway.wait_settled(2)
    with steady_load(gateway.namespace, gateway.name, folder, _ALL_KEYS, clients=len(_ALL_KEYS), fresh=True) as load:
        begun = time.time()
        gateway.namespace.kubectl("scale", f"ggw/{gateway.name}", "--replicas=3")
        gateway.wait_settled(3)
        wait_until(lambda: _admitted(gateway, 2, begun), 120, "the new worker serves")
        load.goes_on(20)
    first = min(_admitted(gateway, 2, begun))
    lab.note("scale_up_first_request_s", first - begun)
    gateway.scale(2)


def _admitted(gateway: Gateway, shard: int, since: float) -> list[float]:
    """The admission times of requests by a shard's workers since `since`, in Unix seconds."""
    ledger = ledger_directory(gateway.namespace, gateway.name)
    times = (
        record["ts"] / 1e6 for record in evidence.records(ledger, shards=f"{shard}") if record["kind"] == "admission"
    )
    return [at for at in times if at > since]


def drift(lab: Lab, gateway: Gateway) -> None:
    """Seconds from the deletion of a child object to its replacement."""
    name = f"{gateway.name}-haproxy"
    before = gateway.namespace.get("configmap", name)
    assert before is not None
    gateway.namespace.kubectl("delete", "configmap", name, "--wait=false")
    begun = time.monotonic()

    def back() -> bool:
        found = gateway.namespace.get("configmap", name)
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    wait_until(back, 60, "it is back", every=_OFTEN)
    lab.note("drift_repair_s", time.monotonic() - begun)


def revocations(lab: Lab, gateway: Gateway, folder: Path, say: Callable[[str], None]) -> None:
    """Seconds from a key's replacement in its Secret to its last accepted request, under load."""
    tenant = TENANTS[20]
    secret = f"{tenant}-keys"
    gateway.wait_settled(2)
    with steady_load(gateway.namespace, gateway.name, folder, _KEYS):
        for number in range(_REVOCATIONS):
            say(f"a key is taken away, round {number + 1} of {_REVOCATIONS}")
            took = seconds_to_the_last_accepted_request(
                gateway.namespace,
                gateway.name,
                folder / f"revocation-{number}",
                key_of(tenant),
                lambda: operations.rotate_key(gateway, secret, "first", "sk-bench-other-0123456789abcdef"),
            )
            lab.note("revocation_s", took)
            operations.rotate_key(gateway, secret, "first", key_of(tenant))
            wait_until(lambda: ask(gateway.namespace, gateway.name, key_of(tenant)) == 200, 60, "it is let in again")
    gateway.wait_settled(2)


def _voluntary(gateway: Gateway) -> dict[str, Callable[[SteadyLoad], None]]:
    image = operations.second_worker_image()

    def scale(load: SteadyLoad) -> None:
        gateway.scale(4)
        load.goes_on(50)
        gateway.scale(2)

    def drain(_: SteadyLoad) -> None:
        node = operations.node_of(gateway.pods("worker")[0])
        try:
            operations.drain(node, gateway)
        finally:
            operations.uncordon(node)
        gateway.wait_settled(2)

    def rotate(_: SteadyLoad) -> None:
        new = "sk-bench-fresh-0123456789abcdef"
        operations.rotate_key(gateway, f"{TENANTS[5]}-keys", "second", new)
        wait_until(lambda: ask(gateway.namespace, gateway.name, new) == 200, 60, "the new key is let in")
        operations.rotate_key(gateway, f"{TENANTS[5]}-keys", "second", key_of(TENANTS[5], 1))

    def balancers(_: SteadyLoad) -> None:
        gateway.namespace.kubectl("rollout", "restart", f"deployment/{gateway.name}-haproxy")
        gateway.namespace.kubectl("rollout", "status", f"deployment/{gateway.name}-haproxy", "--timeout", "180s")

    def encrypt(load: SteadyLoad) -> None:
        # A load balancer that is removed runs as long as its oldest connection.
        gateway.patch({"timeouts": {"connectionAgeSeconds": 8}})
        gateway.encrypt_inside(True)
        load.goes_on(50)
        gateway.encrypt_inside(False)
        gateway.patch({"timeouts": {"connectionAgeSeconds": None}})

    return {
        "scale 2 to 4 to 2": scale,
        "new image": lambda _: gateway.roll("worker", lambda: gateway.patch({"worker": {"image": image}})),
        "new configuration that rolls": lambda _: gateway.roll(
            "worker", lambda: gateway.patch({"ledger": {"durability": "Synced"}})
        ),
        "load balancers replaced": balancers,
        "node drained": drain,
        "TLS inside and back": encrypt,
        "key rotated": rotate,
        "operator replaced": lambda _: operations.restart_operator(),
    }


def _under_load(gateway: Gateway, folder: Path, action: Callable[[SteadyLoad], None]) -> Report:
    gateway.wait_settled(2)
    with steady_load(gateway.namespace, gateway.name, folder, _KEYS) as load:
        action(load)
    return load.report


def _pause_a_node(gateway: Gateway, load: SteadyLoad) -> None:
    with operations.standing(operations.node_of(gateway.pods("worker")[0])):
        time.sleep(_STANDS)
    gateway.wait_settled(2)
    load.goes_on(50)


def _kill_worker(gateway: Gateway, load: SteadyLoad) -> None:
    victim = f"{gateway.name}-worker-0"
    before = gateway.restarts(victim)
    gateway.kill(victim, b"serve")
    wait_until(lambda: gateway.restarts(victim) > before, 60, "the worker is started again")
    gateway.wait_settled(2)
    load.goes_on(50)
