"""One schema: the sections that gateway and operator share, and their differences in the manifest."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from proofgate.config.settings import Settings
from proofgate.index.oidc_settings import OidcFile
from proofgate_schema import egress, fields, policy, prices, urls
from proofgate_schema.annotations import (
    KUBERNETES_KEYWORD,
    WORKER_ONLY_KEYWORD,
    KubernetesOverride,
    WorkerOnlyField,
)
from proofgate_schema.section import Section
from pydantic import BaseModel, ValidationError

from proofgate_operator.api import editor_schema
from proofgate_operator.api.crd import spec_schema
from proofgate_operator.api.gateway import Gateway, GatewaySpec
from tests.controlplane.largest import everything, largest
from tests.gateways import manifest

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schema"

#: Every bound and default in which a manifest differs from the gateway's file; each new one is a decision.
BOUNDS = {
    "ActionOverride.packs": {"maxItems", "x-kubernetes-list-type"},
    "ActionOverride.rules": {"maxItems", "x-kubernetes-list-type"},
    "ActionOverride.scopes": {"maxItems", "x-kubernetes-list-type"},
    "AllowedTexts.domains": {"maxItems", "x-kubernetes-list-type"},
    "AllowedTexts.patterns": {"maxItems", "x-kubernetes-list-type"},
    "AllowedTexts.values": {"maxItems", "x-kubernetes-list-type"},
    "Analysis.models": {"maxItems", "x-kubernetes-list-type"},
    "Analysis.tenants": {"maxItems", "x-kubernetes-list-type"},
    "Cors.allowedOrigins": {"minItems", "x-kubernetes-list-type"},
    "Egress.allow": {"minItems", "maxItems", "x-kubernetes-list-type"},
    "ExportHeader.name": {"minLength", "maxLength", "pattern"},
    "ExternalPolicy.factory": {"minLength", "maxLength", "pattern"},
    "ExternalPolicy.name": {"minLength", "maxLength", "pattern"},
    "ExternalPolicy.parameters": {"default", "additionalProperties", "x-kubernetes-preserve-unknown-fields"},
    "Fallback.provider": {"minLength", "maxLength", "pattern"},
    "Fallback.upstreamModel": {"minLength", "maxLength", "pattern"},
    "GuardedTools.names": {
        "minItems",
        "minLength",
        "maxLength",
        "x-kubernetes-list-type",
        "x-kubernetes-validations",
    },
    "HostedTools.allow": {"x-kubernetes-list-type"},
    "Issuer.algorithms": {"minItems", "maxItems", "x-kubernetes-list-type"},
    "Issuer.audiences": {
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "x-kubernetes-list-type",
    },
    "Issuer.issuer": {"minLength", "maxLength", "pattern"},
    "Issuer.tenantClaim": {"minLength", "maxLength", "pattern"},
    "Limits.bodyBytes": {"default"},
    "Limits.connections": {"minimum", "maximum"},
    "Limits.headBytes": {"maximum"},
    "Model.fallbackOn": {"maxItems", "x-kubernetes-list-type"},
    "Model.provider": {"minLength", "maxLength", "pattern"},
    "Model.upstreamModel": {"minLength", "maxLength", "pattern"},
    "Oidc.clientId": {"minLength", "maxLength", "pattern"},
    "Oidc.groupsClaim": {"minLength", "maxLength", "pattern"},
    "Oidc.issuer": {"maxLength", "pattern"},
    "Oidc.nameClaim": {"minLength", "maxLength", "pattern"},
    "Oidc.redirectUri": {"maxLength", "pattern"},
    "Oidc.scope": {"minLength", "maxLength", "pattern"},
    "Payloads.maxBytes": {"maximum"},
    "Policy.actions": {"maxItems"},
    "Policy.packs": {"maxItems", "x-kubernetes-list-type"},
    "Policy.rules": {"maxItems", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"},
    "Price.above": {"maxItems"},
    "Price.provider": {"minLength", "maxLength", "pattern"},
    "Price.tiers": {"maxProperties"},
    "Price.tools": {"maxProperties"},
    "Provider.anthropicBetas": {"x-kubernetes-list-type"},
    "Provider.bodyFields": {"additionalProperties", "x-kubernetes-preserve-unknown-fields"},
    "Provider.name": {"minLength", "maxLength", "pattern"},
    "ProviderHeader.name": {"minLength", "maxLength", "pattern"},
    "ProviderHeader.value": {"minLength", "maxLength", "pattern"},
    "Rotation.seconds": {"type", "minimum"},
    "Route.provider": {"minLength", "maxLength", "pattern"},
    "Route.upstreamModel": {"minLength", "maxLength", "pattern"},
    "Rule.literals": {"default", "minItems", "maxItems"},
    "Rule.reason": {"minLength", "maxLength", "pattern"},
    "Rule.regex": {"minLength", "maxLength"},
    "Telemetry.resourceAttributes": {"x-kubernetes-list-type", "x-kubernetes-list-map-keys"},
    "TenantPolicy.actions": {"maxItems"},
    "Terms.deniedBetas": {"default", "minItems", "x-kubernetes-list-type"},
    "Terms.endpoints": {"minItems", "maxItems", "x-kubernetes-list-type"},
    "Terms.hostedTools": {"default"},
    "Terms.keyLimits": {"default"},
    "Terms.limits": {"default"},
    "Terms.modelBudgets": {
        "default",
        "minItems",
        "maxItems",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
    },
    "Terms.models": {"minItems", "maxItems", "x-kubernetes-list-type"},
    "Terms.policies": {"default", "minItems", "maxItems", "minLength", "maxLength", "pattern"},
    "Terms.waitSeconds": {"type", "default"},
    "TierPrice.above": {"maxItems"},
    "Timeouts.lameDuckSeconds": {"type", "minimum"},
}
#: Types of fields that a manifest bounds differently everywhere.
KINDS = {
    "AddressRange": {"maxLength", "pattern"},
    "AllowedText": {"minLength", "maxLength", "pattern"},
    "BaseURL": {"maxLength", "pattern"},
    "Date": {"maxLength", "pattern"},
    "Dollars": {"maxLength", "pattern"},
    "DollarsPerMillion": {"maxLength", "pattern"},
    "DollarsPerRequest": {"maxLength", "pattern"},
    "HookURL": {"minLength", "maxLength", "pattern"},
    "KeySetURL": {"maxLength", "pattern"},
    "LowerCaseText": {"minLength", "maxLength", "pattern"},
    "ModelName": {"minLength", "maxLength", "pattern"},
    "ModelPattern": {"minLength", "maxLength", "pattern"},
    "MountedFile": {"maxLength", "pattern"},
    "NonEmptyOverride": {"x-kubernetes-validations"},
    "Pack": {"enum"},
    "ProxyURL": {"maxLength", "pattern"},
    "RuleId": {"minLength", "maxLength", "pattern"},
    "NonEmptyRule": {"x-kubernetes-validations"},
    "Seconds": {"type", "minimum"},
    "SecondsOrNone": {"type"},
    "TenantName": {"minLength", "maxLength", "pattern"},
    "WebOrigin": {"minLength", "maxLength", "pattern"},
}
#: Every field of a shared section that is missing in manifests.
OF_WORKERS = {"Limits.bufferedBytes", "Payloads.budgetBytes", "Rule.examples"}


def sections(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and every model below it."""
    seen: list[type[BaseModel]] = [root]
    for section in seen:
        for field in section.model_fields.values():
            for kind in _models(field.annotation):
                if kind not in seen:
                    seen.append(kind)
    yield from seen


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def shared(root: type[BaseModel] = GatewaySpec) -> list[type[Section]]:
    """Return every section of the schema below a model, or that a model below it inherits from."""
    found = {
        kind: None
        for one in sections(root)
        for kind in one.__mro__
        if kind.__module__.startswith("proofgate_schema.")
        and issubclass(kind, Section)
        and kind is not Section
    }
    return list(found)


def test_a_section_that_a_manifest_has_from_the_schema_is_the_gateways_own() -> None:
    assert shared() and set(shared()) <= {*shared(Settings), *shared(OidcFile)}
    for one in sections(GatewaySpec):
        of_the_schema = [kind for kind in shared() if kind.__name__ == one.__name__]
        assert all(issubclass(one, kind) for kind in of_the_schema), one


def kinds() -> dict[str, dict[str, Any]]:
    """Return the manifest's differences for each named field type of the schema."""
    found = {}
    modules = (egress, fields, policy, prices, urls)
    for name, kind in (found for module in modules for found in vars(module).items()):
        own = [one for one in getattr(kind, "__metadata__", ()) if isinstance(one, KubernetesOverride)]
        if own:
            found[name] = {keyword: value for one in own for keyword, value in one.keywords.items()}
    return found


def differences(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the manifest's differences for a node and its descendants outside nested sections."""
    if KUBERNETES_KEYWORD in node:
        yield node[KUBERNETES_KEYWORD]
    for below in (node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())):
        if isinstance(below, dict):
            yield from differences(below)


def test_every_difference_between_file_and_manifest_is_on_the_list() -> None:
    of_kinds = kinds()
    bounds: dict[str, set[str]] = {}
    of_workers = set()
    for section in shared():
        for name, node in section.model_json_schema(by_alias=True)["properties"].items():
            if WORKER_ONLY_KEYWORD in node:
                of_workers.add(f"{section.__name__}.{name}")
            for found in differences(node):
                if found not in of_kinds.values():
                    bounds.setdefault(f"{section.__name__}.{name}", set()).update(found)
    assert bounds == BOUNDS
    assert {name: set(found) for name, found in of_kinds.items()} == KINDS
    assert of_workers == OF_WORKERS


def test_every_difference_has_a_reason() -> None:
    for section in shared():
        for field in section.model_fields.values():
            reasons = [
                one.reason for one in field.metadata if isinstance(one, KubernetesOverride | WorkerOnlyField)
            ]
            assert all(reasons), f"{section.__name__}.{field.alias}"


def test_the_crd_has_every_shared_field_but_those_of_workers_alone() -> None:
    spec = spec_schema()["properties"]
    assert "bufferedBytes" not in spec["limits"]["properties"]
    assert "budgetBytes" not in spec["ledger"]["properties"]["payloads"]["properties"]
    assert "default" not in spec["limits"]["properties"]["bodyBytes"]
    assert spec["timeouts"]["properties"]["drainSeconds"] | {"description": ""} == {
        **{"type": "integer", "format": "int32", "minimum": 1, "maximum": 86_400, "default": 30},
        "description": "",
    }
    text = json.dumps(spec_schema())
    assert KUBERNETES_KEYWORD not in text and WORKER_ONLY_KEYWORD not in text


def test_every_bound_of_a_manifest_lies_within_the_files() -> None:
    """The workers accept everything that an API server accepts."""

    def compare(section: type[Section]) -> None:
        properties = section.model_json_schema(by_alias=True)["properties"]
        for name, node in properties.items():
            for option in node.get("anyOf", [node]):
                own = option.get(KUBERNETES_KEYWORD, {})
                assert own.get("minimum", option.get("minimum", 0)) >= option.get("minimum", 0), name
                if "maximum" in own:
                    assert own["maximum"] <= option["maximum"], name
                if "maxItems" in own:
                    assert own["maxItems"] <= option.get("maxItems", math.inf), name

    for section in shared():
        compare(section)


def test_a_shared_section_is_strict_in_a_file_and_lenient_in_a_manifest() -> None:
    newer = manifest(limits={"uploadBytes": 1024, "ofTomorrow": 1}, timeouts={"drainSeconds": 9, "x": {}})
    spec = Gateway.from_manifest(newer).spec
    assert (spec.limits.upload_bytes, spec.timeouts.drain_seconds) == (1024, 9)
    for wrong in ({"ofTomorrow": 1}, {"uploadBytes": "1024"}):
        with pytest.raises(ValidationError):
            type(spec.limits).model_validate(wrong)


def test_every_shared_field_is_described() -> None:
    for section in shared():
        for name, node in section.model_json_schema(by_alias=True)["properties"].items():
            assert node.get("description"), f"{section.__name__}.{name}"


# --- Schemas for editors


def test_what_is_made_of_the_models_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(SCHEMA / "readme_table.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("spec", [everything(), largest(), {}], ids=["everything", "largest", "least"])
def test_a_manifest_is_what_an_editor_takes(spec: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(editor_schema.manifest_schema())
    written = manifest(**spec)
    validator.validate(written)
    written["spec"]["timeout"] = {}
    assert not validator.is_valid(written)
