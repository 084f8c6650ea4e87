"""The observed state of a gateway in one reconcile."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proofgate_operator.api.gateway import MAX_REPLICAS, Gateway
from proofgate_operator.build import auditor_workers, export_key, internal_tls, storage
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.plan.audit_reports import AuditReport
from proofgate_operator.plan.balancers import BalancerReport
from proofgate_operator.plan.drift import ApplyResult
from proofgate_operator.plan.pod_durations import PodDurations
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.plan.request_probes import RequestProbeReport
from proofgate_operator.plan.unreadable_resources import UnreadableResource


@dataclass(frozen=True, order=True)
class Ref:
    """A reference to an object in the gateway's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class TenantShards:
    """The shards of GatewayTenants: the desired digest of each shard (none if no tenant may attach), and the
    stamp of the last written shards (empty if unknown)."""

    digests: tuple[str, ...] = ()
    published_stamp: str = ""
    #: `<namespace>/<name>` of each tenant; empty unless tenants have shred keys.
    names: frozenset[str] = frozenset()
    #: Namespaces and Secrets of tenants that currently cannot be read.
    unreadable: tuple[UnreadableResource, ...] = ()


@dataclass(frozen=True)
class ObservedState:
    """The observed state of the cluster: the gateway's objects, the Secrets it names, the pods of its workers
    and of HAProxy, the workers' reports, and the time of the observation (`now`, in seconds since 1970).

    None stands for an object that does not exist. `previous_conditions` and `previous_shards` are from the
    status of the previous reconcile.
    """

    children: Mapping[Ref, Manifest | None] = field(default_factory=dict)
    secrets: Mapping[str, Manifest | None] = field(default_factory=dict, repr=False)
    worker_pods: tuple[Manifest, ...] = ()
    haproxy_pods: tuple[Manifest, ...] = ()
    previous_conditions: tuple[Manifest, ...] = ()
    previous_shards: tuple[Manifest, ...] = ()
    worker_reports: Mapping[int, WorkerReport] = field(default_factory=dict)
    #: Reports of HAProxy's agents about workers, by pod name; empty while no worker moves.
    balancer_reports: Mapping[str, BalancerReport] = field(default_factory=dict)
    #: Reports of HAProxy's agents about their probe requests, by pod name.
    request_probes: Mapping[str, RequestProbeReport] = field(default_factory=dict)
    now: float = 0.0
    #: How long the pods have been in their current state.
    pod_durations: PodDurations = field(default_factory=PodDurations)
    #: `.status.ledger` from the previous reconcile.
    ledger_status: Manifest = field(default_factory=dict)
    #: Results of the operator's own writes.
    apply_results: Mapping[Ref, ApplyResult] = field(default_factory=dict)
    #: Why the API server refuses to create worker pods; None if it does not, or has not reported it.
    creation_failure: str | None = None
    #: Digests of the manifests of the last writes, including refused ones.
    attempted_digests: Mapping[Ref, str] = field(default_factory=dict)
    #: The GatewayTenants of the gateway.
    tenants: TenantShards = TenantShards()
    #: Names of pods that have the workers' labels but are not workers.
    stray_pods: tuple[str, ...] = ()
    #: The auditor's pod; None if there is none.
    auditor_pod: Manifest | None = None
    #: The auditor's last report; None if it was never asked.
    audit_report: AuditReport | None = None
    #: `.status.auditor` from the previous reconcile.
    auditor_status: Manifest = field(default_factory=dict)
    #: The pods of the retention job's runs, including finished ones.
    retention_pods: tuple[Manifest, ...] = ()
    #: `.status.keeping` from the previous reconcile.
    keeping_status: Manifest = field(default_factory=dict)
    #: The Secrets named in the spec that could not be read; `secrets` has None for them.
    unreadable_secrets: Mapping[str, UnreadableResource] = field(default_factory=dict)
    #: Kinds of the gateway's objects for which the API server has not answered for some time.
    unavailable_kinds: tuple[UnreadableResource, ...] = ()

    @property
    def has_pod_monitors(self) -> bool:
        """Whether the cluster has the kind PodMonitor: only then are PodMonitors read."""
        return any(ref.kind == "PodMonitor" for ref in self.children)

    def child(self, kind: str, name: str) -> Manifest | None:
        """Return one of the gateway's objects; None if it does not exist."""
        return self.children.get(Ref(kind, name))


def is_worker(gateway: Gateway, pod: Manifest) -> bool:
    """Return whether a pod with the workers' labels was created by their StatefulSet.

    A copy for debugging has the same labels and no shard; the operator neither asks nor commands it.
    """
    worker = names(gateway).worker
    owners = pod["metadata"].get("ownerReferences") or []
    made = any((o.get("controller"), o["kind"], o["name"]) == (True, "StatefulSet", worker) for o in owners)
    return made and bool(re.fullmatch(rf"{re.escape(worker)}-(0|[1-9][0-9]?)", pod["metadata"]["name"]))


def is_retention_run(gateway: Gateway, pod: Manifest) -> bool:
    """Return whether a pod with the retention job's labels was created by a Job of its CronJob."""
    owners = pod["metadata"].get("ownerReferences") or []
    prefix = f"{names(gateway).retention}-"
    return any(o.get("controller") and o["kind"] == "Job" and o["name"].startswith(prefix) for o in owners)


def ref_of(manifest: Manifest) -> Ref:
    """Return the reference to a manifest's object."""
    return Ref(manifest["kind"], manifest["metadata"]["name"])


def worker_claim_refs(gateway: Gateway) -> tuple[str, ...]:
    """Return the claims that workers mount now or during a replacement, whether they exist or not."""
    spec = gateway.spec
    second = spec.replicas == 1 and spec.rollout.surge
    return storage.claim_names(gateway, spec.replicas + second)


def surplus_claims(gateway: Gateway, labelled: Iterable[Manifest]) -> dict[Ref, Manifest]:
    """Return, among the claims with the gateway's label, the claims of workers beyond the wanted number.
    Claims that are being deleted are left out."""
    beyond = {*storage.claim_names(gateway, MAX_REPLICAS)} - {*worker_claim_refs(gateway)}
    found = {claim["metadata"]["name"]: claim for claim in labelled}
    return {
        Ref("PersistentVolumeClaim", name): found[name]
        for name in sorted(beyond & found.keys())
        if not found[name]["metadata"].get("deletionTimestamp")
    }


def child_refs(gateway: Gateway, monitors: bool = False) -> tuple[Ref, ...]:
    """Return every object that a gateway may have, whether its spec currently requires it or not, except the
    claims of workers that were scaled away.

    `monitors`: the cluster has the kind PodMonitor.
    """
    own = names(gateway)
    monitored = (own.worker, own.haproxy, own.auditor) if monitors else ()
    return (
        *(auditor_refs(gateway) if gateway.enabled_auditor else ()),
        *(retention_refs(gateway) if gateway.spec.keeping else ()),
        *(Ref("PodMonitor", name) for name in monitored),
        Ref("ServiceAccount", own.worker),
        Ref("ServiceAccount", own.haproxy),
        Ref("NetworkPolicy", own.worker),
        Ref("NetworkPolicy", own.haproxy),
        Ref("PodDisruptionBudget", own.worker),
        Ref("PodDisruptionBudget", own.haproxy),
        *(Ref("PersistentVolumeClaim", name) for name in worker_claim_refs(gateway)),
        Ref("Secret", own.admin),
        Ref("Secret", own.ledger),
        Ref("Secret", own.tenants),
        *((Ref("Secret", own.shred_keys),) if _makes_shred_keys(gateway) else ()),
        *((Ref("Secret", own.internal_tls),) if internal_tls.is_operator_managed(gateway) else ()),
        *(
            (Ref("Service", own.internal_service),)
            if gateway.spec.load_balancer.accept_proxy_protocol
            else ()
        ),
        Ref("ConfigMap", own.config),
        Ref("ConfigMap", own.haproxy),
        Ref("ConfigMap", own.addresses),
        Ref("ConfigMap", own.checkpoints),
        Ref("Service", own.workers),
        Ref("Service", own.service),
        Ref("StatefulSet", own.worker),
        Ref("Deployment", own.haproxy),
    )


def _makes_shred_keys(gateway: Gateway) -> bool:
    wanted = gateway.spec.ledger.shred_keys
    return wanted is not None and wanted.secret_ref is None


def auditor_refs(gateway: Gateway) -> tuple[Ref, ...]:
    """Return the objects that the operator creates for an auditor, except its PodMonitor. The claim and the
    ConfigMap outlive the auditor; without an auditor, only objects with the gateway's label are read."""
    name, wanted = names(gateway).auditor, gateway.enabled_auditor
    brought = wanted is not None and wanted.storage.existing_claim is not None
    index = wanted.enabled_index if wanted is not None else None
    asked = auditor_workers.workers_serve_volumes(gateway) or (index is not None and index.has_readers)
    kinds = (
        *("ServiceAccount", "NetworkPolicy", "Service", "StatefulSet", "ConfigMap"),
        *(() if brought else ("PersistentVolumeClaim",)),
        *(("Secret",) if asked else ()),
    )
    generated = [Ref("Secret", names(gateway).export_key)] if export_key.is_generated(index) else []
    return (*(Ref(kind, name) for kind in kinds), *generated)


def retention_refs(gateway: Gateway) -> tuple[Ref, ...]:
    """Return the objects that the operator creates for a retention job. The claim and the ConfigMap outlive
    it; without one, only objects with the gateway's label are read."""
    name, wanted = names(gateway).retention, gateway.spec.keeping
    brought = wanted is not None and wanted.storage.existing_claim is not None
    kinds = (
        *("ServiceAccount", "NetworkPolicy", "ConfigMap", "CronJob"),
        *(() if brought else ("PersistentVolumeClaim",)),
    )
    return tuple(Ref(kind, name) for kind in kinds)


def referenced_secrets(gateway: Gateway) -> tuple[str, ...]:
    """Return the Secrets that the spec refers to."""
    tenants = gateway.spec.tenants
    keys = (key.secret_ref.name for tenant in tenants for key in tenant.api_keys or () if key.secret_ref)
    return tuple(dict.fromkeys((*keys, *non_tenant_secrets(gateway))))


def non_tenant_secrets(gateway: Gateway) -> tuple[str, ...]:
    """Return the Secrets that the spec refers to, except those that only contain keys of tenants."""
    spec, shred_keys = gateway.spec, gateway.spec.ledger.shred_keys
    found: Iterable[str] = (
        *(reference.name for provider in spec.providers for _, _, reference in provider.secrets()),
        *(reference.name for _, _, reference in (spec.egress.secrets() if spec.egress else ())),
        *(reference.name for _, _, reference in (spec.telemetry.secrets() if spec.telemetry else ())),
        *([spec.ledger.signing_key_secret_ref.name] if spec.ledger.signing_key_secret_ref else []),
        *([shred_keys.secret_ref.name] if shred_keys and shred_keys.secret_ref else []),
        *([spec.load_balancer.tls.certificate_secret_ref.name] if spec.load_balancer.tls else []),
        *(
            one.name
            for one in (spec.internal_tls.worker_secret_ref, spec.internal_tls.haproxy_secret_ref)
            if one
        ),
        *(gateway.enabled_auditor.secrets() if gateway.enabled_auditor else ()),
        *([spec.keeping.signing_key_secret_ref.name] if spec.keeping else []),
    )
    return tuple(dict.fromkeys(found))
