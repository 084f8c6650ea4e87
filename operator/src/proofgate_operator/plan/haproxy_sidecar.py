"""What every HAProxy is to know while it runs, and whether it has heard of it."""

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

#: From the mark on its pod to a HAProxy that holds the new maps, where it does not say so itself: the kubelet
#: renews the files within about a second, the agent looks at them twice a second.
DELIVERY_SECONDS = 5


@dataclass(frozen=True, repr=False)
class HAProxyState:
    """HAProxy's maps, the shares that they are made from, and the digest of them and of its certificate."""

    shares: WorkerShares
    maps: dict[str, str] = field(default_factory=dict)
    digest: str = ""
    #: Of the shards of tenants, as they are to be written.
    stamp: str = ""


def owners_input(gateway: Gateway, workers: int, shares: WorkerShares) -> str:
    """Return what the owners of tenants without a placement are made from; empty where they have none."""
    affinity = gateway.spec.load_balancer.affinity
    found = []
    if affinity is Affinity.REQUIRED:
        annotations = shares.annotations
        found = [f"workers={workers}", *(f"{name}={annotations[name]}" for name in sorted(annotations))]
    if affinity is not Affinity.NONE and (sharing := plans_with_shared_limits(gateway)):
        found.append(f"sharing={','.join(sharing)}")
    return " ".join(found)


def tenant_stamp(digests: Sequence[str], owning: str) -> str:
    """Return what tells one state of all shards of tenants from another; empty without shards."""
    return keyed_digest(b"", [*digests, owning]) if digests else ""


def desired_haproxy_state(
    gateway: Gateway,
    configuration: Configuration,
    workers: int,
    shares: WorkerShares,
    digests: Sequence[str] = (),
) -> HAProxyState:
    """Return what every HAProxy before so many workers is to know; `digests` are those of the shards of
    tenants."""
    stamp = tenant_stamp(digests, owners_input(gateway, workers, shares))
    maps = haproxy_maps(gateway, configuration.keys, workers, shares, configuration.routing_key)
    if configuration.digests is None:
        return HAProxyState(shares, maps, stamp=stamp)
    # Keyed, as the digest of the certificate is, with what nobody else knows.
    secret = configuration.digests.certificate.encode()
    known = map_digest(secret, maps)
    return HAProxyState(shares, maps, keyed_digest(secret, [known, stamp]) if stamp else known, stamp)


def live_pods(pods: Iterable[Manifest]) -> list[Manifest]:
    """Return the pods whose files the kubelet still renews."""
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def refresh_annotations(digest: str, now: float) -> dict[str, str]:
    """Return the annotations that have the kubelet renew the files of one of HAProxy's pods."""
    return {CONFIG_ANNOTATION: digest, RENEWED_ANNOTATION: time_of(now)}


def _had_time_to_sync(pod: Manifest, digest: str, now: float) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    renewed = seconds_of(annotations.get(RENEWED_ANNOTATION))
    # Times are told in whole seconds. One that is yet to come is from before the clock was set back.
    passed = renewed is not None and not renewed <= now < renewed + DELIVERY_SECONDS + 1
    return annotations.get(CONFIG_ANNOTATION) == digest and passed


def _is_up_to_date(pod: Manifest, report: BalancerReport | None, door: HAProxyState, now: float) -> bool:
    """Return whether a HAProxy holds the newest maps, by its own word where it gives one. Of the shards of
    tenants it says nothing, and one that says nothing at all is given time."""
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
    """Return whether the worker that is to leave may be told to retire.

    Where the affinity is required, every HAProxy has to know who stands in for it: `written` says that the
    maps with that are there, `pods` are HAProxy's, `reports` theirs by name. One that retires already is not
    called back for it.
    """
    shard = movement.shard_to_retire
    if gateway.spec.load_balancer.affinity is not Affinity.REQUIRED or shard is None or shard.retiring:
        return True
    return written and all(
        _is_up_to_date(pod, reports.get(pod["metadata"]["name"]), door, now) for pod in live_pods(pods)
    )
