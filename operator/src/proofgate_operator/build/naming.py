"""Names, labels and ownership of everything that belongs to a gateway."""

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
#: In the template of pods: digest of what they read only at their start. A change of it rolls them.
START_ANNOTATION = "proofgate.dev/start-digest"
#: On a pod itself: digest of what it takes on while it runs. The kubelet looks at a pod that changed and
#: renews its mounted files; left alone, it does so about once a minute.
CONFIG_ANNOTATION = "proofgate.dev/config-digest"
#: On HAProxy's pods: digest of the addresses of workers that it is to have.
ADDRESSES_ANNOTATION = "proofgate.dev/addresses"
#: Beside it on HAProxy's pods: when the digest of its configuration was written.
RENEWED_ANNOTATION = "proofgate.dev/renewed"
#: A condition of workers' pods, without which they are not Ready: every HAProxy sends the worker connections.
LOAD_BALANCED_CONDITION = "proofgate.dev/load-balanced"
#: In the template of the auditor's pod: the trust policy of its witnesses, which it reads from there. So it
#: is of one piece with the template: another one rolls the pod, and one that goes on keeps its own.
WITNESS_POLICY_ANNOTATION = "proofgate.dev/witness-policy"
#: The auditor's pod reads it as a file: how readers sign in, without a secret.
OIDC_ANNOTATION = "proofgate.dev/oidc"
#: In the template of the retention job's pods: the plan that they carry out, which they read from there.
KEEPING_PLAN_ANNOTATION = "proofgate.dev/keeping-plan"
#: Digest of a manifest as the operator wrote it.
APPLIED_ANNOTATION = "proofgate.dev/applied"

#: On what must outlive its gateway: what Argo CD, Helm and Flux ask for before they prune or delete.
#: Sources: argo-cd.readthedocs.io (sync options "Prune" and "Delete"), helm.sh ("tell Helm not to uninstall a
#: resource"), fluxcd.io (Kustomization, "Garbage collection").
KEEP_ANNOTATIONS = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "helm.sh/resource-policy": "keep",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
#: By this label, tools tell whose an object is. Argo CD takes one with it and without an owner for its own.
INSTANCE_LABEL = "app.kubernetes.io/instance"

#: Name of the workers' volume for the ledger, and of the claim template for volumes of their own.
LEDGER_VOLUME = "ledger"

#: The unprivileged user of every container (the "nonroot" of distroless images).
USER_ID = 65532


@dataclass(frozen=True)
class Defaults:
    """What the operator's installation decides for all gateways.

    `cluster_domain` is the DNS suffix of Services: HAProxy's resolver knows no search list.
    `operator_namespace` is where the operator's pods are; empty when it runs outside of the cluster. `ipv6`
    says that pods have addresses of IPv6, alone or beside those of IPv4. `platform_ids` leaves it to the
    platform which user and group pods run as, as OpenShift wants it. `image_pull_secrets` are for every pod
    of a gateway.
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
        """Deployment of HAProxy and everything else of it but its Service."""
        return f"{self.gateway}-haproxy"

    @property
    def addresses(self) -> str:
        """ConfigMap of the addresses of workers, for HAProxy."""
        return f"{self.gateway}-addresses"

    @property
    def service(self) -> str:
        """Service that clients use."""
        return self.gateway

    @property
    def config(self) -> str:
        """ConfigMap of the workers."""
        return f"{self.gateway}-config"

    @property
    def checkpoints(self) -> str:
        """ConfigMap of the checkpoints that are held of the workers' logs."""
        return f"{self.gateway}-checkpoints"

    @property
    def tenants(self) -> str:
        """Secret of key hashes."""
        return f"{self.gateway}-tenants"

    def tenant_shard(self, shard: int) -> str:
        """Secret of the tenants, and keys of tenants, in one of the shards."""
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
        """Secret of the certificates of HAProxy and the workers that the operator makes."""
        return f"{self.gateway}-internal-tls"

    @property
    def internal_service(self) -> str:
        """Service of clients inside the cluster, beside a load balancer that writes PROXY headers."""
        return f"{self.gateway}-inside"

    @property
    def shred_keys(self) -> str:
        """Secret of tenants' shred keys that the operator makes."""
        return f"{self.gateway}-shred-keys"

    @property
    def claim(self) -> str:
        """Claim of the volume that all workers share."""
        return f"{self.gateway}-wal"

    @property
    def auditor(self) -> str:
        """Everything of the auditor: what it runs as, its Service, its claim, and what is held of it."""
        return f"{self.gateway}-auditor"

    @property
    def export_key(self) -> str:
        """Secret of the generated key that signs exports."""
        return f"{self.gateway}-export-key"

    @property
    def retention(self) -> str:
        """Everything of the retention job: what runs it, its claim, and what is known of its state."""
        return f"{self.gateway}-retention"

    def worker_claim(self, ordinal: int) -> str:
        """Claim of one worker's own volume, by the name that its StatefulSet looks for."""
        return f"{LEDGER_VOLUME}-{self.worker}-{ordinal}"


def names(gateway: Gateway) -> Names:
    """Return the names of a gateway's objects."""
    return Names(gateway.name)


def worker_account(gateway: Gateway) -> str:
    """Return the ServiceAccount that workers run as: the gateway's own, or one that the spec names."""
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
    """Return the labels of an object of one component. One that is not `owned` bears no instance: a GitOps
    tool that tracks by that label would prune it."""
    instance = {INSTANCE_LABEL: gateway.name} if owned else {}
    return {**selector_labels(gateway, component), **instance, MANAGED_BY_LABEL: OPERATOR}


def owner_reference(gateway: Gateway) -> Manifest:
    """Return the reference that makes the garbage collector remove an object with its gateway."""
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
    """Return the head of a manifest; `owned` says whether it goes with the gateway. What does not asks other
    tools to leave it as well."""
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
