"""Kinds of field that sections share: how each is written, and what is said of a mistake."""

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
        # Of a shard's tenants; a namespace is no longer than a name here, its object may be.
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
#: The context of validation by which the operator reads manifests.
MANIFEST_CONTEXT = "manifest"


def file_validator(check: Callable[[T], T]) -> AfterValidator:
    """Return what checks a value of the gateway's file, and lets that of a manifest be.

    For what a pattern of a CRD cannot check: the operator reads such a manifest, and reports the field.
    """

    def checked(value: T, info: ValidationInfo) -> T:
        return value if info.context == MANIFEST_CONTEXT else check(value)

    return AfterValidator(checked)


def _as_tuple(value: object) -> object:
    # YAML has lists; frozen models want tuples, which strict mode does not make of them.
    return tuple(value) if isinstance(value, list) else value


def _not_empty(entries: tuple[T, ...]) -> tuple[T, ...]:
    # Not min_length: pydantic counts valid entries only, and reports one broken entry a second time as none.
    if not entries:
        raise ValueError("list at least one")
    return entries


def unique_by(field: str) -> KubernetesOverride:
    """What makes an API server refuse a second item with the same value of `field`."""
    return KubernetesOverride(
        f"two items may not have the same {field}",
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]},
    )


def _as_integer(number: float) -> float:
    """Return a whole number as it is written: 5, not 5.0."""
    return int(number) if number == int(number) else number


TupleOf = Annotated[tuple[T, ...], BeforeValidator(_as_tuple)]
NonEmptyTupleOf = Annotated[tuple[T, ...], BeforeValidator(_as_tuple), AfterValidator(_not_empty)]
Name = Annotated[str, AfterValidator(_name)]
#: A name that Kubernetes takes as a DNS label.
DNS_LABEL = KubernetesOverride(
    "Kubernetes object names are DNS labels",
    {"minLength": 1, "maxLength": 63, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
)
#: The name of a header field whose value is in a file.
HEADER_NAME = KubernetesOverride(
    "in the workers, the name is also a file name",
    {"minLength": 1, "maxLength": 64, "pattern": r"^[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?$"},
)
FilePath = Annotated[str, AfterValidator(_file_path)]
#: A file that its owner mounts in the workers himself.
MountedFile = Annotated[
    FilePath,
    KubernetesOverride(
        "in the workers, the path must be absolute", {"maxLength": 256, "pattern": r"^/[!-~]*$"}
    ),
]
#: A name, or `namespace/name` of a tenant that stands in a shard.
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
#: Writes 5 in place of 5.0.
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
