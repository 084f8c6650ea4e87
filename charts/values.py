"""The chart's values: their types, bounds, defaults and descriptions.

`charts/generate_values.py` writes values.yaml, values.schema.json and the table in the README from them. A value that
sets an option of the operator has that option's choices, bound and default (`proofgate_operator.settings`).
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from proofgate_operator.api.fields import ResourceName
from proofgate_operator.settings import OPTIONS, LogFormat, LogLevel, PodSecurity
from proofgate_schema.fields import WHOLE_NUMBER, TupleOf
from proofgate_schema.section import Section
from pydantic import ConfigDict, Field

#: An image with a tag, a digest, both or neither. A placeholder such as REGISTRY/worker does not match.
_IMAGE = r"^([a-z0-9][a-z0-9._/:-]*[a-z0-9](:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?)?$"
_ONE_OF_EACH = Field(json_schema_extra={"uniqueItems": True})

Text = Annotated[str, Field(min_length=1)]
ImageOrEmpty = Annotated[str, Field(pattern=_IMAGE)]
Image = Annotated[ImageOrEmpty, Field(min_length=1)]
Namespaces = Annotated[TupleOf[ResourceName], _ONE_OF_EACH]
Texts = dict[str, str]
#: An object for a manifest. Only the API server validates it.
Object = dict[str, Any]
Objects = TupleOf[Object]


def from_option(variable: str) -> Any:
    """A field that sets an option of the operator, with its default, its lower bound and its description.

    A text below the field replaces the description.
    """
    option = OPTIONS[variable]
    default = option.default if option.minimum is None else json.loads(option.default or "0")
    return Field(default, ge=option.minimum, description=f"{option.text[0].upper()}{option.text[1:]}.")


class Operator(Section):
    """The operator's container."""

    image: ImageOrEmpty = ""
    """Image of the operator. Required. Without a tag, the tag is the chart's `appVersion`."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the kubelet pulls the image."""


class PullSecret(Section):
    """A Secret for pulling images."""

    name: Text
    """Name of the Secret."""


class CRDs(Section):
    """The CRDs that the chart installs."""

    enabled: bool = True
    """Install and upgrade the CRDs with this chart."""
    keep: bool = True
    """Keep the CRDs and every gateway when the release is uninstalled."""
    aggregate_roles: bool = True
    """Add permissions for gateways to the cluster's roles `view`, `edit` and `admin`."""


class ServiceMonitor(Section):
    """The ServiceMonitor for the operator."""

    enabled: bool = False
    """Create a ServiceMonitor for the operator (prometheus-operator)."""
    interval: Annotated[str, Field(pattern="^[0-9]+(ms|s|m)$")] = "30s"
    """Time between two scrapes."""
    labels: Texts = Field(default={})
    """Labels by which your Prometheus selects this object."""


class PrometheusRule(Section):
    """The PrometheusRule with the alerts."""

    enabled: bool = False
    """Create a PrometheusRule with the alerts for the operator and for gateways."""
    labels: Texts = Field(default={})
    """Labels by which your Prometheus selects this object."""
    runbook_base_url: Annotated[str, Field(alias="runbookBaseURL", pattern="^https?://.*[^/]$")] = (
        "https://github.com/proofgate/proofgate/blob/main/docs/runbooks"
    )
    """URL of the folder in which the runbooks are published; `/<alert>.md` is appended."""


class Dashboards(Section):
    """The Grafana dashboards."""

    enabled: bool = False
    """Create ConfigMaps with the Grafana dashboards."""
    labels: Texts = Field(default={"grafana_dashboard": "1"})
    """Labels by which Grafana's sidecar finds the ConfigMaps."""
    annotations: Texts = Field(default={})
    """Annotations of the ConfigMaps, such as the sidecar's folder."""


class Metrics(Section):
    """Objects for prometheus-operator and Grafana."""

    service_monitor: ServiceMonitor = ServiceMonitor()
    prometheus_rule: PrometheusRule = PrometheusRule()
    dashboards: Dashboards = Dashboards()


class NetworkPolicy(Section):
    """The operator's NetworkPolicy."""

    enabled: bool = True
    """Allow only monitoring to connect to the operator's port (8081). The kubelet's probes come from the node and are
    not affected."""
    peers: Annotated[Objects, Field(alias="from")] = ()
    """Additional peers to allow, as in a NetworkPolicy's `from`. Pods of the release's namespace with the label
    `proofgate.dev/monitoring: "true"` are always allowed."""


class PodDisruptionBudget(Section):
    """The operator's PodDisruptionBudget."""

    enabled: bool = True
    """Create a PodDisruptionBudget, so that a node drain does not evict all replicas together. This needs more than one
    replica."""


class ServiceAccount(Section):
    """The operator's ServiceAccount."""

    name: str = ""
    """Name of the operator's ServiceAccount. Empty: the account is named after the release."""
    annotations: Texts = Field(default={})
    """Annotations of the ServiceAccount."""


class EnvironmentVariable(Section):
    """An environment variable, as in a container's `env`."""

    name: Text
    """Name of the variable."""
    value: str | None = None
    """Value of the variable."""
    value_from: Object | None = None
    """Where the value comes from, as in a container's `env`."""


def _between_values(schema: dict[str, Any]) -> None:
    """Adds rules between values: cluster-wide excludes lists of namespaces, and `global` is reserved for Helm."""
    none = {"maxItems": 0}
    schema["allOf"] = [
        {
            "if": {"required": ["clusterWide"], "properties": {"clusterWide": {"const": True}}},
            "then": {"properties": {"watchNamespaces": none, "tenantNamespaces": none}},
        }
    ]
    schema["properties"]["global"] = {
        "type": "object",
        "description": "Values of the parent chart. Not used.",
    }


class Values(Section):
    """Values of the chart proofgate-operator."""

    model_config = ConfigDict(json_schema_extra=_between_values)

    operator: Operator = Operator()
    replicas: Annotated[int, Field(ge=1, le=5)] = 2
    """Replicas of the operator. One replica is the leader and holds a Lease in the release's namespace. Another replica
    takes over when the leader stops."""
    worker_image: ImageOrEmpty = ""
    """Image of the workers (if the GovernanceGateway names no image), of the HAProxy sidecar, and of the retention job.
    Required. Without a tag, the tag is the chart's `appVersion`."""
    haproxy_image: Image = "docker.io/library/haproxy:3.2"
    """Image of HAProxy (2.6 or later), if the GovernanceGateway names no image."""
    image_pull_secrets: TupleOf[PullSecret] = ()
    """Secrets for pulling images: `[{name: registry}]`. Create a Secret of this name in the release's namespace for the
    operator, and in the namespace of each gateway for its pods."""
    pod_security: PodSecurity = from_option("POD_SECURITY")
    """Restricted: every pod, including those of gateways, runs as user and group 65532. Platform: the platform chooses
    user and group, as OpenShift's security context constraints require."""
    watch_namespaces: Namespaces = ()
    """Namespaces in which the operator serves gateways and GatewayTenants. The operator gets a Role in each of them and
    no permission in other namespaces. Empty: the release's namespace."""
    tenant_namespaces: Namespaces = ()
    """Additional namespaces in which the operator serves GatewayTenants but no gateways. In each of them, the operator
    may read GatewayTenants and Secrets, and write the status of GatewayTenants."""
    list_namespaces: bool = False
    """Allow gateways to select namespaces by their labels (`from: Selector`, `allowedNamespaces.selector`). This needs
    a ClusterRole, which can only list namespaces."""
    cluster_wide: bool = False
    """Serve every namespace, with a ClusterRole, instead of the namespaces in the lists above. The operator can then
    read every Secret and run pods in every namespace, so its account is as powerful as a cluster administrator. Prefer
    the lists."""
    crds: CRDs = CRDs()
    cluster_domain: Text = from_option("CLUSTER_DOMAIN")
    resync_seconds: Annotated[float, WHOLE_NUMBER] = from_option("RESYNC_SECONDS")
    log_level: LogLevel = from_option("LOG_LEVEL")
    log_format: LogFormat = from_option("LOG_FORMAT")
    metrics: Metrics = Metrics()
    network_policy: NetworkPolicy = NetworkPolicy()
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    service_account: ServiceAccount = ServiceAccount()
    resources: Object = Field(default={"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}})
    """Resources of the operator, which typically uses 90 MiB (docs/how-to/size-the-operator.md)."""
    extra_env: TupleOf[EnvironmentVariable] = ()
    """Additional environment variables of the operator."""
    extra_volumes: Objects = ()
    """Additional volumes of the operator's pods."""
    extra_volume_mounts: Objects = ()
    """Additional volume mounts of the operator's container."""
    pod_annotations: Texts = Field(default={})
    """Additional annotations of the operator's pods."""
    pod_labels: Texts = Field(default={})
    """Additional labels of the operator's pods."""
    node_selector: Texts = Field(default={})
    """Node selector of the operator's pods."""
    tolerations: Objects = ()
    """Tolerations of the operator's pods."""
    affinity: Object = Field(default={})
    """Affinity of the operator's pods."""
    topology_spread_constraints: Objects = ()
    """Topology spread constraints of the operator's pods. Empty: the pods are spread over nodes if possible."""
    priority_class_name: str = ""
    """Priority class of the operator's pods."""
    termination_grace_period_seconds: Annotated[int, Field(ge=1)] = 30
    """Seconds from SIGTERM to SIGKILL for the operator's pods."""
