"""Where a field differs between the gateway's file and a manifest, with the reason for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

#: Of a node of a JSON schema: what the CRD says in its place. None: the CRD does not say it.
KUBERNETES_KEYWORD = "x-proofgate-kubernetes"
#: Of a node of a JSON schema: why no manifest has the field.
WORKER_ONLY_KEYWORD = "x-proofgate-worker-only"


@dataclass(frozen=True, eq=False)  # typing hashes what annotates a union
class KubernetesOverride:
    """What a CRD says of a field beside, or in the place of, what holds for the gateway's file.

    `keywords` are those of JSON schema. The API server enforces them; the operator does not look again.
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


#: A list whose values the API server refuses to have twice.
UNIQUE_ITEMS = KubernetesOverride(
    "the API server refuses duplicates in a set", {"x-kubernetes-list-type": "set"}
)
#: What is absent of an object another one may set, so that rules ask whether it is there.
NO_DEFAULT = KubernetesOverride(
    "CEL rules check whether the field is present, so it has no default", {"default": None}
)
#: An object with whatever fields.
PRESERVE_UNKNOWN_FIELDS = KubernetesOverride(
    "a structural schema cannot describe an object with arbitrary fields",
    {"additionalProperties": None, "x-kubernetes-preserve-unknown-fields": True},
)
