"""Field types that sections share: their format, and the messages about invalid values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from proofgate_schema.annotations import KubernetesOverride

_NAME_RULE = "at most 63 letters, digits, '.', '_' and '-', and begins with a letter or digit"


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text):
        raise ValueError(f"a name has {_NAME_RULE}")
    return text


def _tenant_name(text: str) -> str:
    namespace, slash, name = text.partition("/")
    _name(namespace)
    if slash:
        # A GatewayTenant: its namespace has the length limit of a name, the object's name may be longer.
        for part in name.split("."):
            _name(part)
    return text


def _model_name(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,128}", text):
        raise ValueError("a model name has 1 to 128 printable ASCII characters and no space")
    if "*" in text[:-1]:
        raise ValueError("the wildcard '*' stands for the rest of a name: write it last")
    return text


def _file_path(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("write the path of a file")
    return text


T = TypeVar("T")
#: The validation context with which the operator reads manifests.
MANIFEST_CONTEXT = "manifest"


def file_validator(check: Callable[[T], T]) -> AfterValidator:
    """Return a validator that checks values of the gateway's file, and accepts all values of a manifest.

    It is for checks that a pattern of a CRD cannot express: the operator reads such a manifest, and reports
    the field.
    """

    def checked(value: T, info: ValidationInfo) -> T:
        return value if info.context == MANIFEST_CONTEXT else check(value)

    return AfterValidator(checked)


def _as_tuple(value: object) -> object:
    # YAML has lists, but frozen models need tuples, and strict mode does not convert lists.
    return tuple(value) if isinstance(value, list) else value


def _not_empty(entries: tuple[T, ...]) -> tuple[T, ...]:
    # Not min_length: pydantic counts only valid entries, so a list with one invalid entry would also be
    # reported as empty.
    if not entries:
        raise ValueError("list at least one")
    return entries


def unique_by(field: str) -> KubernetesOverride:
    """Return the annotation by which the API server refuses a second item with the same value of `field`."""
    return KubernetesOverride(
        f"two items may not have the same {field}",
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]},
    )


def _as_integer(number: float) -> float:
    """Return a whole number as an integer: 5, not 5.0."""
    return int(number) if number == int(number) else number


TupleOf = Annotated[tuple[T, ...], BeforeValidator(_as_tuple)]
NonEmptyTupleOf = Annotated[tuple[T, ...], BeforeValidator(_as_tuple), AfterValidator(_not_empty)]
Name = Annotated[str, AfterValidator(_name)]
#: For a name that is a DNS label in Kubernetes.
DNS_LABEL = KubernetesOverride(
    "Kubernetes object names are DNS labels",
    {"minLength": 1, "maxLength": 63, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
)
#: For the name of a header field whose value may be in a file of that name.
HEADER_NAME = KubernetesOverride(
    "in the workers, the name is also a file name",
    {"minLength": 1, "maxLength": 64, "pattern": r"^[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?$"},
)
FilePath = Annotated[str, AfterValidator(_file_path)]
#: A file that the user mounts into the workers.
MountedFile = Annotated[
    FilePath,
    KubernetesOverride(
        "in the workers, the path must be absolute", {"maxLength": 256, "pattern": r"^/[!-~]*$"}
    ),
]
#: The name of a tenant, or `namespace/name` of a GatewayTenant.
TenantName = Annotated[
    str,
    file_validator(_tenant_name),
    KubernetesOverride(
        "names of Kubernetes objects are DNS labels or subdomains",
        {
            "minLength": 1,
            "maxLength": 317,
            "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        },
    ),
]
MODEL_NAME_CRD_LIMITS = KubernetesOverride(
    "the API server limits the cost of CEL rules, which grows with the length of names",
    {"minLength": 1, "maxLength": 96, "pattern": r"^[-a-zA-Z0-9._:/@]+[*]?$"},
)
ModelName = Annotated[str, AfterValidator(_model_name), MODEL_NAME_CRD_LIMITS]
#: Serializes 5.0 as 5.
WHOLE_NUMBER = PlainSerializer(_as_integer, return_type=int | float, when_used="json")
_WHOLE_SECONDS = {"type": "integer"}
#: 0.001 to 86400 seconds.
Seconds = Annotated[
    float,
    Field(ge=0.001, le=86_400, allow_inf_nan=False),
    WHOLE_NUMBER,
    KubernetesOverride("whole seconds", {**_WHOLE_SECONDS, "minimum": 1}),
]
#: 0 to 3600 seconds.
SecondsOrNone = Annotated[
    float,
    Field(ge=0, le=3600, allow_inf_nan=False),
    WHOLE_NUMBER,
    KubernetesOverride("whole seconds", _WHOLE_SECONDS),
]
