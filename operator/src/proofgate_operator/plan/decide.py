"""The decision: from a gateway and what is seen of it to the writes that bring the one closer to the
other."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway, NetworkPolicies
from proofgate_operator.api.monitoring import PodMonitors
from proofgate_operator.build import (
    gateway_secrets,
    haproxy,
    monitoring,
    networkpolicy,
    pdb,
    serviceaccounts,
    services,
    statefulset,
    worker_config,
)
from proofgate_operator.build.naming import CONFIG_ANNOTATION, Defaults, Manifest, names
from proofgate_operator.build.owners import Shares
from proofgate_operator.build.storage import goes_with_the_gateway
from proofgate_operator.plan.accepted import accepted_text
from proofgate_operator.plan.auditor import auditor_manifests, is_to_stop, workers_mark
from proofgate_operator.plan.conditions import STALLED
from proofgate_operator.plan.configuration import Configuration, read_configuration
from proofgate_operator.plan.drift import in_order, is_too_soon, seal, sealed
from proofgate_operator.plan.finding import are_awaited, newly_found
from proofgate_operator.plan.haproxy_sidecar import (
    HaproxySidecar,
    haproxy_sidecar,
    live_pods,
    mark,
    may_retire,
)
from proofgate_operator.plan.held_aggregate import HeldAggregate, held_aggregate
from proofgate_operator.plan.held_checkpoints import Held, held_checkpoints
from proofgate_operator.plan.internal_tls import Renewal, on_the_way
from proofgate_operator.plan.observed import Observed, Ref, ref_of
from proofgate_operator.plan.ownership import Ownership, classify, of_a_predecessor
from proofgate_operator.plan.pruning import unlabelled
from proofgate_operator.plan.retention import is_to_go, retaining, retention_manifests
from proofgate_operator.plan.scaling import Movement, Purpose, everybody_stays, next_movement
from proofgate_operator.plan.shards import Shard, read_shards
from proofgate_operator.plan.shred_keys import UNWANTED, ShredKeys
from proofgate_operator.plan.situation import Situation
from proofgate_operator.plan.status import Status, report
from proofgate_operator.plan.takeover import next_shares, taking_over
from proofgate_operator.plan.volumes import claim_templates, claims, obstacle
from proofgate_operator.plan.worker_addresses import addresses, marked
from proofgate_operator.plan.worker_memory import least_memory


@dataclass(frozen=True)
class Plan:
    """Writes, in order: Secrets to generate (never to overwrite), shred keys to make (likewise), merge
    patches that take a label off what must not be pruned (`unlabel`), manifests to apply, each after its
    merge patch if it needs one (`patch`), objects to delete, the number of workers of a set whose template is
    held back, whether to stop the auditor, pods to mark with annotations, so that the kubelet renews their
    files; workers to retire or to tell to stay, pods to delete so that their StatefulSet makes new ones.

    `found` are pods of workers to which every HAProxy sends connections now: that makes them Ready.

    After them the status, which describes what was seen before them. `moving` says that time alone brings the
    next step. `hold` is the ConfigMap of checkpoints that are newer than those that are held, and
    `hold_aggregate` that of the auditor's: they go on while the gateway is settled, and are none of the
    writes that say otherwise. `publish` says that shards of tenants are to be written, for so many workers
    and shares as `owning` says; None: none may be. `due` is when time alone makes another status, in seconds
    since 1970.
    """

    generate: tuple[str, ...]
    apply: tuple[Manifest, ...]
    delete: tuple[Ref, ...]
    status: Status
    rescale: int | None = None
    stop_auditor: bool = False
    renew: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    patch: Mapping[Ref, Manifest] = field(default_factory=dict)
    unlabel: Mapping[Ref, Manifest] = field(default_factory=dict)
    stay: tuple[Manifest, ...] = ()
    retire: tuple[Manifest, ...] = ()
    replace: tuple[Manifest, ...] = ()
    found: tuple[Manifest, ...] = ()
    moving: bool = False
    hold: Manifest | None = None
    hold_aggregate: Manifest | None = None
    shred_keys: ShredKeys = UNWANTED
    #: Certificates of HAProxy and the workers to make; None while none are due.
    certify: Renewal | None = None
    owning: tuple[int, Shares] | None = None
    publish: bool = False
    due: float = math.inf

    @property
    def writes(self) -> bool:
        """Whether anything but the status is to be written."""
        resized = self.rescale is not None
        return bool(
            self.generate
            or self.shred_keys.to_make
            or self.certify
            or self.apply
            or self.unlabel
            or self.delete
            or self.renew
            or self.replace
            or self.found
            or self.publish
            or resized
            or self.stop_auditor
        )


def _conflicts(gateway: Gateway, seen: Observed) -> tuple[Ref, ...]:
    """Return the objects that bear a name we need and are not ours."""
    claim = gateway.spec.ledger.volume.existing_claim
    return tuple(
        ref
        for ref in seen.children
        if not (ref.kind == "PersistentVolumeClaim" and ref.name == claim)
        and not (ref == Ref("Secret", names(gateway).ledger) and ref.name in seen.secrets)
        and classify(gateway, seen.children.get(ref)) is Ownership.FOREIGN
    )


def wanted(
    gateway: Gateway,
    seen: Observed,
    configuration: Configuration,
    door: HaproxySidecar,
    replicas: int,
    defaults: Defaults,
) -> list[Manifest]:
    """Return the manifests a gateway shall have now, in the order they are applied.

    What a problem of the configuration holds back is left as it is: workers that run keep running with the
    last valid one, and none is started with half of one. The digests of keys are held back by nothing, and
    come first: a key that was taken away must not wait.
    """
    own = names(gateway)
    manifests = [
        gateway_secrets.tenants_secret(
            gateway, configuration.keys, door.maps, door.shares, configuration.routing_key
        ),
        *serviceaccounts.service_accounts(gateway),
        *networkpolicy.policies(gateway, defaults, configuration.witness_ports),
        services.workers_service(gateway),
        services.gateway_service(gateway),
        *([services.inside_service(gateway)] if _has_inside(gateway, seen) else []),
        pdb.worker_budget(gateway),
    ]
    if gateway.spec.load_balancer.replicas > 1:
        manifests.append(pdb.haproxy_budget(gateway))
    # Before the set that mounts them, so that they have the size that holds now; after the key, so that a
    # claim without one tells that it was lost.
    if own.ledger not in configuration.missing_secrets:
        manifests += claims(gateway, seen, replicas)
        if classify(gateway, seen.child("Secret", own.ledger)) is Ownership.OURS:
            owned = goes_with_the_gateway(gateway)
            manifests.append(gateway_secrets.ledger_secret_head(gateway, owned=owned))
    manifests.append(haproxy.config_map(gateway, defaults))
    manifests.append(addresses(gateway, seen, replicas))
    if not configuration.file_problems and not configuration.shred_keys.waits:
        text = worker_config.worker_config_text(gateway, least_memory(gateway, seen.worker_pods), defaults)
        manifests.append(worker_config.config_map(gateway, text, accepted_text(gateway, seen, text)))
    digests = configuration.digests
    file = seen.child("ConfigMap", own.config)
    uncertified = configuration.internal_tls.waits
    waits = configuration.shred_keys.waits or uncertified
    has_file = not configuration.file_problems or classify(gateway, file) is Ownership.OURS
    if digests and digests.start and has_file and not waits and not configuration.worker_problems:
        templates = claim_templates(gateway, seen.child("StatefulSet", own.worker))
        manifests.append(statefulset.statefulset(gateway, defaults, replicas, digests.start, templates))
    if digests and not configuration.balancer_problems and not uncertified:
        manifests.append(haproxy.deployment(gateway, defaults, digests.haproxy))
    if gateway.spec.monitoring.pod_monitors is PodMonitors.AUTO and seen.knows_monitors:
        manifests += monitoring.pod_monitors(gateway)
    if own.ledger not in configuration.missing_secrets:
        manifests += auditor_manifests(gateway, seen, configuration, replicas, defaults)
        manifests += retention_manifests(gateway, seen, configuration, defaults)
    return [sealed(manifest) for manifest in manifests]


def _has_inside(gateway: Gateway, seen: Observed) -> bool:
    """Return whether clients inside have a Service of their own. Once there, it stays, for who uses it."""
    live = seen.child("Service", names(gateway).inside)
    return gateway.spec.load_balancer.accept_proxy_protocol or classify(gateway, live) is Ownership.OURS


def _to_generate(gateway: Gateway, seen: Observed, configuration: Configuration) -> tuple[str, ...]:
    """Return the generated Secrets whose place is free; one of a predecessor is waited for."""
    return tuple(name for name in configuration.missing_secrets if seen.child("Secret", name) is None)


def _superfluous(gateway: Gateway, seen: Observed, configuration: Configuration) -> tuple[Ref, ...]:
    """Return what an earlier spec asked for and this one does not. Evidence and keys are never among it."""
    own = names(gateway)
    found: list[Ref] = []
    if gateway.spec.load_balancer.replicas == 1:
        found.append(Ref("PodDisruptionBudget", own.haproxy))
    if gateway.spec.network_policies is NetworkPolicies.NONE:
        found += [
            Ref("NetworkPolicy", name) for name in (own.worker, own.haproxy, own.auditor, own.retention)
        ]
    if gateway.spec.monitoring.pod_monitors is PodMonitors.NEVER:
        found += [Ref("PodMonitor", name) for name in (own.worker, own.haproxy, own.auditor)]
    elif gateway.auditor is None:
        found.append(Ref("PodMonitor", own.auditor))
    if is_to_go(gateway, seen, configuration):
        found.append(Ref("CronJob", own.retention))
    return tuple(ref for ref in found if classify(gateway, seen.children.get(ref)) is Ownership.OURS)


def _needs_write(gateway: Gateway, seen: Observed, manifest: Manifest) -> bool:
    ref = ref_of(manifest)
    live, applied = seen.children.get(ref), seen.applied.get(ref)
    if classify(gateway, live) is Ownership.LEAVING:
        return False
    return live is None or not (
        in_order(live, manifest, applied) or is_too_soon(live, manifest, applied, seen.now)
    )


def _contested(seen: Observed, manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return what somebody else sets otherwise again and again."""
    found: list[str] = []
    for manifest in manifests:
        ref = ref_of(manifest)
        live, applied = seen.children.get(ref), seen.applied.get(ref)
        if live and applied and applied.contested and not in_order(live, manifest, applied):
            found.append(applied.contested)
    return tuple(found)


def _to_renew(
    gateway: Gateway,
    seen: Observed,
    configuration: Configuration,
    door: HaproxySidecar,
    workers: int,
    apply: Iterable[Manifest],
) -> dict[str, dict[str, str]]:
    """Return the pods that are not marked with what they are to take on, of workers, HAProxy and the auditor.

    None before what they mount has been written, and seen again: the kubelet learns of it by a watch of its
    own, and a pod that it looks at too soon gets the old files once more.
    """
    unpublished = door.stamp != seen.tenants.published
    if not configuration.digests or unpublished or _files(gateway) & set(map(ref_of, apply)):
        return {}
    told = [(pod, {CONFIG_ANNOTATION: configuration.digests.config}) for pod in live_pods(seen.worker_pods)]
    told += [(pod, mark(door.digest, seen.now)) for pod in live_pods(seen.haproxy_pods)]
    if (listed := workers_mark(gateway, configuration, workers)) and seen.auditor_pod:
        told += [(pod, {CONFIG_ANNOTATION: listed}) for pod in live_pods([seen.auditor_pod])]
    return {
        pod["metadata"]["name"]: annotations
        for pod, annotations in told
        if (pod["metadata"].get("annotations") or {}).get(CONFIG_ANNOTATION) != annotations[CONFIG_ANNOTATION]
    }


def _templates(gateway: Gateway) -> set[Ref]:
    """Return what makes pods, which mount other objects by their names."""
    own = names(gateway)
    return {
        Ref("StatefulSet", own.worker),
        Ref("Deployment", own.haproxy),
        Ref("StatefulSet", own.auditor),
        Ref("CronJob", own.retention),
    }


def _files(gateway: Gateway) -> set[Ref]:
    """Return what pods mount of the operator's making."""
    own = names(gateway)
    return {Ref("ConfigMap", own.config), Ref("Secret", own.tenants), Ref("Secret", own.auditor)}


def decide(gateway: Gateway, seen: Observed, defaults: Defaults) -> Plan:
    """Return the plan for one gateway. Pure: the same sight gives the same plan."""
    gateway = on_the_way(gateway, seen)
    configuration = read_configuration(gateway, seen, defaults)
    gateway, configuration = retaining(configuration.shred_keys.served(gateway), seen, configuration)
    taken = _conflicts(gateway, seen)
    auditor_conflicts = tuple(ref for ref in taken if ref.name == names(gateway).auditor)
    retention_conflicts = tuple(ref for ref in taken if ref.name == names(gateway).retention)
    conflicts = tuple(ref for ref in taken if ref not in (*auditor_conflicts, *retention_conflicts))
    live_set = seen.child("StatefulSet", names(gateway).worker)
    shards = read_shards(seen, live_set)
    movement = _movement(gateway, seen, live_set, shards, configuration, conflicts)
    shares = next_shares(gateway, configuration.shares, shards, movement, seen.now)
    door = haproxy_sidecar(gateway, configuration, movement.replicas, shares, seen.tenants.digests)
    unpublished = door.stamp != seen.tenants.published
    moving = movement.in_motion
    taking = () if conflicts or gateway.spec.paused else taking_over(shares, shards, movement)
    generate: tuple[str, ...] = ()
    shred_keys = UNWANTED
    certify: Renewal | None = None
    apply: tuple[Manifest, ...] = ()
    unlabel: dict[Ref, Manifest] = {}
    delete: tuple[Ref, ...] = ()
    renew: dict[str, dict[str, str]] = {}
    rescale: int | None = None
    stop_auditor = False
    contested: tuple[str, ...] = ()
    publish = unpublished and not gateway.spec.paused
    found = newly_found(shards)
    if gateway.spec.paused and live_set:
        # Where workers are is no change of the gateway, and goes on.
        moved = sealed(addresses(gateway, seen, movement.replicas))
        apply = (moved,) if ref_of(moved) not in taken and _needs_write(gateway, seen, moved) else ()
        renew = marked(gateway, seen, movement.replicas, apply, {})
    # A name that is taken before anything runs keeps everything back; later, only whatever would use it.
    if not gateway.spec.paused and (not conflicts or live_set):
        held_back = {*taken, *(_templates(gateway) if conflicts else ())}
        if auditor_conflicts:
            held_back.add(Ref("StatefulSet", names(gateway).auditor))
        if retention_conflicts:
            held_back.add(Ref("CronJob", names(gateway).retention))
        generate = _to_generate(gateway, seen, configuration)
        shred_keys = configuration.shred_keys
        certify = configuration.renewal
        manifests = wanted(gateway, seen, configuration, door, movement.replicas, defaults)
        contested = _contested(seen, manifests)
        apply = tuple(
            manifest
            for manifest in manifests
            if ref_of(manifest) not in held_back and _needs_write(gateway, seen, manifest)
        )
        unlabel = unlabelled(gateway, seen, apply)
        delete = _superfluous(gateway, seen, configuration)
        stop_auditor = is_to_stop(gateway, seen)
        rescale = _rescaled(gateway, live_set, movement, manifests)
        renew = _to_renew(gateway, seen, configuration, door, movement.replicas, apply)
        renew = marked(gateway, seen, movement.replicas, apply, renew)
        written = not unpublished and not _files(gateway) & set(map(ref_of, apply))
        balancers = seen.haproxy_pods, seen.balancers
        if not may_retire(gateway, movement, door, written, *balancers, seen.now):
            movement = replace(movement, retire=None, since=None)
        if movement.replace and _comes_anew(gateway, seen, apply):
            # Its successor would be made from the template that is about to be replaced.
            movement = replace(movement, replace=None)
    held = (
        held_checkpoints(gateway, seen, configuration.verifying_key, configuration.former_keys)
        if not conflicts
        else Held()
    )
    aggregate = held_aggregate(gateway, seen, configuration.auditor_key) if not conflicts else HeldAggregate()
    situation = Situation(
        gateway=gateway,
        seen=seen,
        configuration=configuration,
        conflicts=conflicts,
        auditor_conflicts=auditor_conflicts,
        retention_conflicts=retention_conflicts,
        leaving=_leaving(gateway, seen, configuration),
        writes=bool(
            generate
            or shred_keys.to_make
            or certify
            or apply
            or unlabel
            or delete
            or renew
            or publish
            or rescale is not None
            or stop_auditor
        ),
        shards=shards,
        movement=movement,
        taking_over=taking,
        held=held,
        aggregate=aggregate,
        contested=contested,
    )
    return Plan(
        generate,
        apply,
        delete,
        report(situation, defaults),
        renew=renew,
        rescale=rescale,
        stop_auditor=stop_auditor,
        patch=_strategy(gateway, live_set, apply),
        unlabel=unlabel,
        stay=tuple(shard.pod for shard in movement.stay),
        retire=_to_retire(movement),
        replace=(movement.replace.pod,) if movement.replace else (),
        found=found,
        moving=moving or bool(taking) or are_awaited(shards),
        hold=None if gateway.spec.paused else held.manifest,
        hold_aggregate=None if gateway.spec.paused else aggregate.manifest,
        shred_keys=shred_keys,
        certify=certify,
        owning=None if gateway.spec.paused else (movement.replicas, shares),
        publish=publish,
        due=min((moment for moment in configuration.moments if moment > seen.now), default=math.inf),
    )


def _comes_anew(gateway: Gateway, seen: Observed, apply: Iterable[Manifest]) -> bool:
    """Return whether the workers' set is to be written as it was not before.

    One that somebody else changes each time, or that is refused, comes no closer by waiting.
    """
    worker = Ref("StatefulSet", names(gateway).worker)
    return any(ref_of(found) == worker and seen.tried.get(worker) != seal(found) for found in apply)


def _rescaled(
    gateway: Gateway, live_set: Manifest | None, movement: Movement, manifests: Iterable[Manifest]
) -> int | None:
    """Return how many workers a set is to have that is not among the manifests, because something keeps its
    template back; None for as many as it has."""
    if live_set is None or Ref("StatefulSet", names(gateway).worker) in map(ref_of, manifests):
        return None
    return movement.replicas if movement.replicas != live_set["spec"]["replicas"] else None


def _movement(
    gateway: Gateway,
    seen: Observed,
    live_set: Manifest | None,
    shards: tuple[Shard, ...],
    configuration: Configuration,
    conflicts: tuple[Ref, ...],
) -> Movement:
    """Return the workers' next step."""
    asked = live_set["spec"]["replicas"] if live_set else gateway.spec.replicas
    if gateway.spec.paused:
        return Movement(asked)
    if conflicts:
        return everybody_stays(asked, shards)
    before = {condition["type"]: condition.get("reason") for condition in seen.conditions}
    return next_movement(
        gateway,
        live_set,
        shards,
        begun=before.get(ConditionType.PROGRESSING) in (Purpose.ROLLING.value, STALLED),
        now=seen.now,
        obstacle=obstacle(gateway, seen),
        # Nobody may start again who is told to end now.
        unfit=next((problem.message for problem in configuration.worker_problems), None),
    )


def _strategy(gateway: Gateway, live_set: Manifest | None, apply: Iterable[Manifest]) -> dict[Ref, Manifest]:
    """Return the merge patch that a set needs which its controller was to roll.

    The API server filled in the parameters of that strategy, refuses them beside ours, and lets only a patch
    take away what another one set.
    """
    ref = Ref("StatefulSet", names(gateway).worker)
    parameters = ((live_set or {}).get("spec", {}).get("updateStrategy") or {}).get("rollingUpdate")
    if parameters is None or ref not in map(ref_of, apply):
        return {}
    return {ref: {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}}


def _to_retire(movement: Movement) -> tuple[Manifest, ...]:
    """Return the pod of the worker that has to be told to retire: until it says that it does."""
    shard = movement.retire
    if shard is None or (shard.report is not None and shard.report.retiring):
        return ()
    return (shard.pod,)


def _leaving(gateway: Gateway, seen: Observed, configuration: Configuration) -> tuple[Ref, ...]:
    """Return the objects whose going has to be waited for."""
    found: list[Ref] = []
    for ref, live in seen.children.items():
        standing: Any = classify(gateway, live)
        generated = ref.kind == "Secret" and ref.name in configuration.missing_secrets
        if standing is Ownership.LEAVING or (generated and live and of_a_predecessor(gateway, live)):
            found.append(ref)
    return tuple(found)
