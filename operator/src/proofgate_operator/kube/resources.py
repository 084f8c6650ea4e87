"""API paths of the kinds that the operator uses."""

from collections.abc import Mapping
from dataclasses import dataclass

from proofgate_operator.api import API_VERSION, KIND, PLURAL
from proofgate_operator.api.tenant import TENANT_KIND, TENANT_PLURAL


@dataclass(frozen=True)
class Resource:
    """The location of a kind in the API."""

    api_version: str
    plural: str

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Return the URL path; without a namespace, the path of all namespaces."""
        prefix = "/apis" if "/" in self.api_version else "/api"
        parts = [prefix, self.api_version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/".join(filter(None, [*parts, name, subresource]))


RESOURCES: Mapping[str, Resource] = {
    KIND: Resource(API_VERSION, PLURAL),
    TENANT_KIND: Resource(API_VERSION, TENANT_PLURAL),
    "ConfigMap": Resource("v1", "configmaps"),
    "CronJob": Resource("batch/v1", "cronjobs"),
    "Deployment": Resource("apps/v1", "deployments"),
    "Event": Resource("v1", "events"),
    "Lease": Resource("coordination.k8s.io/v1", "leases"),
    "NetworkPolicy": Resource("networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": Resource("v1", "persistentvolumeclaims"),
    "Pod": Resource("v1", "pods"),
    "PodMonitor": Resource("monitoring.coreos.com/v1", "podmonitors"),
    "PodDisruptionBudget": Resource("policy/v1", "poddisruptionbudgets"),
    "Secret": Resource("v1", "secrets"),
    "Service": Resource("v1", "services"),
    "ServiceAccount": Resource("v1", "serviceaccounts"),
    "StatefulSet": Resource("apps/v1", "statefulsets"),
}


def resource_name(kind: str) -> str:
    """Return kubectl's name for the objects of a kind: `secrets`, `gatewaytenants.proofgate.dev`."""
    if kind == "Namespace":
        return "namespaces"
    resource = RESOURCES[kind]
    group = resource.api_version.rpartition("/")[0]
    return f"{resource.plural}.{group}" if group else resource.plural
