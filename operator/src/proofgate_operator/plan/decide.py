"""Decides the writes that bring the observed state of a gateway closer to its spec."""

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
from proofgate_operator.build.owners import WorkerShares
from proofgate_operator.build.storage import is_deleted_with_gateway
from proofgate_operator.plan.accepted_config import accepted_config_text
from proofgate_operator.plan.auditor import auditor_manifests, should_stop_auditor, workers_digest
from proofgate_operator.plan.conditions import ROLLOUT_STALLED
from proofgate_operator.plan.configuration import Configuration, read_configuration
from proofgate_operator.plan.discovery import is_discovery_pending, newly_discovered_pods
from proofgate_operator.plan.drift import is_reapply_too_soon, is_up_to_date, manifest_digest, with_digest
from proofgate_operator.plan.haproxy_sidecar import (
    HAProxyState,
    desired_haproxy_state,
    live_pods,
    may_retire,
    refresh_annotations,
)
from proofgate_operator.plan.held_aggregate import HeldAggregate, held_aggregate
from proofgate_operator.plan.held_checkpoints import HeldCheckpoints, held_checkpoints
from proofgate_operator.plan.internal_tls import CertificateRenewal, with_tls_transition
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of
from proofgate_operator.plan.ownership import Ownership, classify, is_owned_by_predecessor
from proofgate_operator.plan.pruning import prune_label_patches
from proofgate_operator.plan.retention import (
    override_retain_policy_for_holds,
    retention_manifests,
    should_remove_retention,
)
from proofgate_operator.plan.scaling import RemovalReason, ScalingStep, next_scaling_step, no_scaling_step
from proofgate_operator.plan.shards import Shard, read_shards
from proofgate_operator.plan.shred_keys import NO_SHRED_KEYS, ShredKeysState
from proofgate_operator.plan.status import Status, gateway_status
from proofgate_operator.plan.status_inputs import StatusInputs
from proofgate_operator.plan.takeover import next_shares, workers_taking_over
from proofgate_operator.plan.volumes import claim_templates, claims, storage_obstacle
from proofgate_operator.plan.worker_addresses import addresses_config_map, with_address_annotations
from proofgate_operator.plan.worker_memory import min_worker_memory


@dataclass(frozen=True)
class ReconcilePlan:
    """The writes of one reconcile, in order, and the status that is written after them.

    The writes are: Secrets to generate and shred keys to create (never overwritten), merge patches that
    remove the labels of pruning tools, merge patches and manifests to apply, objects to delete, the number of
    workers of a StatefulSet whose template is blocked, whether to stop the auditor, annotations that make the
    kubelet update a pod's files, workers to retire or to keep, and pods to delete so that their StatefulSet
    replaces them.

    `discovered_pods` are worker pods to which every HAProxy now sends connections: they become Ready.

    The status describes the state observed before the writes. `time_driven`: the next step needs only time.
    `newer_checkpoints` and `newer_aggregate` are the ConfigMaps of checkpoints that are newer than the held
    ones, from the workers and the auditor. They are also written while the gateway is settled, so
    `has_writes` ignores them. `publish_shards`: shards of tenants have to be written, with the workers and
    shares in `owners_input` (None: shards must not be written). `due_at` is the time at which the status
    changes by itself, in seconds since 1970.
    """

    secrets_to_generate: tuple[str, ...]
    manifests_to_apply: tuple[Manifest, ...]
    objects_to_delete: tuple[Ref, ...]
    status: Status
    rescale_to: int | None = None
    stop_auditor: bool = False
    pod_annotations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    merge_patches: Mapping[Ref, Manifest] = field(default_factory=dict)
    prune_label_patches: Mapping[Ref, Manifest] = field(default_factory=dict)
    retirements_to_cancel: tuple[Manifest, ...] = ()
    pods_to_retire: tuple[Manifest, ...] = ()
    pods_to_replace: tuple[Manifest, ...] = ()
    discovered_pods: tuple[Manifest, ...] = ()
    time_driven: bool = False
    newer_checkpoints: Manifest | None = None
    newer_aggregate: Manifest | None = None
    shred_keys: ShredKeysState = NO_SHRED_KEYS
    #: The renewal of the certificates of HAProxy and the workers; None if none is due.
    certificate_renewal: CertificateRenewal | None = None
    owners_input: tuple[int, WorkerShares] | None = None
    publish_shards: bool = False
    due_at: float = math.inf

    @property
    def has_writes(self) -> bool:
        """Whether any write besides the status and the checkpoints is planned."""
        resized = self.rescale_to is not None
        return bool(
            self.secrets_to_generate
            or self.shred_keys.to_make
            or self.certificate_renewal
            or self.manifests_to_apply
            or self.prune_label_patches
            or self.objects_to_delete
            or self.pod_annotations
            or self.pods_to_replace
            or self.discovered_pods
            or self.publish_shards
            or resized
            or self.stop_auditor
        )


def _name_conflicts(gateway: Gateway, seen: ObservedState) -> tuple[Ref, ...]:
    """Return the objects of others that have a name the gateway needs."""
    claim = gateway.spec.ledger.volume.existing_claim
    return tuple(
        ref
        for ref in seen.children
        if not (ref.kind == "PersistentVolumeClaim" and ref.name == claim)
        and not (ref == Ref("Secret", names(gateway).ledger) and ref.name in seen.secrets)
        and classify(gateway, seen.children.get(ref)) is Ownership.FOREIGN
    )


def desired_manifests(
    gateway: Gateway,
    seen: ObservedState,
    configuration: Configuration,
    door: HAProxyState,
    replicas: int,
    defaults: Defaults,
) -> list[Manifest]:
    """Return the current manifests of a gateway in the order of applying.

    A problem of the configuration leaves the affected objects unchanged: running workers keep the last valid
    configuration, and no worker starts with a partial one. The Secret of key digests is never blocked and
    comes first, because a removed key must be revoked without delay.
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
        *([services.internal_service(gateway)] if _has_internal_service(gateway, seen) else []),
        pdb.worker_budget(gateway),
    ]
    if gateway.spec.load_balancer.replicas > 1:
        manifests.append(pdb.haproxy_budget(gateway))
    # Before the StatefulSet that mounts them, so that they have the current size. After the key, so that a
    # claim without a key shows that the key was lost.
    if own.ledger not in configuration.missing_secrets:
        manifests += claims(gateway, seen, replicas)
        if classify(gateway, seen.child("Secret", own.ledger)) is Ownership.OURS:
            owned = is_deleted_with_gateway(gateway)
            manifests.append(gateway_secrets.ledger_secret_base(gateway, owned=owned))
    manifests.append(haproxy.config_map(gateway, defaults))
    manifests.append(addresses_config_map(gateway, seen, replicas))
    if not configuration.file_problems and not configuration.shred_keys.is_pending:
        text = worker_config.worker_config_text(
            gateway, min_worker_memory(gateway, seen.worker_pods), defaults
        )
        manifests.append(worker_config.config_map(gateway, text, accepted_config_text(gateway, seen, text)))
    digests = configuration.digests
    file = seen.child("ConfigMap", own.config)
    uncertified = configuration.internal_tls.is_pending
    waits = configuration.shred_keys.is_pending or uncertified
    has_file = not configuration.file_problems or classify(gateway, file) is Ownership.OURS
    if digests and digests.start and has_file and not waits and not configuration.worker_problems:
        templates = claim_templates(gateway, seen.child("StatefulSet", own.worker))
        manifests.append(statefulset.statefulset(gateway, defaults, replicas, digests.start, templates))
    if digests and not configuration.balancer_problems and not uncertified:
        manifests.append(haproxy.deployment(gateway, defaults, digests.haproxy))
    if gateway.spec.monitoring.pod_monitors is PodMonitors.AUTO and seen.has_pod_monitors:
        manifests += monitoring.pod_monitors(gateway)
    if own.ledger not in configuration.missing_secrets:
        manifests += auditor_manifests(gateway, seen, configuration, replicas, defaults)
        manifests += retention_manifests(gateway, seen, configuration, defaults)
    return [with_digest(manifest) for manifest in manifests]


def _has_internal_service(gateway: Gateway, seen: ObservedState) -> bool:
    """Return whether clients inside the cluster have a separate Service. Once created it stays, because
    clients may use it."""
    live = seen.child("Service", names(gateway).internal_service)
    return gateway.spec.load_balancer.accept_proxy_protocol or classify(gateway, live) is Ownership.OURS


def _secrets_to_generate(
    gateway: Gateway, seen: ObservedState, configuration: Configuration
) -> tuple[str, ...]:
    """Return the generated Secrets whose names are free; a Secret of a former gateway has to be deleted
    first."""
    return tuple(name for name in configuration.missing_secrets if seen.child("Secret", name) is None)


def _superfluous(gateway: Gateway, seen: ObservedState, configuration: Configuration) -> tuple[Ref, ...]:
    """Return the objects that an earlier spec required and this one does not. Evidence and keys are never
    among them."""
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
    elif gateway.enabled_auditor is None:
        found.append(Ref("PodMonitor", own.auditor))
    if should_remove_retention(gateway, seen, configuration):
        found.append(Ref("CronJob", own.retention))
    return tuple(ref for ref in found if classify(gateway, seen.children.get(ref)) is Ownership.OURS)


def _needs_write(gateway: Gateway, seen: ObservedState, manifest: Manifest) -> bool:
    ref = ref_of(manifest)
    live, applied = seen.children.get(ref), seen.apply_results.get(ref)
    if classify(gateway, live) is Ownership.LEAVING:
        return False
    return live is None or not (
        is_up_to_date(live, manifest, applied) or is_reapply_too_soon(live, manifest, applied, seen.now)
    )


def _contested(seen: ObservedState, manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the objects whose fields another client overwrites repeatedly."""
    found: list[str] = []
    for manifest in manifests:
        ref = ref_of(manifest)
        live, applied = seen.children.get(ref), seen.apply_results.get(ref)
        if live and applied and applied.contested and not is_up_to_date(live, manifest, applied):
            found.append(applied.contested)
    return tuple(found)


def _pods_to_annotate(
    gateway: Gateway,
    seen: ObservedState,
    configuration: Configuration,
    door: HAProxyState,
    workers: int,
    apply: Iterable[Manifest],
) -> dict[str, dict[str, str]]:
    """Return the annotations for pods of workers, HAProxy and the auditor that have to update their mounted
    files.

    Empty until the mounted objects have been written and observed: the kubelet has a separate watch, and a
    pod that it updates too early gets the old files again.
    """
    unpublished = door.stamp != seen.tenants.published_stamp
    if not configuration.digests or unpublished or _files(gateway) & set(map(ref_of, apply)):
        return {}
    told = [(pod, {CONFIG_ANNOTATION: configuration.digests.config}) for pod in live_pods(seen.worker_pods)]
    told += [(pod, refresh_annotations(door.digest, seen.now)) for pod in live_pods(seen.haproxy_pods)]
    if (listed := workers_digest(gateway, configuration, workers)) and seen.auditor_pod:
        told += [(pod, {CONFIG_ANNOTATION: listed}) for pod in live_pods([seen.auditor_pod])]
    return {
        pod["metadata"]["name"]: annotations
        for pod, annotations in told
        if (pod["metadata"].get("annotations") or {}).get(CONFIG_ANNOTATION) != annotations[CONFIG_ANNOTATION]
    }


def _templates(gateway: Gateway) -> set[Ref]:
    """Return the objects with pod templates, which mount other objects by name."""
    own = names(gateway)
    return {
        Ref("StatefulSet", own.worker),
        Ref("Deployment", own.haproxy),
        Ref("StatefulSet", own.auditor),
        Ref("CronJob", own.retention),
    }


def _files(gateway: Gateway) -> set[Ref]:
    """Return the mounted objects that the operator creates."""
    own = names(gateway)
    return {Ref("ConfigMap", own.config), Ref("Secret", own.tenants), Ref("Secret", own.auditor)}


def decide(gateway: Gateway, seen: ObservedState, defaults: Defaults) -> ReconcilePlan:
    """Return the plan for one gateway. The function is pure: the same observed state gives the same plan."""
    gateway = with_tls_transition(gateway, seen)
    configuration = read_configuration(gateway, seen, defaults)
    gateway, configuration = override_retain_policy_for_holds(
        configuration.shred_keys.without_omitted_tenants(gateway), seen, configuration
    )
    taken = _name_conflicts(gateway, seen)
    auditor_conflicts = tuple(ref for ref in taken if ref.name == names(gateway).auditor)
    retention_conflicts = tuple(ref for ref in taken if ref.name == names(gateway).retention)
    conflicts = tuple(ref for ref in taken if ref not in (*auditor_conflicts, *retention_conflicts))
    live_set = seen.child("StatefulSet", names(gateway).worker)
    shards = read_shards(seen, live_set)
    movement = _next_scaling_step(gateway, seen, live_set, shards, configuration, conflicts)
    shares = next_shares(gateway, configuration.shares, shards, movement, seen.now)
    door = desired_haproxy_state(gateway, configuration, movement.replicas, shares, seen.tenants.digests)
    unpublished = door.stamp != seen.tenants.published_stamp
    moving = movement.is_time_driven
    taking = () if conflicts or gateway.spec.paused else workers_taking_over(shares, shards, movement)
    generate: tuple[str, ...] = ()
    shred_keys = NO_SHRED_KEYS
    certify: CertificateRenewal | None = None
    apply: tuple[Manifest, ...] = ()
    unlabel: dict[Ref, Manifest] = {}
    delete: tuple[Ref, ...] = ()
    renew: dict[str, dict[str, str]] = {}
    rescale: int | None = None
    stop_auditor = False
    contested: tuple[str, ...] = ()
    publish = unpublished and not gateway.spec.paused
    found = newly_discovered_pods(shards)
    if gateway.spec.paused and live_set:
        # The workers' addresses are not part of the spec, so they are updated also while paused.
        moved = with_digest(addresses_config_map(gateway, seen, movement.replicas))
        apply = (moved,) if ref_of(moved) not in taken and _needs_write(gateway, seen, moved) else ()
        renew = with_address_annotations(gateway, seen, movement.replicas, apply, {})
    # A taken name blocks everything before the first start; later it blocks only the objects that need it.
    if not gateway.spec.paused and (not conflicts or live_set):
        held_back = {*taken, *(_templates(gateway) if conflicts else ())}
        if auditor_conflicts:
            held_back.add(Ref("StatefulSet", names(gateway).auditor))
        if retention_conflicts:
            held_back.add(Ref("CronJob", names(gateway).retention))
        generate = _secrets_to_generate(gateway, seen, configuration)
        shred_keys = configuration.shred_keys
        certify = configuration.renewal
        manifests = desired_manifests(gateway, seen, configuration, door, movement.replicas, defaults)
        contested = _contested(seen, manifests)
        apply = tuple(
            manifest
            for manifest in manifests
            if ref_of(manifest) not in held_back and _needs_write(gateway, seen, manifest)
        )
        unlabel = prune_label_patches(gateway, seen, apply)
        delete = _superfluous(gateway, seen, configuration)
        stop_auditor = should_stop_auditor(gateway, seen)
        rescale = _rescaled(gateway, live_set, movement, manifests)
        renew = _pods_to_annotate(gateway, seen, configuration, door, movement.replicas, apply)
        renew = with_address_annotations(gateway, seen, movement.replicas, apply, renew)
        written = not unpublished and not _files(gateway) & set(map(ref_of, apply))
        balancers = seen.haproxy_pods, seen.balancer_reports
        if not may_retire(gateway, movement, door, written, *balancers, seen.now):
            movement = replace(movement, shard_to_retire=None, since=None)
        if movement.shard_to_replace and _has_new_worker_template(gateway, seen, apply):
            # Its successor would be created from the template that is about to be replaced.
            movement = replace(movement, shard_to_replace=None)
    held = (
        held_checkpoints(gateway, seen, configuration.verifying_key, configuration.former_keys)
        if not conflicts
        else HeldCheckpoints()
    )
    aggregate = held_aggregate(gateway, seen, configuration.auditor_key) if not conflicts else HeldAggregate()
    situation = StatusInputs(
        gateway=gateway,
        seen=seen,
        configuration=configuration,
        conflicts=conflicts,
        auditor_conflicts=auditor_conflicts,
        retention_conflicts=retention_conflicts,
        leaving=_leaving(gateway, seen, configuration),
        has_writes=bool(
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
        scaling_step=movement,
        workers_taking_over=taking,
        held_checkpoints=held,
        held_aggregate=aggregate,
        contested=contested,
    )
    return ReconcilePlan(
        generate,
        apply,
        delete,
        gateway_status(situation, defaults),
        pod_annotations=renew,
        rescale_to=rescale,
        stop_auditor=stop_auditor,
        merge_patches=_strategy(gateway, live_set, apply),
        prune_label_patches=unlabel,
        retirements_to_cancel=tuple(shard.pod for shard in movement.retirements_to_cancel),
        pods_to_retire=_pods_to_retire(movement),
        pods_to_replace=(movement.shard_to_replace.pod,) if movement.shard_to_replace else (),
        discovered_pods=found,
        time_driven=moving or bool(taking) or is_discovery_pending(shards),
        newer_checkpoints=None if gateway.spec.paused else held.manifest,
        newer_aggregate=None if gateway.spec.paused else aggregate.manifest,
        shred_keys=shred_keys,
        certificate_renewal=certify,
        owners_input=None if gateway.spec.paused else (movement.replicas, shares),
        publish_shards=publish,
        due_at=min((moment for moment in configuration.change_times if moment > seen.now), default=math.inf),
    )


def _has_new_worker_template(gateway: Gateway, seen: ObservedState, apply: Iterable[Manifest]) -> bool:
    """Return whether a new template of the workers' StatefulSet is about to be written.

    Waiting does not help if another client overwrites the template each time, or if it is refused.
    """
    worker = Ref("StatefulSet", names(gateway).worker)
    return any(
        ref_of(found) == worker and seen.attempted_digests.get(worker) != manifest_digest(found)
        for found in apply
    )


def _rescaled(
    gateway: Gateway, live_set: Manifest | None, movement: ScalingStep, manifests: Iterable[Manifest]
) -> int | None:
    """Return the number of workers for a StatefulSet whose manifest is blocked; None if the number stays the
    same."""
    if live_set is None or Ref("StatefulSet", names(gateway).worker) in map(ref_of, manifests):
        return None
    return movement.replicas if movement.replicas != live_set["spec"]["replicas"] else None


def _next_scaling_step(
    gateway: Gateway,
    seen: ObservedState,
    live_set: Manifest | None,
    shards: tuple[Shard, ...],
    configuration: Configuration,
    conflicts: tuple[Ref, ...],
) -> ScalingStep:
    """Return the workers' next scaling or rollout step."""
    asked = live_set["spec"]["replicas"] if live_set else gateway.spec.replicas
    if gateway.spec.paused:
        return ScalingStep(asked)
    if conflicts:
        return no_scaling_step(asked, shards)
    before = {condition["type"]: condition.get("reason") for condition in seen.previous_conditions}
    return next_scaling_step(
        gateway,
        live_set,
        shards,
        begun=before.get(ConditionType.PROGRESSING) in (RemovalReason.ROLLING.value, ROLLOUT_STALLED),
        now=seen.now,
        obstacle=storage_obstacle(gateway, seen),
        # A pod that is deleted now could not be replaced.
        unfit=next((problem.message for problem in configuration.worker_problems), None),
    )


def _strategy(gateway: Gateway, live_set: Manifest | None, apply: Iterable[Manifest]) -> dict[Ref, Manifest]:
    """Return the merge patch for a StatefulSet that still has the rolling update strategy.

    The API server filled in that strategy's parameters, refuses them next to ours, and removes fields of
    another client only by a patch.
    """
    ref = Ref("StatefulSet", names(gateway).worker)
    parameters = ((live_set or {}).get("spec", {}).get("updateStrategy") or {}).get("rollingUpdate")
    if parameters is None or ref not in map(ref_of, apply):
        return {}
    return {ref: {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}}


def _pods_to_retire(movement: ScalingStep) -> tuple[Manifest, ...]:
    """Return the pod of the worker that has to be asked to retire, until the worker confirms it."""
    shard = movement.shard_to_retire
    if shard is None or (shard.report is not None and shard.report.retiring):
        return ()
    return (shard.pod,)


def _leaving(gateway: Gateway, seen: ObservedState, configuration: Configuration) -> tuple[Ref, ...]:
    """Return the objects whose deletion has to be awaited."""
    found: list[Ref] = []
    for ref, live in seen.children.items():
        standing: Any = classify(gateway, live)
        generated = ref.kind == "Secret" and ref.name in configuration.missing_secrets
        if standing is Ownership.LEAVING or (generated and live and is_owned_by_predecessor(gateway, live)):
            found.append(ref)
    return tuple(found)
