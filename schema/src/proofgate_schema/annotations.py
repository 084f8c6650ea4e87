"""Annotations of fields that differ between the gateway's file and a manifest, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

#: JSON schema keyword: the keywords that the CRD has instead for a node. None: the CRD omits the keyword.
KUBERNETES_KEYWORD = "x-proofgate-kubernetes"
#: JSON schema keyword: the reason why no manifest has the field.
WORKER_ONLY_KEYWORD = "x-proofgate-worker-only"


@dataclass(frozen=True, eq=False)  # typing hashes what annotates a union
class KubernetesOverride:
    """Keywords of a field in the CRD that extend or replace those for the gateway's file.

    `keywords` are JSON schema keywords. The API server enforces them; the operator does not check them again.
    """

    reason: str
    keywords: dict[str, Any] = field(default_factory=dict)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        node = handler(schema)
        return {**node, KUBERNETES_KEYWORD: {**node.get(KUBERNETES_KEYWORD, {}), **self.keywords}}


@dataclass(frozen=True, eq=False)
class WorkerOnlyField:
    """A field of the gateway's file that no manifest has."""

    reason: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), WORKER_ONLY_KEYWORD: self.reason}


#: For a list: the API server refuses duplicate values.
UNIQUE_ITEMS = KubernetesOverride(
    "the API server refuses duplicates in a set", {"x-kubernetes-list-type": "set"}
)
#: For a field without a default in the CRD, because rules check whether it is set, or another object sets it.
NO_DEFAULT = KubernetesOverride(
    "CEL rules check whether the field is present, so it has no default", {"default": None}
)
#: For an object with arbitrary fields.
PRESERVE_UNKNOWN_FIELDS = KubernetesOverride(
    "a structural schema cannot describe an object with arbitrary fields",
    {"additionalProperties": None, "x-kubernetes-preserve-unknown-fields": True},
)
