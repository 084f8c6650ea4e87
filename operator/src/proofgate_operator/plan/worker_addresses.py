"""The address of each worker for HAProxy: that of an existing pod that is not terminating."""

from collections.abc import Iterable, Mapping

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import worker_addresses
from proofgate_operator.build.naming import ADDRESSES_ANNOTATION, Manifest, names
from proofgate_operator.plan.haproxy_sidecar import live_pods
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.pods import ordinal

#: Phases of a pod that has ended: its address may already belong to another pod.
_TERMINAL_PHASES = ("Failed", "Succeeded")


def worker_addresses_by_ordinal(pods: Iterable[Manifest], workers: int) -> Mapping[int, str | None]:
    """Return the address of each of `workers` workers, and of one further worker that is not being deleted
    yet; None for a worker without an address."""
    found: dict[int, str | None] = dict.fromkeys(range(workers))
    for pod in live_pods(pods):
        status = pod.get("status") or {}
        if status.get("phase") not in _TERMINAL_PHASES:
            found[ordinal(pod)] = status.get("podIP") or None
    return found


def addresses_config_map(gateway: Gateway, seen: ObservedState, workers: int) -> Manifest:
    """Return the ConfigMap of current addresses."""
    return worker_addresses.config_map(gateway, worker_addresses_by_ordinal(seen.worker_pods, workers))


def with_address_annotations(
    gateway: Gateway,
    seen: ObservedState,
    workers: int,
    apply: Iterable[Manifest],
    renew: Mapping[str, Mapping[str, str]],
) -> dict[str, dict[str, str]]:
    """Return the pod annotations `renew`, extended by those of HAProxy pods that need new addresses.

    Empty until the ConfigMap has been written and observed: a pod that the kubelet updates too early gets the
    old file again.
    """
    told = {name: dict(annotations) for name, annotations in renew.items()}
    ref = Ref("ConfigMap", names(gateway).addresses)
    if ref in map(ref_of, apply) or classify(gateway, seen.children.get(ref)) is not Ownership.OURS:
        return told
    wanted = worker_addresses.digest(addresses_config_map(gateway, seen, workers))
    for pod in live_pods(seen.haproxy_pods):
        if (pod["metadata"].get("annotations") or {}).get(ADDRESSES_ANNOTATION) != wanted:
            told.setdefault(pod["metadata"]["name"], {})[ADDRESSES_ANNOTATION] = wanted
    return told
