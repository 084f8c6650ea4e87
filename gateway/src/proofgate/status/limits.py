"""The used part of each tenant's limits. Workers report it to holders of the admin token.

In a cluster, kubectl forwards a port to each worker. The token is read from a file, not from a Secret.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from proofgate.admin_client import AdminError, admin_get
from proofgate.limit_kinds import LIMIT_KINDS
from proofgate.status.cluster import ClusterError
from proofgate.status.status_model import Gateway, Limits, LimitUsage, Shard, TenantLimits

_RESPONSE_TIMEOUT_SECONDS = 10.0
# The maximum number of tenants that a worker returns, so that JSON output has all of them.
_MAX_TENANTS = 1000
_ADMIN_PORT = 9090
_KUBECTL_SECONDS = 30.0
_MAX_CONCURRENT_WORKERS = 8
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:([0-9]+) -> ")
#: Phases in which a worker may serve.
_SERVING_PHASES = frozenset({"Ready", "Retiring"})


def fetch_limits(admin: str, token_file: Path) -> Limits:
    """Requests the used limits of tenants from the worker at a URL. Raises AdminError."""
    answer = admin_get(admin, f"/tenants/limits?most={_MAX_TENANTS}", _RESPONSE_TIMEOUT_SECONDS, token_file)
    try:
        return parse_limits(json.loads(answer))
    except (ValueError, KeyError, TypeError):
        raise AdminError(f"{admin} reports no limits: is this a Proofgate admin port?") from None


def parse_limits(told: Mapping[str, Any]) -> Limits:
    """Parses a response of `/tenants/limits`. Raises KeyError, TypeError, ValueError."""
    tenants = tuple(_tenant_limits(str(found["tenant"]), found) for found in told["tenants"])
    # Workers of the previous release do not return this field.
    shared = told.get("namespaces", ())
    namespaces = tuple(_tenant_limits(f"{found['namespace']}/* ({found['plan']})", found) for found in shared)
    return Limits(tenants, int(told["more"]), namespaces, int(told.get("more_namespaces", 0)))


def _tenant_limits(name: str, found: Mapping[str, Any]) -> TenantLimits:
    # Workers of the previous release do not return new kinds of limits.
    if not any(kind.field in found for kind in LIMIT_KINDS):
        raise KeyError(name)
    return TenantLimits(name, {kind.field: _parse_usage(found.get(kind.field)) for kind in LIMIT_KINDS})


def _parse_usage(found: Mapping[str, Any] | None) -> LimitUsage | None:
    # A limit of 0 is not expected, and would cause a division by zero.
    return None if found is None else LimitUsage(int(found["used"]), max(1, int(found["limit"])))


def with_limits(gateway: Gateway, token_file: Path, context: str | None) -> Gateway:
    """Returns the gateway with the used limits of its tenants, which its workers report to holders of the
    admin token. A worker that cannot be queried becomes a note."""
    cluster = [f"--context={context}"] if context else []

    def told_by(shard: Shard) -> Limits | str:
        try:
            pod = f"{gateway.name}-worker-{shard.ordinal}"
            with _forward_port(gateway.namespace, pod, cluster) as admin:
                return fetch_limits(admin, token_file)
        except (AdminError, ClusterError) as error:
            return f"limits are shown without worker {shard.ordinal}: {error}"

    serving = [shard for shard in gateway.shards if shard.phase in _SERVING_PHASES]
    with ThreadPoolExecutor(_MAX_CONCURRENT_WORKERS) as pool:
        answers = list(pool.map(told_by, serving))
    told = [answer for answer in answers if isinstance(answer, Limits)]
    notes = [answer for answer in answers if isinstance(answer, str)]
    return replace(gateway, limits=merge_limits(told) if told else None, notes=(*gateway.notes, *notes))


def merge_limits(told: Sequence[Limits]) -> Limits:
    """Merges the limits from several workers. Each worker also counts the other workers' use of a tenant,
    with a short delay, so the highest value of a tenant is the newest."""
    tenants = _merge_by_name(tenant for limits in told for tenant in limits.tenants)
    known = max((len(limits.tenants) + limits.more for limits in told), default=0)
    namespaces = _merge_by_name(namespace for limits in told for namespace in limits.namespaces)
    shared = max((len(limits.namespaces) + limits.more_namespaces for limits in told), default=0)
    return Limits(tenants, max(0, known - len(tenants)), namespaces, max(0, shared - len(namespaces)))


def _merge_by_name(told: Iterable[TenantLimits]) -> tuple[TenantLimits, ...]:
    """Returns the highest values for each name, sorted by use, highest first."""
    found: dict[str, TenantLimits] = {}
    for tenant in told:
        if tenant.tenant not in found or tenant.max_used_share > found[tenant.tenant].max_used_share:
            found[tenant.tenant] = tenant
    return tuple(sorted(found.values(), key=lambda tenant: (-tenant.max_used_share, tenant.tenant)))


@contextmanager
def _forward_port(namespace: str, pod: str, cluster: Sequence[str]) -> Iterator[str]:
    """Forwards a port to a pod's admin port with kubectl during the block, and yields its URL. Raises
    ClusterError."""
    options = ["--address=127.0.0.1", f"--namespace={namespace}", *cluster]
    command = ["kubectl", "port-forward", f"pod/{pod}", f":{_ADMIN_PORT}", *options]
    try:
        # The user's own kubectl. It prints one line when it listens, or an error.
        process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except OSError as error:
        raise ClusterError(f"kubectl cannot be started: {error}") from None
    with process:
        try:
            assert process.stdout is not None  # noqa: S101 - narrows the type: a pipe was asked for
            ready, _, _ = select.select([process.stdout], [], [], _KUBECTL_SECONDS)
            line = process.stdout.readline() if ready else ""
            listens = _FORWARDING.match(line)
            if listens is None:
                told = line.strip().removeprefix("error: ")
                raise ClusterError(f"kubectl port-forward: {told or 'does not answer'}")
            yield f"http://127.0.0.1:{listens[1]}"
        finally:
            process.kill()
