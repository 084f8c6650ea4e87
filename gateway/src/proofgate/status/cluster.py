"""Reads a gateway's status from the objects of its cluster, with kubectl and its current context.

No Secret is read. The tree heads of the logs are the operator's, at most a minute old.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proofgate.status.status_model import ApiKey, Condition, Fault, Gateway, LogHead, Shard, Tenant

Object = Mapping[str, Any]

_GATEWAYS = "governancegateways.proofgate.dev"
_TENANTS = "gatewaytenants.proofgate.dev"
_CHECKPOINTS_SUFFIX = "-checkpoints"
_REQUEST_TIMEOUT = "10s"
_TIMEOUT_SECONDS = 30.0
_UNKNOWN_KIND = "the server doesn't have a resource type"


class ClusterError(Exception):
    """The cluster cannot be queried, or has no such gateway. The message says what to do."""


def gateways(name: str | None, where: Sequence[str]) -> list[Gateway]:
    """Returns all gateways, or the one with a name, in the scope of kubectl's options `where`. Raises
    ClusterError."""
    try:
        answer = _kubectl("get", _GATEWAYS, *([name] if name else []), *where)
    except ClusterError as error:
        if _UNKNOWN_KIND in str(error):
            message = "this cluster has no GovernanceGateway resource: install the operator's chart first"
            raise ClusterError(message) from None
        raise
    found = answer.get("items", [answer])
    if not found:
        raise ClusterError(
            "there is no GovernanceGateway in this namespace: use -n NAME, or -A for all namespaces"
        )
    # Options that choose a cluster, without those that choose a namespace.
    cluster = [option for option in where if option.startswith("--context=")]
    attached, notes = _read_gateway_tenants(cluster)
    seen = []
    for namespace in sorted({item["metadata"]["namespace"] for item in found}):
        own = {item["metadata"]["name"]: item for item in found if item["metadata"]["namespace"] == namespace}
        heads, unread = _read_checkpoints(namespace, sorted(own), cluster)
        seen += [parse_gateway(own[it], attached, heads.get(it, {}), (*notes, *unread)) for it in sorted(own)]
    return seen


def _read_gateway_tenants(cluster: Sequence[str]) -> tuple[list[Object], list[str]]:
    """Returns all GatewayTenants, and messages about why they cannot be read."""
    try:
        items: list[Object] = _kubectl("get", _TENANTS, "--all-namespaces", *cluster)["items"]
    except ClusterError as error:
        if _UNKNOWN_KIND in str(error):
            return [], []
        return [], [f"GatewayTenants are not shown: {error}"]
    return items, []


def _read_checkpoints(
    namespace: str, gateways: Iterable[str], cluster: Sequence[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Returns the operator's held checkpoints by gateway and shard, and messages about why they cannot be
    read."""
    names = [f"{name}{_CHECKPOINTS_SUFFIX}" for name in gateways]
    options = ("--namespace", namespace, "--ignore-not-found", *cluster)
    try:
        answer = _kubectl("get", "configmap", *names, *options)
    except ClusterError as error:
        return {}, [f"tree heads are not shown: {error}"]
    # kubectl prints a single object without a list, and nothing if there is none.
    found = answer.get("items", [answer] if answer else [])
    return {
        item["metadata"]["name"].removesuffix(_CHECKPOINTS_SUFFIX): dict(item.get("data") or {})
        for item in found
    }, []


def _kubectl(*arguments: str) -> dict[str, Any]:
    command = ["kubectl", *arguments, "--output=json", f"--request-timeout={_REQUEST_TIMEOUT}"]
    try:
        # The user's own kubectl from PATH. No argument is a secret.
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603
    except FileNotFoundError:
        message = "kubectl is not on PATH: install it, or query one worker with --admin URL"
        raise ClusterError(message) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"kubectl does not answer: {error}") from None
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.strip()]
        raise ClusterError(
            f"kubectl: {told[-1].removeprefix('error: ') if told else 'failed without output'}"
        )
    try:
        answer = json.loads(done.stdout or "{}")
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ClusterError("kubectl did not return JSON")
    return answer


def parse_gateway(
    item: Object, attached: Iterable[Object], heads: Mapping[str, str], notes: Iterable[str] = ()
) -> Gateway:
    """Creates a gateway's status from its object, the GatewayTenants of the cluster, and the held checkpoints
    by shard."""
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    namespace, name = metadata["namespace"], metadata["name"]
    faults = tuple(
        Fault(found["field"], found["reason"], found["message"]) for found in status.get("faults", [])
    )
    shards = tuple(_shard(found, heads) for found in status.get("shards", []))
    tenants = [_inline_tenant(found, spec, shards, faults) for found in spec.get("tenants", [])]
    tenants += [_attached_tenant(found) for found in attached if _belongs_to_gateway(found, namespace, name)]
    return Gateway(
        namespace=namespace,
        name=name,
        endpoint=status.get("endpoint"),
        workers=spec.get("replicas", 0),
        ready_workers=status.get("readyReplicas", 0),
        conditions=conditions(item),
        shards=shards,
        # Tenants with problems come first, so that they are visible among thousands.
        tenants=tuple(sorted(tenants, key=lambda tenant: (not tenant.trouble, tenant.name))),
        faults=faults,
        verifying_key=(status.get("ledger") or {}).get("verifyingKey"),
        notes=tuple(notes),
    )


def conditions(item: Object) -> tuple[Condition, ...]:
    """Returns the conditions of an object."""
    return tuple(
        Condition(
            found["type"],
            found["status"],
            found.get("reason", ""),
            found.get("message", ""),
            found.get("lastTransitionTime", ""),
        )
        for found in (item.get("status") or {}).get("conditions", [])
    )


def checkpoint_head(note: str | None) -> LogHead | None:
    """Returns the origin and the size in a checkpoint's note; None without a note. The signature is not
    checked."""
    lines = (note or "").split("\n")
    if len(lines) < 3 or not (lines[1].isascii() and lines[1].isdecimal()):
        return None
    return LogHead(lines[0], int(lines[1]))


def _shard(found: Object, heads: Mapping[str, str]) -> Shard:
    return Shard(
        ordinal=found["ordinal"],
        phase=found["phase"],
        config_digest=found.get("configDigest"),
        log=checkpoint_head(heads.get(str(found["ordinal"]))),
        message=found.get("message", ""),
    )


def _inline_tenant(found: Object, spec: Object, shards: Sequence[Shard], faults: Iterable[Fault]) -> Tenant:
    field = f"spec.tenants[{found['name']}]"
    placement = found.get("placement")
    placed = placement if placement is not None and placement < spec.get("replicas", 0) else None
    return Tenant(
        name=found["name"],
        plan=found.get("plan"),
        keys=tuple(ApiKey(key["name"], key.get("notAfter")) for key in found.get("apiKeys", [])),
        worker=shards[0].ordinal if len(shards) == 1 else placed,
        trouble=", ".join(fault.reason for fault in faults if fault.field == field),
    )


def _belongs_to_gateway(found: Object, namespace: str, name: str) -> bool:
    reference = found["spec"]["gatewayRef"]
    own = found["metadata"]["namespace"]
    return (reference.get("namespace", own), reference["name"]) == (namespace, name)


def _attached_tenant(found: Object) -> Tenant:
    spec, status = found["spec"], found.get("status") or {}
    wrong = [
        f"{item.type}={item.status} {item.reason}"
        for item in conditions(found)
        # Ready summarises the other conditions.
        if item.status != "True" and item.type != "Ready"
    ]
    return Tenant(
        name=f"{found['metadata']['namespace']}/{found['metadata']['name']}",
        plan=spec.get("plan"),
        keys=tuple(ApiKey(key["name"], key.get("notAfter")) for key in spec.get("apiKeys", [])),
        worker=status.get("worker"),
        trouble=", ".join(wrong) if status.get("conditions") else "not seen by the operator yet",
    )
