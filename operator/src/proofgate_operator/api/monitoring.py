"""The section `monitoring`: metrics of a gateway."""

from enum import StrEnum
from typing import Annotated

from proofgate_schema.metrics import Metrics
from pydantic import Field

from proofgate_operator.api.fields import LIST_TYPE_SET, ResourceName


class PodMonitors(StrEnum):
    """Whether the operator creates PodMonitors."""

    AUTO = "Auto"
    NEVER = "Never"


class Monitoring(Metrics):
    """Metrics and how Prometheus scrapes them."""

    pod_monitors: PodMonitors = PodMonitors.AUTO
    """Auto: the operator creates a PodMonitor for the workers and another for HAProxy, if the cluster has the
    PodMonitor API (prometheus-operator). Never: the operator creates none."""
    interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """Seconds between two scrapes."""
    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=16)] = Field(
        default_factory=dict
    )
    """Labels of the PodMonitors. Prometheus selects the PodMonitors by these labels."""
    from_namespaces: Annotated[
        tuple[ResourceName, ...], Field(max_length=8, json_schema_extra=LIST_TYPE_SET)
    ] = Field(default_factory=tuple)
    """Namespaces whose pods may read metrics. Pods in the gateway's own namespace with the label
    proofgate.dev/monitoring: "true" may always read them."""
