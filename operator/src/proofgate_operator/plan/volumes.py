"""The claims of a gateway's ledger: which should exist, and whether evidence can be written to them."""

from proofgate_schema.terms import Quota

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.api.gateway import MAX_REPLICAS, Gateway
from proofgate_operator.api.load_balancer import Affinity
from proofgate_operator.api.volume import VolumeMode
from proofgate_operator.build import storage
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.plan.drift import contains
from proofgate_operator.plan.observed_state import ObservedState, worker_claim_refs
from proofgate_operator.plan.volume_growth import GROWTH_REASONS, growth

_PENDING = "ClaimPending"
#: Order of severity: of several claims, the worst one determines the reason.
_REASONS_WORST_FIRST = (
    "ClaimLost",
    "ClaimMissing",
    "ClaimLeaving",
    "ClaimNotMade",
    _PENDING,
    *GROWTH_REASONS,
)
#: The maximum number of claims in one message.
_MAX_NAMED = 5


def claims(gateway: Gateway, seen: ObservedState, workers: int) -> list[Manifest]:
    """Return the claims for `workers` workers, and the existing claims of former workers.

    Claims of former workers keep their evidence. They follow the retain policy, and keep their size until a
    worker mounts them again.
    """
    if gateway.spec.ledger.volume.existing_claim is not None:
        return []
    needed = {*storage.claim_names(gateway, workers)} & {*worker_claim_refs(gateway)}
    found: list[Manifest] = []
    for name in storage.claim_names(gateway, MAX_REPLICAS):
        live = seen.child("PersistentVolumeClaim", name)
        if name in needed:
            found.append(storage.claim(gateway, name))
        elif live is not None:
            kept = storage.claim(gateway, name)
            spec = {key: live["spec"][key] for key in kept["spec"] if key in live["spec"]}
            found.append({**kept, "spec": spec})
    return found


def claim_templates(gateway: Gateway, live_set: Manifest | None) -> list[Manifest]:
    """Return the claim templates of the workers' StatefulSet. They are immutable: an existing StatefulSet
    keeps its templates even if the spec changes."""
    wanted = storage.claim_templates(gateway)
    live = ((live_set or {}).get("spec") or {}).get("volumeClaimTemplates") or []
    return live if wanted and live and not contains(live, wanted) else wanted


def storage_bound_condition(gateway: Gateway, seen: ObservedState) -> Condition:
    """Return whether a volume for evidence exists for every worker that should exist now and stay. A worker
    that is about to start gets its claim together with its pod."""
    live_set = seen.child("StatefulSet", names(gateway).worker)
    replicas = gateway.spec.replicas
    # Another client may have scaled the StatefulSet, even to zero.
    workers = min(replicas, live_set["spec"]["replicas"] or replicas) if live_set else replicas
    mounted = storage.claim_names(gateway, workers)
    told = [_claim_state(gateway, seen, name) for name in mounted]
    missing = [(reason, message) for bound, reason, message in told if not bound]
    growing = [(reason, message) for bound, reason, message in told if bound and reason in GROWTH_REASONS]
    notable = sorted(missing or growing, key=lambda found: _REASONS_WORST_FIRST.index(found[0]))
    if notable:
        status = ConditionStatus.FALSE if missing else ConditionStatus.TRUE
        message = "; ".join(sentence for _, sentence in notable[:_MAX_NAMED])
        if len(notable) > _MAX_NAMED:
            message += f"; and {len(notable) - _MAX_NAMED} more"
        return Condition(ConditionType.STORAGE_BOUND, status, notable[0][0], message)
    message = f"PersistentVolumeClaim {mounted[0]} is bound"
    if len(mounted) > 1:
        message = f"all {len(mounted)} PersistentVolumeClaims are bound, {mounted[0]} to {mounted[-1]}"
    return Condition(ConditionType.STORAGE_BOUND, ConditionStatus.TRUE, "Bound", message)


def _claim_state(gateway: Gateway, seen: ObservedState, name: str) -> tuple[bool, str, str]:
    """Return whether one claim is bound, with a reason and a message."""
    live = seen.child("PersistentVolumeClaim", name)
    claim = f"PersistentVolumeClaim {name}"
    if live is None:
        brought = gateway.spec.ledger.volume.existing_claim is not None
        return False, "ClaimMissing" if brought else "ClaimNotMade", f"{claim} does not exist"
    if live["metadata"].get("deletionTimestamp"):
        return False, "ClaimLeaving", f"{claim} is being deleted while it is in use"
    phase = (live.get("status") or {}).get("phase", "Pending")
    if phase == "Pending":
        return False, _PENDING, f"{claim} is Pending: no volume fits, or the storage class waits for the pod"
    if phase != "Bound":
        return False, "ClaimLost", f"{claim} is {phase}, not Bound"
    return True, *(growth(live) or ("Bound", f"{claim} is bound"))


def storage_obstacle(gateway: Gateway, seen: ObservedState) -> str | None:
    """Return why no new worker could start, or no old one could seal its log; None if nothing prevents it.

    A Pending claim is no obstacle: no worker has run on it. If its class waits for the first pod, a pod that
    cannot be scheduled has to be replaced before the claim can be bound.
    """
    found = storage_bound_condition(gateway, seen)
    return None if found.is_true or found.reason == _PENDING else found.message


def limits_note(gateway: Gateway) -> str | None:
    """Return a note about limits if workers do not immediately see what other workers granted; None if they
    do."""
    spec = gateway.spec
    if spec.replicas == 1 or not any(
        quota != Quota() for tenant in spec.tenants for quota in (tenant.limits, tenant.key_limits)
    ):
        return None
    alone = spec.ledger.volume.mode is VolumeMode.PER_WORKER
    if spec.load_balancer.affinity is Affinity.NONE:
        each = "with spec.loadBalancer.affinity None any worker serves any tenant"
        if alone:
            return (
                f"{each}, and with spec.ledger.volume.mode PerWorker each worker grants every limit in full"
            )
        return f"{each}: usage on another worker counts with a delay of about two seconds"
    if not alone:
        return None
    return (
        "with spec.ledger.volume.mode PerWorker each worker counts limits on its own: a tenant that moves "
        "to another worker has its full limits again on that worker"
    )
