"""The section `podTemplate`: a user's additions to the pods that the operator creates."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from proofgate_operator.api.fields import ObjectName, SecretRef, Section, list_map_key

_OPEN_SCHEMA: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _object_requiring(key: str) -> dict[str, Any]:
    """Return the schema of an object of which only `key` is validated."""
    descriptions = {
        "name": "Name, as in a pod's spec.",
        "mountPath": "Path in the container, as in a pod's spec.",
    }
    text = {
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
        "description": descriptions[key],
    }
    return {**_OPEN_SCHEMA, "required": [key], "properties": {key: text}}


#: Objects of the pod's API. Their full schemas would be most of the CRD; the API server validates them in the
#: pod.
OpenObject = Annotated[dict[str, Any], WithJsonSchema(_OPEN_SCHEMA)]
NamedObject = Annotated[dict[str, Any], WithJsonSchema(_object_requiring("name"))]
MountObject = Annotated[dict[str, Any], WithJsonSchema(_object_requiring("mountPath"))]

_LabelValue = Annotated[str, Field(max_length=63)]
AnnotationValue = Annotated[str, Field(max_length=8192)]
_Labels = Annotated[dict[str, _LabelValue], Field(max_length=32)]


class Toleration(Section):
    """A taint that pods tolerate."""

    key: Annotated[str, Field(max_length=316)] | None = None
    """Key of the taint. Absent: with operator Exists, the toleration matches all taints."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """Comparison with the taint's value. Equal: the value must be equal. Exists: any value matches."""
    value: Annotated[str, Field(max_length=63)] | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Absent: all effects."""
    toleration_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Seconds for which a pod stays on the node under NoExecute. Absent: permanently."""


class PodTemplate(Section):
    """Additions to pods.

    An addition that would replace a value set by the operator makes the configuration invalid.
    """

    labels: _Labels = Field(default_factory=dict)
    """Additional labels."""
    annotations: Annotated[dict[str, AnnotationValue], Field(max_length=32)] = Field(default_factory=dict)
    """Additional annotations."""
    node_selector: _Labels = Field(default_factory=dict)
    """Labels that a node must have to run the pods."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=16)] = Field(default_factory=tuple)
    """Taints that pods tolerate."""
    affinity: OpenObject | None = None
    """Affinity, as in a pod's spec."""
    topology_spread_constraints: Annotated[tuple[OpenObject, ...], Field(max_length=8)] = Field(
        default_factory=tuple
    )
    """Topology spread constraints, as in a pod's spec. Without labelSelector, they apply to the pods of this
    gateway. Absent: pods spread over nodes and zones where possible."""
    priority_class_name: ObjectName | None = None
    """Name of the priority class."""
    image_pull_secrets: Annotated[
        tuple[SecretRef, ...], Field(max_length=8, json_schema_extra=list_map_key("name"))
    ] = Field(default_factory=tuple)
    """Secrets for pulling images."""
    env: Annotated[tuple[NamedObject, ...], Field(max_length=64, json_schema_extra=list_map_key("name"))] = (
        Field(default_factory=tuple)
    )
    """Additional environment variables of the main container, as in a pod's spec."""
    volumes: Annotated[
        tuple[NamedObject, ...], Field(max_length=16, json_schema_extra=list_map_key("name"))
    ] = Field(default_factory=tuple)
    """Additional volumes, as in a pod's spec."""
    volume_mounts: Annotated[
        tuple[MountObject, ...], Field(max_length=32, json_schema_extra=list_map_key("mountPath"))
    ] = Field(default_factory=tuple)
    """Additional volume mounts of the main container, as in a pod's spec."""
    sidecars: Annotated[
        tuple[NamedObject, ...], Field(max_length=4, json_schema_extra=list_map_key("name"))
    ] = Field(default_factory=tuple)
    """Additional containers, as in a pod's spec. In a worker's pod they need limits for CPU and memory, and
    requests that are absent or equal to the limits. Otherwise the pod is not Guaranteed, and the worker loses
    its exclusive core."""
    init_containers: Annotated[
        tuple[NamedObject, ...], Field(max_length=4, json_schema_extra=list_map_key("name"))
    ] = Field(default_factory=tuple)
    """Init containers, as in a pod's spec. With restartPolicy Always they run alongside the main container.
    In a worker's pod, they need the limits and requests that are described for `sidecars`."""
