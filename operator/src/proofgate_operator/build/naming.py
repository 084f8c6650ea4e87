"""Names, labels and owner references of the objects of a gateway."""

from dataclasses import dataclass
from typing import Any

from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.gateway import Gateway

Manifest = dict[str, Any]

OPERATOR = "proofgate-operator"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
GATEWAY_LABEL = "proofgate.dev/gateway"
#: Pods with this label, in the gateway's namespace, may read metrics.
MONITORING_LABEL = "proofgate.dev/monitoring"
#: Annotation of a pod template: digest of the values that a pod reads only at its start. A change rolls the
#: pods.
START_ANNOTATION = "proofgate.dev/start-digest"
#: Annotation of a pod: digest of the values that it applies while it runs. When it changes, the kubelet
#: immediately updates the pod's mounted files; otherwise it does so about once a minute.
CONFIG_ANNOTATION = "proofgate.dev/config-digest"
#: Annotation of HAProxy pods: digest of the workers' addresses that HAProxy should have.
ADDRESSES_ANNOTATION = "proofgate.dev/addresses"
#: Further annotation of HAProxy pods: the time at which the digest of its configuration was written.
RENEWED_ANNOTATION = "proofgate.dev/renewed"
#: Readiness condition of workers' pods: every HAProxy sends connections to the worker.
LOAD_BALANCED_CONDITION = "proofgate.dev/load-balanced"
#: Annotation of the auditor's pod template with the trust policy of its witnesses, which the pod reads from
#: there. So a new policy rolls the pod, and a running pod keeps its own policy.
WITNESS_POLICY_ANNOTATION = "proofgate.dev/witness-policy"
#: Annotation that the auditor's pod reads as a file: the settings for sign-in of readers, without a secret.
OIDC_ANNOTATION = "proofgate.dev/oidc"
#: Annotation of the retention job's pod template with the plan to execute, which the pod reads from there.
KEEPING_PLAN_ANNOTATION = "proofgate.dev/keeping-plan"
#: Annotation with the digest of a manifest as the operator wrote it.
APPLIED_ANNOTATION = "proofgate.dev/applied"

#: Annotations of objects that outlive their gateway; Argo CD, Helm and Flux check them before they prune or
#: delete. Sources: argo-cd.readthedocs.io (sync options "Prune" and "Delete"), helm.sh (annotation
#: `helm.sh/resource-policy`), fluxcd.io (Kustomization, "Garbage collection").
KEEP_ANNOTATIONS = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "helm.sh/resource-policy": "keep",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
#: Label by which tools identify the owner of an object. Argo CD treats an object with this label and without
#: an owner as its own.
INSTANCE_LABEL = "app.kubernetes.io/instance"

#: Name of the workers' volume for the ledger, and of the claim template in the mode PerWorker.
LEDGER_VOLUME = "ledger"

#: The unprivileged user of every container (the "nonroot" of distroless images).
USER_ID = 65532


@dataclass(frozen=True)
class Defaults:
    """Defaults of the operator's installation for all gateways.

    `cluster_domain` is the DNS suffix of Services, because HAProxy's resolver has no search list.
    `operator_namespace` is the namespace of the operator's pods; empty if it runs outside the cluster.
    `ipv6`: pods have IPv6 addresses, alone or besides IPv4. `platform_ids`: the platform chooses the user and
    group ids of pods, as OpenShift requires. `image_pull_secrets` are for every pod of a gateway.
    """

    worker_image: str
    haproxy_image: str
    cluster_domain: str = "cluster.local"
    operator_namespace: str = ""
    ipv6: bool = False
    platform_ids: bool = False
    image_pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Names:
    """Names of a gateway's objects."""

    gateway: str

    @property
    def worker(self) -> str:
        """StatefulSet, ServiceAccount, disruption budget and network policy of the workers."""
        return f"{self.gateway}-worker"

    @property
    def workers(self) -> str:
        """Headless Service that gives every worker a DNS name."""
        return f"{self.gateway}-workers"

    @property
    def haproxy(self) -> str:
        """Deployment of HAProxy, and its other objects except the Service."""
        return f"{self.gateway}-haproxy"

    @property
    def addresses(self) -> str:
        """ConfigMap of the workers' addresses, for HAProxy."""
        return f"{self.gateway}-addresses"

    @property
    def service(self) -> str:
        """Service for clients."""
        return self.gateway

    @property
    def config(self) -> str:
        """ConfigMap of the workers' configuration."""
        return f"{self.gateway}-config"

    @property
    def checkpoints(self) -> str:
        """ConfigMap of the held checkpoints of the workers' logs."""
        return f"{self.gateway}-checkpoints"

    @property
    def tenants(self) -> str:
        """Secret of the key digests and HAProxy's maps."""
        return f"{self.gateway}-tenants"

    def tenant_shard(self, shard: int) -> str:
        """Secret of one shard of GatewayTenants and their keys."""
        return f"{self.tenants}-{shard:02}"

    @property
    def admin(self) -> str:
        """Secret of the admin token."""
        return f"{self.gateway}-admin"

    @property
    def ledger(self) -> str:
        """Secret of the generated signing key."""
        return f"{self.gateway}-ledger"

    @property
    def internal_tls(self) -> str:
        """Secret of the operator's certificates of HAProxy and the workers."""
        return f"{self.gateway}-internal-tls"

    @property
    def internal_service(self) -> str:
        """Service for clients inside the cluster, if a load balancer writes PROXY headers."""
        return f"{self.gateway}-inside"

    @property
    def shred_keys(self) -> str:
        """Secret of tenants' shred keys that the operator creates."""
        return f"{self.gateway}-shred-keys"

    @property
    def claim(self) -> str:
        """Claim of the volume that all workers share."""
        return f"{self.gateway}-wal"

    @property
    def auditor(self) -> str:
        """All objects of the auditor: its StatefulSet, its Service, its claim, and the ConfigMap of its held
        checkpoint."""
        return f"{self.gateway}-auditor"

    @property
    def export_key(self) -> str:
        """Secret of the generated key that signs exports."""
        return f"{self.gateway}-export-key"

    @property
    def retention(self) -> str:
        """All objects of the retention job: its CronJob, its claim, and the ConfigMap about its state."""
        return f"{self.gateway}-retention"

    def worker_claim(self, ordinal: int) -> str:
        """Claim of one worker's own volume, with the name that its StatefulSet expects."""
        return f"{LEDGER_VOLUME}-{self.worker}-{ordinal}"


def names(gateway: Gateway) -> Names:
    """Return the names of a gateway's objects."""
    return Names(gateway.name)


def worker_account(gateway: Gateway) -> str:
    """Return the ServiceAccount of the workers: the operator's, or one that the spec names."""
    account = gateway.spec.worker.service_account
    return (account.name if account else None) or names(gateway).worker


def selector_labels(gateway: Gateway, component: str) -> dict[str, str]:
    """Return the labels that select the pods of one component; they never change."""
    return {
        "app.kubernetes.io/name": "proofgate",
        "app.kubernetes.io/component": component,
        GATEWAY_LABEL: gateway.name,
    }


def labels(gateway: Gateway, component: str, *, owned: bool = True) -> dict[str, str]:
    """Return the labels of an object of one component. An object that is not `owned` gets no instance label,
    because a GitOps tool that tracks by that label would prune it."""
    instance = {INSTANCE_LABEL: gateway.name} if owned else {}
    return {**selector_labels(gateway, component), **instance, MANAGED_BY_LABEL: OPERATOR}


def owner_reference(gateway: Gateway) -> Manifest:
    """Return the owner reference by which the garbage collector deletes an object with its gateway."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": gateway.name,
        "uid": gateway.uid,
        "controller": True,
    }


def child_manifest(
    gateway: Gateway, api_version: str, kind: str, name: str, component: str, *, owned: bool = True
) -> Manifest:
    """Return the metadata of a manifest. If it is not `owned`, it outlives the gateway, and annotations ask
    other tools to keep it too."""
    metadata: Manifest = {
        "name": name,
        "namespace": gateway.namespace,
        "labels": labels(gateway, component, owned=owned),
    }
    if owned:
        metadata["ownerReferences"] = [owner_reference(gateway)]
    else:
        metadata["annotations"] = dict(KEEP_ANNOTATIONS)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
