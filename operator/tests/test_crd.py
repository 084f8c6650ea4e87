"""The CRD: generated, current, identical in the chart, and valid for the examples."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from proofgate_operator.api.crd import crd, render_crd, spec_schema
from proofgate_operator.api.fields import LENIENT
from proofgate_operator.api.gateway import GatewaySpec
from proofgate_operator.api.tenant import GatewayTenantSpec
from proofgate_operator.api.tenant_crd import tenant_crd
from tests.gateways import manifest

ROOT = Path(__file__).parents[2]
CRD_FILE = ROOT / "crds" / "proofgate.dev_governancegateways.yaml"
TENANT_CRD_FILE = ROOT / "crds" / "proofgate.dev_gatewaytenants.yaml"
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


def test_the_checked_in_crd_is_what_the_types_generate() -> None:
    assert CRD_FILE.read_text() == render_crd(crd(), "crd")
    assert TENANT_CRD_FILE.read_text() == render_crd(tenant_crd(), "tenant_crd")


def test_the_chart_carries_the_same_crd() -> None:
    for path in (CRD_FILE, TENANT_CRD_FILE):
        copy = ROOT / "charts" / "proofgate-operator" / "files" / path.name
        assert copy.read_text() == path.read_text()


def _nodes(schema: dict[str, Any], path: str = "") -> Any:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from _nodes(schema[inner], f"{path}[]")


def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def test_the_schema_says_nothing_that_an_api_server_refuses() -> None:
    """The rules are from Kubernetes, "Extend the API with CustomResourceDefinitions", structural schemas."""
    forbidden = {
        "$ref",
        "definitions",
        "deprecated",
        "discriminator",
        "id",
        "patternProperties",
        "propertyNames",
        "xml",
    }

    def names(schema: dict[str, Any], path: str = "") -> Any:
        yield from (f"{path}: {name}" for name in forbidden & set(schema))
        for name, child in schema.get("properties", {}).items():
            yield from names(child, f"{path}.{name}")
        for inner in ("items", "additionalProperties"):
            if isinstance(schema.get(inner), dict):
                yield from names(schema[inner], f"{path}[]")

    assert list(names(_schema())) == []


def test_every_list_and_string_of_the_spec_is_bounded() -> None:
    """Without bounds, the API server cannot estimate the cost of a CEL rule and refuses the CRD."""
    unbounded = [
        path
        for path, node in _nodes(spec_schema())
        if (node.get("type") == "array" and "maxItems" not in node)
        or ("additionalProperties" in node and "maxProperties" not in node)
        or (node.get("type") == "string" and "maxLength" not in node and "enum" not in node)
    ]
    assert unbounded == []


def test_every_field_of_the_spec_is_described() -> None:
    leaves = [path for path, node in _nodes(spec_schema(), "spec") if "description" not in node]
    assert [path for path in leaves if not path.endswith("[]")] == []


def test_no_node_has_a_keyword_that_a_structural_schema_forbids() -> None:
    for path, node in _nodes(_schema()):
        assert not {"$ref", "$defs", "title", "const"} & node.keys(), path
        assert not {"properties", "additionalProperties"} <= node.keys(), path


def test_a_spec_without_options_reads_as_its_defaults() -> None:
    spec = manifest()["spec"]
    minimal = {key: spec[key] for key in ("providers", "models", "tenants")}
    read = GatewaySpec.model_validate(minimal, **LENIENT)
    assert (read.replicas, read.worker.cpu, read.worker.memory) == (2, "1", "640Mi")
    assert read.ledger.volume.retain_policy == "Retain"
    assert read.load_balancer.replicas == 2
    assert not read.paused


def test_cores_may_be_written_as_a_number() -> None:
    spec = manifest(worker={"cpu": 2})["spec"]
    assert GatewaySpec.model_validate(spec, **LENIENT).worker.cpu == "2"


def _strict(node: dict[str, Any]) -> dict[str, Any]:
    """Refuse unknown fields, as kubectl's strict validation does."""
    strict = {key: value for key, value in node.items() if not key.startswith("x-")}
    if "properties" in node:
        strict["properties"] = {name: _strict(child) for name, child in node["properties"].items()}
        strict["additionalProperties"] = False
    if "items" in node:
        strict["items"] = _strict(node["items"])
    return strict


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_gateways_in_the_examples_fit_the_schema(path: Path) -> None:
    schema = _strict({**_schema(), "properties": {**_schema()["properties"]}})
    schema["properties"]["metadata"] = {"type": "object"}
    for document in yaml.safe_load_all(path.read_text()):
        assert document["metadata"].get("namespace") is None, "an example can be applied to any namespace"
        if document["kind"] == "GovernanceGateway":
            jsonschema.validate(document, schema)
            GatewaySpec.model_validate(document["spec"], **LENIENT)
        if document["kind"] == "GatewayTenant":
            of_tenants = tenant_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][
                "spec"
            ]
            jsonschema.validate(document["spec"], _strict(of_tenants))
            GatewayTenantSpec.model_validate(document["spec"])


def _named(node: Any) -> Iterator[tuple[str, str | None]]:
    """Yield every Secret that a manifest refers to, with the entry's key or None."""
    if isinstance(node, dict):
        for name, value in node.items():
            if re.search(r"[sS]ecret(Key)?Ref$", name):
                yield value["name"], value.get("key")
            elif name == "secretName":
                yield value, None
            else:
                yield from _named(value)
    elif isinstance(node, list):
        for item in node:
            yield from _named(item)


def _held(document: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    if document["kind"] == "Secret":
        name = document["metadata"]["name"]
        yield from ((name, key) for key in (None, *document.get("stringData", {})))


def _told(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the entries of the Secrets that the comments of an example create."""
    comments = re.sub(r"\\\n#\s*", "", text)
    for name, options in re.findall(r"(?m)^#.*kubectl create secret \w+ (\S+)(.*)$", comments):
        yield name, None
        yield from ((name, key) for key in re.findall(r"--from-(?:file|literal)=([\w.-]+)=", options))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_name_only_secrets_that_they_hold_or_tell_how_to_make(path: Path) -> None:
    # All manifests of a subfolder are applied together.
    alone = path.parent.name == "examples"
    texts = [other.read_text() for other in ([path] if alone else path.parent.glob("*.yaml"))]
    made = {entry for text in texts for document in yaml.safe_load_all(text) for entry in _held(document)}
    made |= {entry for text in texts for entry in _told(text)}
    named = {entry for document in yaml.safe_load_all(path.read_text()) for entry in _named(document)}
    assert named <= made


def test_secrets_are_found_wherever_a_manifest_names_them() -> None:
    named = set(_named(yaml.safe_load((ROOT / "examples" / "production.yaml").read_text())))
    assert {("openai", "api-key"), ("llm-ledger", "signing-key")} <= named
    assert len({name for name, _ in named}) >= 3
    assert set(_named({"env": [{"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]})) == {("a", "b")}
    assert set(_named({"tls": {"certificateSecretRef": {"name": "c"}}})) == {("c", None)}


def test_what_an_absent_section_is_filled_with_is_what_its_empty_form_would_be() -> None:
    """An API server stores defaults, so applying an empty section over the stored one must change nothing."""
    for path, schema in _nodes(_schema()):
        fields = schema.get("properties", {})
        for name, value in (schema.get("default") or {}).items() if fields else ():
            assert fields[name].get("default", value) == value, f"{path}.{name}"
