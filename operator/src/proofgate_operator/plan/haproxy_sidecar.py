"""The runtime data of every HAProxy, and whether a HAProxy has received it."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.load_balancer import Affinity
from proofgate_operator.build.digests import keyed_digest
from proofgate_operator.build.haproxy_maps import OWNER_MAP, haproxy_maps, map_digest
from proofgate_operator.build.naming import CONFIG_ANNOTATION, RENEWED_ANNOTATION, Manifest
from proofgate_operator.build.owners import WorkerShares, plans_with_shared_limits
from proofgate_operator.plan.balancers import BalancerReport
from proofgate_operator.plan.configuration import Configuration
from proofgate_operator.plan.rfc3339 import seconds_of, time_of
from proofgate_operator.plan.scaling import ScalingStep

#: Seconds from the annotation of its pod until a HAProxy that does not report its maps has the new ones: the
#: kubelet updates the files within about a second, the agent checks them twice a second.
DELIVERY_SECONDS = 5


@dataclass(frozen=True, repr=False)
class HAProxyState:
    """HAProxy's maps, the shares from which they are built, and a digest of the maps and the certificate."""

    shares: WorkerShares
    maps: dict[str, str] = field(default_factory=dict)
    digest: str = ""
    #: Digest of the shards of tenants that are to be written.
    stamp: str = ""


def owners_input(gateway: Gateway, workers: int, shares: WorkerShares) -> str:
    """Return the input for the owners of tenants without a placement; empty if they have no owners."""
    affinity = gateway.spec.load_balancer.affinity
    found = []
    if affinity is Affinity.REQUIRED:
        annotations = shares.annotations
        found = [f"workers={workers}", *(f"{name}={annotations[name]}" for name in sorted(annotations))]
    if affinity is not Affinity.NONE and (sharing := plans_with_shared_limits(gateway)):
        found.append(f"sharing={','.join(sharing)}")
    return " ".join(found)


def tenant_stamp(digests: Sequence[str], owning: str) -> str:
    """Return a stamp that identifies one state of all shards of tenants; empty without shards."""
    return keyed_digest(b"", [*digests, owning]) if digests else ""


def desired_haproxy_state(
    gateway: Gateway,
    configuration: Configuration,
    workers: int,
    shares: WorkerShares,
    digests: Sequence[str] = (),
) -> HAProxyState:
    """Return the runtime data of every HAProxy in front of `workers` workers; `digests` are the digests of
    the shards of tenants."""
    stamp = tenant_stamp(digests, owners_input(gateway, workers, shares))
    maps = haproxy_maps(gateway, configuration.keys, workers, shares, configuration.routing_key)
    if configuration.digests is None:
        return HAProxyState(shares, maps, stamp=stamp)
    # Keyed with a secret, like the digest of the certificate.
    secret = configuration.digests.certificate.encode()
    known = map_digest(secret, maps)
    return HAProxyState(shares, maps, keyed_digest(secret, [known, stamp]) if stamp else known, stamp)


def live_pods(pods: Iterable[Manifest]) -> list[Manifest]:
    """Return the pods whose files the kubelet still updates."""
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def refresh_annotations(digest: str, now: float) -> dict[str, str]:
    """Return the annotations that make the kubelet update the files of a HAProxy pod."""
    return {CONFIG_ANNOTATION: digest, RENEWED_ANNOTATION: time_of(now)}


def _had_time_to_sync(pod: Manifest, digest: str, now: float) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    renewed = seconds_of(annotations.get(RENEWED_ANNOTATION))
    # Times are in whole seconds. A future time was written before the clock was set back.
    passed = renewed is not None and not renewed <= now < renewed + DELIVERY_SECONDS + 1
    return annotations.get(CONFIG_ANNOTATION) == digest and passed


def _is_up_to_date(pod: Manifest, report: BalancerReport | None, door: HAProxyState, now: float) -> bool:
    """Return whether a HAProxy has the newest maps, according to its report if it sends one. Its report does
    not cover the shards of tenants; for those, and without a report, enough time must have passed."""
    if report is None or report.owner_map_digest is None:
        return _had_time_to_sync(pod, door.digest, now)
    holds = report.owner_map_digest == hashlib.sha256(door.maps.get(OWNER_MAP, "").encode()).hexdigest()
    return holds and (not door.stamp or _had_time_to_sync(pod, door.digest, now))


def may_retire(
    gateway: Gateway,
    movement: ScalingStep,
    door: HAProxyState,
    written: bool,
    pods: Iterable[Manifest],
    reports: Mapping[str, BalancerReport],
    now: float,
) -> bool:
    """Return whether the worker that has to leave may be asked to retire.

    If the affinity is required, every HAProxy must know the worker's substitute. `written`: the maps with the
    substitute are written. `pods` are HAProxy's pods, `reports` their reports by pod name. A worker that
    already retires may continue.
    """
    shard = movement.shard_to_retire
    if gateway.spec.load_balancer.affinity is not Affinity.REQUIRED or shard is None or shard.retiring:
        return True
    return written and all(
        _is_up_to_date(pod, reports.get(pod["metadata"]["name"]), door, now) for pod in live_pods(pods)
    )
