"""Extracts the part of OCSF that tests need from a clone of github.com/ocsf/ocsf-schema (Apache-2.0).

    python gateway/tests/ocsf/extract.py CLONE COMMIT > gateway/tests/ocsf/api_activity.json

The result has facts only, for the class API Activity with three profiles and for all objects that it uses:
names, types and requirements of attributes, values of enumerations, and constraints. It omits deprecated
attributes and descriptions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_PROFILES = ("ai_operation", "record_integrity", "trace")
_CLASS = "events/application/api_activity.json"
_PARENTS = ("events/base_event.json", "events/application/application.json")


class Schema:
    """The files of one commit."""

    def __init__(self, clone: str, commit: str) -> None:
        self._clone, self._commit = clone, commit
        self._dictionary = self.read("dictionary.json")
        self.types: dict[str, Any] = self._dictionary["types"]["attributes"]

    def read(self, path: str) -> dict[str, Any]:
        """Reads a file of the schema."""
        command = ["git", "-C", self._clone, "show", f"{self._commit}:{path}"]
        found: dict[str, Any] = json.loads(subprocess.check_output(command))
        return found

    def is_deprecated(self, name: str) -> bool:
        """Whether an attribute is deprecated everywhere."""
        return "@deprecated" in self._dictionary["attributes"].get(name, {})

    def fact(self, name: str, stated: dict[str, Any]) -> dict[str, Any]:
        """An attribute: the dictionary's definition, overridden by the class's or object's."""
        usual = self._dictionary["attributes"].get(name, {})
        whole = {**usual, **stated, "enum": {**usual.get("enum", {}), **stated.get("enum", {})}}
        fact: dict[str, Any] = {"type": whole["type"]}
        if whole.get("is_array"):
            fact["array"] = True
        if whole.get("requirement") == "required":
            fact["required"] = True
        if whole.get("enum"):
            fact["enum"] = sorted(whole["enum"], key=lambda value: (len(value), value))
        return fact


def attributes(schema: Schema, definitions: list[dict[str, Any]]) -> dict[str, Any]:
    """The attributes of these definitions; a later definition extends an earlier one."""
    stated: dict[str, dict[str, Any]] = {}
    for definition in definitions:
        for name, more in definition.get("attributes", {}).items():
            if name == "$include":
                continue
            before = stated.get(name, {})
            both = {**before.get("enum", {}), **more.get("enum", {})}
            stated[name] = {**before, **more, **({"enum": both} if both else {})}
    return {
        name: schema.fact(name, more)
        for name, more in sorted(stated.items())
        if "@deprecated" not in more and not schema.is_deprecated(name)
    }


def constraints(definitions: list[dict[str, Any]]) -> dict[str, Any]:
    """The constraints of the last definition that has any."""
    stated = [definition["constraints"] for definition in definitions if "constraints" in definition]
    return stated[-1] if stated else {}


def main(clone: str, commit: str) -> None:
    """Prints the extract."""
    schema = Schema(clone, commit)
    profiles = [schema.read(f"profiles/{name}.json") for name in _PROFILES]
    definitions = [*map(schema.read, _PARENTS), *profiles, schema.read(_CLASS)]
    found = attributes(schema, definitions)
    category = schema.read("categories.json")["attributes"]["application"]["uid"]
    class_uid = category * 1000 + definitions[-1]["uid"]
    found["category_uid"]["enum"], found["class_uid"]["enum"] = [str(category)], [str(class_uid)]
    objects: dict[str, Any] = {}
    waiting = [fact["type"] for fact in found.values()]
    while waiting:
        name = waiting.pop()
        if name in objects or name in schema.types or name == "object":
            continue
        chain: list[dict[str, Any]] = []
        above: str | None = name
        while above is not None and above != "object":
            chain.insert(0, schema.read(f"objects/{above}.json"))
            above = chain[0].get("extends")
        objects[name] = {"attributes": attributes(schema, chain), "constraints": constraints(chain)}
        waiting += [fact["type"] for fact in objects[name]["attributes"].values()]
    kinds = {"type", "range", "max_len", "regex", "values"}
    types = {
        name: {key: value for key, value in stated.items() if key in kinds}
        for name, stated in sorted(schema.types.items())
    }
    source = {
        "repository": "github.com/ocsf/ocsf-schema",
        "commit": commit,
        "version": schema.read("version.json")["version"],
        "licence": "Apache-2.0",
        "copyright": "OCSF a Series of LF Projects, LLC",
        "extracted_by": "gateway/tests/ocsf/extract.py",
    }
    parts = {
        "source": source,
        "profiles": list(_PROFILES),
        "types": types,
        "class": {"attributes": found, "constraints": constraints(definitions)},
        "objects": dict(sorted(objects.items())),
    }
    print("{" + ",\n".join(f"{_text(name)}:{_lines(part)}" for name, part in parts.items()) + "}")


def _lines(part: Any) -> str:
    """Formats a part of the result with one entry per line."""
    if isinstance(part, list):
        return _text(part)
    return "{\n" + ",\n".join(f"{_text(name)}:{_text(value)}" for name, value in part.items()) + "}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:])
