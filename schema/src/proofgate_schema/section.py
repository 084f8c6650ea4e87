"""The base class of all sections of the configuration."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from proofgate_schema.descriptions import field_descriptions


class Section(BaseModel):
    """A part of the configuration: frozen, strict, camelCase, without unknown fields.

    The operator reads manifests with `strict=False, extra="ignore"`: the API server has validated them, and
    an older operator reads manifests of a newer CRD.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        # Pydantic's own messages would quote the input, which may be a secret in the wrong field.
        hide_input_in_errors=True,
    )

    def to_document(self) -> dict[str, Any]:
        """Return the section in the form of a file or a manifest, without unset fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        found = handler(schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        texts = field_descriptions(cls)
        for name, field in cls.model_fields.items():
            node = properties.get(field.alias or name)
            if node is None:
                continue
            if name in texts:
                node["description"] = " ".join(texts[name].split())
            for one in (node, *node.get("anyOf", ())):
                _use_item_bounds(one)
        return found


def _use_item_bounds(node: JsonSchemaValue) -> None:
    """Rename the bound of a list to JSON schema's keyword: after a validator, pydantic uses the keyword for
    texts."""
    if node.get("type") == "array" and "maxLength" in node:
        node["maxItems"] = node.pop("maxLength")
