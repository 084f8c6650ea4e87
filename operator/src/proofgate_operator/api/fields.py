"""Field types of the spec, and the base class of its models."""

from typing import Annotated, Any, Literal, TypedDict

from proofgate_schema.fields import MANIFEST_CONTEXT
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
SECRET_KEY = r"^[-._a-zA-Z0-9]+$"
#: An image reference with a tag, a digest, both or neither. If it does not exist, the kubelet reports that.
_IMAGE = r"^[a-zA-Z0-9][-a-zA-Z0-9._:/]*(@[a-zA-Z0-9]+:[0-9a-fA-F]{32,128})?$"


def cel_rules(*found: dict[str, Any]) -> dict[str, Any]:
    """Return the schema extension for CEL rules."""
    return {"x-kubernetes-validations": list(found)}


def list_map_key(field: str) -> dict[str, Any]:
    """Return the schema extension by which the API server refuses a second item with the same value of
    `field`."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}


#: Schema extension by which the API server refuses duplicate values.
LIST_TYPE_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}

ResourceName = Annotated[str, Field(min_length=1, max_length=63, pattern=_DNS_LABEL)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=_DNS_SUBDOMAIN)]
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]
Labels = Annotated[dict[str, LabelValue], Field(max_length=16)]
#: A number of bytes as a quantity of the API.
Quantity = Annotated[str, Field(max_length=16, pattern=r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$")]
Image = Annotated[str, Field(min_length=1, max_length=512, pattern=_IMAGE)]
#: A number of cores: `cpu: 1` and `cpu: "1"` are both accepted.
Cores = Annotated[
    str,
    BeforeValidator(str),
    # The length limits the cost of the rule for this field.
    Field(max_length=16, json_schema_extra={"x-kubernetes-int-or-string": True}),
]
#: An IPv4 or IPv6 address range. The API server checks further details in a NetworkPolicy, `plan.addresses`
#: elsewhere.
Cidr = Annotated[str, Field(max_length=49, pattern=r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$")]


class _Lenient(TypedDict):
    strict: bool
    extra: Literal["ignore"]
    context: str


#: How manifests are read: the API server has validated them, and an older operator reads manifests of a newer
#: CRD. Sections that the gateway's file has as well (`proofgate_schema`) are always strict.
LENIENT: _Lenient = {"strict": False, "extra": "ignore", "context": MANIFEST_CONTEXT}


class Section(BaseModel):
    """A part of the spec."""

    model_config = ConfigDict(
        frozen=True,
        # An older operator reads manifests of a newer CRD; kubectl refuses unknown fields.
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    def to_document(self) -> dict[str, Any]:
        """Return the section in the form of a manifest, without unset fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class LabelSelector(Section):
    """Labels to select objects by. All of them must match; without labels, all objects match."""

    match_labels: Labels | None = None
    """Labels and their values."""


class SecretKeyRef(Section):
    """An entry of a Secret, in the namespace of the object that refers to it."""

    name: ObjectName
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=SECRET_KEY)]
    """Key of the entry in the Secret."""


class ConfigMapKeyRef(Section):
    """An entry of a ConfigMap, in the namespace of the object that refers to it."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=SECRET_KEY)]
    """Key of the entry in the ConfigMap."""


class SecretRef(Section):
    """A Secret, in the namespace of the object that refers to it."""

    name: ObjectName
    """Name of the Secret."""
