"""The workers' own loader reads every field that the operator writes."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from proofgate import _core
from proofgate.config import fields, settings
from proofgate.haproxy_sidecar.map_sources import MapSources
from proofgate.preflight import require_usable
from proofgate.reload import needs_restart
from proofgate_schema import external_policies, prices, urls
from proofgate_schema.cors import Cors
from proofgate_schema.external_policies import ExternalPolicy
from proofgate_schema.limits import Limits
from proofgate_schema.policy import (
    PACKS,
    Action,
    Attachments,
    Check,
    Mode,
    OverrideAction,
    Scope,
    Target,
    View,
)
from proofgate_schema.policy import Policy as WorkerPolicy
from proofgate_schema.reserved_fields import RESERVED_HEADERS, RESERVED_PREFIXES
from proofgate_schema.terms import Endpoint
from proofgate_schema.timeouts import Timeouts
from pydantic import TypeAdapter

from proofgate_operator.api import (
    ledger,
    static_fields,
)
from proofgate_operator.api.crd import spec_schema
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import worker_config
from proofgate_operator.plan.addresses import address_fault, no_proxy_fault, range_fault
from tests.controlplane.largest import everything
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, DEFAULTS, GLOBEX_KEY, SPEC, gateway, secret, user_secrets
from tests.test_attached_tenants import TEN, World
from tests.worker_files import configuration, load_worker_config

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))
ISSUER = {
    "issuer": "https://login.example.com/",
    "audiences": ["proofgate"],
    "jwksURL": "https://login.example.com/.well-known/jwks.json",
}


def core_json(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return the configuration that the Rust core has accepted."""
    config = load_worker_config(folder, **changes)
    require_usable(config)
    found: dict[str, Any] = json.loads(config.to_core_json(0))
    return found


def tenant(**changes: Any) -> list[dict[str, Any]]:
    acme, globex = SPEC["tenants"]
    return [{**acme, **changes}, globex]


def test_a_gateway_without_options_is_usable(tmp_path: Path) -> None:
    core = core_json(tmp_path)
    assert [model["maxOutputTokens"] for model in core["models"]] == [4096, 4096]
    assert core["policy"]["packs"] == [] and core["cors"] is None and core["jwt"] is None
    assert len(core["proxyProtocol"]["routingKey"]) == 32


def test_policies_reach_the_workers_with_who_asks_for_them(tmp_path: Path) -> None:
    found = load_worker_config(tmp_path, **everything())
    local, elsewhere = found.settings.policies
    assert (local.factory, local.parameters) == (
        "acme.policies:names",
        {"words": ["bluebird"], "strict": True},
    )
    assert (local.deadline_milliseconds, local.on_failure, local.batch) == (20, "Allow", 1)
    assert (elsewhere.url, elsewhere.token_file) == (
        "https://guardrail.example.com:8443/v1/evaluate?team=a",
        "/etc/guardrail/token",
    )
    core = json.loads(found.to_core_json(0))
    assert core["tenants"][0]["policies"] == ["names", "guardrail"]
    assert [plan["policies"] for plan in core["plans"]] == [["names"]]


def test_a_gateway_with_every_option_is_usable(tmp_path: Path) -> None:
    core = core_json(tmp_path, **everything())
    assert core["policy"]["rules"] and core["jwt"] and core["cors"]
    assert [plan["name"] for plan in core["plans"]] == ["gold"] and core["tenantShards"] is not None
    assert core["tenants"][1]["limits"]["concurrency"] == 64, "the plan's"


def test_telemetry_reaches_the_workers_with_its_secrets_in_files(tmp_path: Path) -> None:
    found = load_worker_config(tmp_path, **everything())
    telemetry = found.settings.telemetry
    [header] = telemetry.headers
    assert (header.name, Path(header.value_file).read_text()) == ("Authorization", ACME_OTHER_KEY)
    assert ACME_OTHER_KEY not in found.source.read_text()
    assert (telemetry.access_log, telemetry.metrics, telemetry.semantic_conventions) == (
        "Errors",
        True,
        "V1_41",
    )
    assert [(one.name, one.value) for one in telemetry.resource_attributes] == [
        ("deployment.environment.name", "staging")
    ]
    core = json.loads(found.to_core_json(0))
    assert core["telemetry"] == {"accessLog": "Errors", "traces": {"ratio": 0.25, "propagate": False}}


def test_analysis_reaches_the_workers_and_is_off_where_nobody_asks_for_it(tmp_path: Path) -> None:
    asked = {
        "sample": 0.25,
        "tenants": ["acme"],
        "models": ["gpt-4o-mini"],
        "window": 500,
        "vocabulary": 200_000,
    }
    (tmp_path / "on").mkdir()
    (tmp_path / "off").mkdir()
    core = core_json(tmp_path / "on", analysis=asked)["analysis"]
    assert {name: core[name] for name in asked} == asked
    assert (core["falseAlarms"], core["topLogprobs"], core["maxPairs"]) == (0.001, 5, 128)
    assert core_json(tmp_path / "off")["analysis"] is None


def test_a_secret_of_the_collectors_that_is_missing_costs_telemetry_alone() -> None:
    secret_ref = {"name": "collector", "key": "token"}
    telemetry = {
        "endpoint": "https://collector.example.com",
        "headers": [{"name": "X-Key", "secretRef": secret_ref}],
    }
    asked = gateway(telemetry=telemetry)
    for secrets, reason in [
        ({}, "SecretMissing"),
        ({"collector": secret("collector", other="x")}, "SecretInvalid"),
        ({"collector": secret("collector", token="a\nb")}, "SecretInvalid"),
    ]:
        found = configuration(asked, {**user_secrets(), **secrets})
        assert not found.problems
        assert [(fault.field, fault.reason) for fault in found.faults] == [("spec.telemetry", reason)]


def test_what_clients_may_send_and_how_long_they_may_take_reach_the_worker(tmp_path: Path) -> None:
    core = core_json(tmp_path, **everything())
    assert core["limits"] | {"bufferedBytes": None} == {
        "headBytes": 32768,
        "bodyBytes": 16 << 20,
        "uploadBytes": 1 << 40,
        "connections": 2048,
        "bufferedBytes": None,
    }
    timeouts = core["timeouts"]
    names = ("clientHeadSeconds", "clientBodySeconds", "clientIdleSeconds", "lameDuckSeconds")
    assert [timeouts[name] for name in names] == [20, 600, 90, 5]


def test_without_options_limits_and_timeouts_are_the_workers_own(tmp_path: Path) -> None:
    found = load_worker_config(tmp_path).settings
    own = Limits()
    assert found.timeouts == Timeouts()
    assert found.limits == own.model_copy(update={"buffered_bytes": found.limits.buffered_bytes})


def test_models_reserve_what_the_manifest_says(tmp_path: Path) -> None:
    models = [{**SPEC["models"][0], "maxOutputTokens": 123}, SPEC["models"][1]]
    core = core_json(tmp_path, models=models)
    assert [model["maxOutputTokens"] for model in core["models"]] == [123, 4096]


def test_a_provider_of_anthropics_api_and_its_betas_reach_the_worker(tmp_path: Path) -> None:
    first = {**SPEC["providers"][0], "type": "Anthropic", "anthropicBetas": ["context-1m-2025-08-07"]}
    core = core_json(tmp_path, providers=[first, *SPEC["providers"][1:]])
    assert core["providers"][0]["type"] == "Anthropic"
    assert core["providers"][0]["anthropicBetas"] == ["context-1m-2025-08-07"]


def bedrock(*entries: tuple[str, str]) -> dict[str, Any]:
    """Return a provider with these Secret entries for signing: id, secret and token."""
    fields = ("accessKeyIdSecretRef", "secretAccessKeySecretRef", "sessionTokenSecretRef")
    references = ({"name": name, "key": key} for name, key in entries)
    return {
        "name": "openai",
        "type": "Bedrock",
        "baseURL": "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "region": "eu-west-1",
        "auth": {"type": "AWSStaticKeys", **dict(zip(fields, references, strict=False))},
    }


def test_the_form_of_azures_api_reaches_the_worker(tmp_path: Path) -> None:
    azure = {**SPEC["providers"][0], "type": "AzureOpenAI"}
    deployments = {**azure, "api": "Deployments", "apiVersion": "2024-10-21"}
    for folder, provider, version in (("v1", azure, None), ("old", deployments, "2024-10-21")):
        (read,) = core_json(tmp_path / folder, providers=[provider])["providers"]
        assert (read["type"], read["apiVersion"]) == ("AzureOpenAI", version)


def test_how_responses_reach_a_provider_reaches_the_worker(tmp_path: Path) -> None:
    provider = SPEC["providers"][0]
    for way in ("Auto", "Native", "Translated"):
        (read, *_) = core_json(tmp_path / way, providers=[{**provider, "responses": way}])["providers"]
        assert read["responses"] == way


def test_the_tenant_whose_objects_a_provider_keeps_reaches_the_worker(tmp_path: Path) -> None:
    tenant = SPEC["tenants"][0]["name"]
    core = core_json(tmp_path, providers=[{**SPEC["providers"][0], "objectsOf": tenant}])
    assert core["providers"][0]["objectsOf"] == tenant


def test_a_project_of_vertex_ai_reaches_the_worker_and_its_key_no_config_map(tmp_path: Path) -> None:
    provider = {
        **{"name": "openai", "type": "VertexAI", "project": "my-project", "location": "europe-west1"},
        "auth": {
            "type": "GCPServiceAccountKey",
            "serviceAccountKeySecretRef": {"name": "acme-keys", "key": "first"},
        },
    }
    (read,) = core_json(tmp_path, providers=[provider])["providers"]
    assert read["type"] == "VertexAI"
    assert read["baseURL"] == "https://europe-west1-aiplatform.googleapis.com/v1"
    assert (read["project"], read["location"]) == ("my-project", "europe-west1")
    # The entry does not contain a service account's key.
    assert read["keyMissing"]
    content = worker_config.worker_config(gateway(providers=[provider]), 1 << 30, DEFAULTS)
    (written,) = content["providers"]
    assert written["auth"] == {
        "type": "GCPServiceAccountKey",
        "serviceAccountKeyFile": "/etc/proofgate/providers/openai/service-account.json",
    }
    assert "baseURL" not in written
    assert ACME_KEY not in str(content)


def test_the_credentials_of_bedrock_reach_the_worker_and_no_config_map(tmp_path: Path) -> None:
    provider = bedrock(("acme-keys", "first"), ("acme-keys", "second"), ("globex-keys", "only"))
    arn = f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.{'x' * 60}-v1:0"
    models = [{**SPEC["models"][0], "upstreamModel": arn}, SPEC["models"][1]]
    core = core_json(tmp_path, providers=[provider], models=models)
    (read,) = core["providers"]
    assert (read["type"], read["apiKey"], read["keyMissing"]) == ("Bedrock", None, False)
    assert read["region"] == "eu-west-1"
    assert read["awsKeys"] == {
        "accessKeyId": ACME_KEY,
        "secretAccessKey": ACME_OTHER_KEY,
        "sessionToken": GLOBEX_KEY,
    }
    assert core["models"][0]["upstreamModel"] == arn
    assert read["arnInPath"] == "Encoded"
    literal = core_json(tmp_path / "literal", providers=[{**provider, "arnInPath": "Literal"}], models=models)
    assert literal["providers"][0]["arnInPath"] == "Literal"
    content = worker_config.worker_config(gateway(providers=[provider]), 1 << 30, DEFAULTS)
    assert not any(key in str(content) for key in (ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY))


@pytest.mark.parametrize("lost", ["id", "secret", "token"])
def test_a_part_of_the_credentials_that_is_missing_is_named_and_costs_that_provider_alone(lost: str) -> None:
    names = ("id", "secret", "token")
    provider = bedrock(*(("aws", name) for name in names))
    secrets = {**user_secrets(), "aws": secret("aws", **{name: "x" for name in names if name != lost})}
    found = configuration(gateway(providers=[provider]), secrets)
    (fault,) = found.faults
    assert (fault.field, fault.reason) == ("spec.providers[openai]", "SecretInvalid")
    assert fault.message.endswith(f"SecretRef, has no text under {lost}")
    assert not found.problems


def test_limits_of_tenant_and_key_reach_the_worker(tmp_path: Path) -> None:
    limits = {"requestsPerMinute": 1, "tokensPerMinute": 2, "tokensPerDay": 10**12, "concurrency": 4}
    acme, globex = core_json(tmp_path, tenants=tenant(limits=limits, keyLimits={"concurrency": 5}))["tenants"]
    assert {name: limit for name, limit in acme["limits"].items() if limit is not None} == {
        "requestsPerMinute": 1,
        "tokensPerMinute": 2,
        "tokensPerDay": 10**12,
        "concurrency": 4,
    }
    assert acme["keyLimits"]["concurrency"] == 5
    assert set(globex["limits"].values()) == {None}


def test_prices_and_budgets_reach_the_worker(tmp_path: Path) -> None:
    model = SPEC["models"][0]["name"]
    price = {"model": "gpt-*", "effectiveFrom": "2026-01-01", "input": "0.15", "output": "0.60"}
    own = tenant(
        limits={"dollarsPerDay": "0.0001"},
        keyLimits={"dollarsPerMonth": "999999999.999999999"},
        modelBudgets=[{"model": model, "dollarsPerDay": "25.50"}],
    )
    core = core_json(tmp_path, tenants=own, prices=[price])
    assert core["prices"] == [
        {"model": "gpt-*", "effectiveFrom": "2026-01-01", "input": "0.15", "output": "0.60"}
    ]
    acme, globex = core["tenants"]
    assert acme["limits"]["dollarsPerDay"] == "0.0001"
    assert acme["keyLimits"]["dollarsPerMonth"] == "999999999.999999999"
    assert acme["modelBudgets"] == [{"model": model, "dollarsPerDay": "25.50", "dollarsPerMonth": None}]
    assert globex["modelBudgets"] == []
    other = tmp_path / "other"
    other.mkdir()
    with_defaults = core_json(other, prices=[price], defaultPrices=True)["prices"]
    assert with_defaults[0] == core["prices"][0]
    assert all(entry["default"] for entry in with_defaults[1:])


@given(st.from_regex(re.compile(prices.BUDGET_PATTERN, re.ASCII), fullmatch=True))
def test_every_budget_that_a_manifest_may_have_is_one_for_the_worker(amount: str) -> None:
    assert TypeAdapter(prices.Dollars).validate_python(amount) == amount


@given(
    st.from_regex(re.compile(prices.PER_MILLION_PATTERN, re.ASCII), fullmatch=True),
    st.from_regex(re.compile(prices.PER_REQUEST_PATTERN, re.ASCII), fullmatch=True),
)
def test_every_price_that_a_manifest_may_have_is_one_for_the_worker(tokens: str, request_: str) -> None:
    price = {
        "model": "m",
        "effectiveFrom": "2026-01-01",
        "input": tokens,
        "output": "1",
        "perRequest": request_,
        "tools": {"web_search": request_},
    }
    assert prices.Price.model_validate(price).tools == {"web_search": request_}
    assert prices.Price.model_validate(price).per_request == request_


def test_endpoints_reach_the_worker(tmp_path: Path) -> None:
    acme, globex = core_json(tmp_path, tenants=tenant(endpoints=list(get_args(Endpoint))))["tenants"]
    assert acme["endpoints"] == list(get_args(Endpoint))
    assert globex["endpoints"] is None


def test_a_keys_expiry_reaches_the_worker(tmp_path: Path) -> None:
    first, second = SPEC["tenants"][0]["apiKeys"]
    keys = [{**first, "notAfter": "2030-01-01T00:00:00Z"}, second]
    acme, _ = core_json(tmp_path, tenants=tenant(apiKeys=keys))["tenants"]
    expires = {key["hash"]: key["expiresAt"] for key in acme["keys"]}
    assert expires.pop(_core.hash_api_key(ACME_KEY)) == 1893456000
    assert list(expires.values()) == [None]


def test_a_policy_reaches_the_worker_with_what_a_tenant_changes(tmp_path: Path) -> None:
    begin = {"reason": "It names a project.", "action": "Redact"}
    rule = {**begin, "id": "codename", "literals": ["bluebird"]}
    card = {**begin, "id": "card", "regex": "[0-9]{16}", "check": "Luhn"}
    policy = {
        "packs": ["secrets", "pii"],
        "mode": "DryRun",
        "action": "Flag",
        "threshold": 50,
        "budgetMilliseconds": 7,
        "budgetMicrosecondsPerKibibyte": 70,
        "attachments": "Skip",
        "actions": [{"packs": ["pii"], "scopes": ["ToolResult", "User"], "action": "Ignore"}],
        "allow": {"values": ["test-key"], "domains": ["acme.com"], "patterns": ["*@corp.net"]},
        "flagThreshold": 40,
        "rules": [rule, card],
    }
    of_acme = {"mode": "Enforce", "threshold": 60, "actions": [{"rules": ["codename"], "action": "Block"}]}
    override = {"packs": ["pii"], "rules": [], "scopes": ["ToolResult", "User"], "action": "Ignore"}
    core = core_json(tmp_path, policy=policy, tenants=tenant(policy=of_acme))
    found = core["policy"]
    [codename, number] = found.pop("rules")
    assert found == {
        **{name: value for name, value in policy.items() if name != "rules"},
        "actions": [override],
    }
    assert (codename["id"], codename["literals"], codename["score"]) == ("codename", ["bluebird"], 100)
    assert (number["id"], number["regex"], number["check"]) == ("card", "[0-9]{16}", "Luhn")
    acme, globex = core["tenants"]
    block = {"packs": [], "rules": ["codename"], "scopes": [], "action": "Block"}
    assert acme["policy"] == {**of_acme, "actions": [block], "action": None, "flagThreshold": None}
    assert globex["policy"] is None


def test_cors_reaches_the_worker(tmp_path: Path) -> None:
    origins = ["https://app.example.com", "http://localhost:3000"]
    core = core_json(tmp_path, cors={"allowedOrigins": origins})
    assert core["cors"] == {"allowedOrigins": origins, "maxAgeSeconds": 600}


def test_issuers_reach_the_worker_and_a_tenant_may_have_tokens_only(tmp_path: Path) -> None:
    core = core_json(tmp_path, jwt={"issuers": [ISSUER]}, tenants=[{"name": "tokens-only"}])
    assert core["jwt"]["issuers"] == [
        {
            "issuer": "https://login.example.com/",
            "audiences": ["proofgate"],
            "algorithms": ["RS256", "ES256", "EdDSA"],
            "tenantClaim": "tenant",
            "leewaySeconds": 60,
        }
    ]
    assert core["tenants"][0]["keys"] == []


CHANGES: list[dict[str, Any]] = [
    {"replicas": 3},
    {"providers": [{**SPEC["providers"][0], "baseURL": "https://other.example.com"}]},
    {"providers": [{**SPEC["providers"][0], "streamUsage": "Leave"}]},
    {"models": [*SPEC["models"], {"name": "third", "provider": "openai"}]},
    {"tenants": tenant(limits={"concurrency": 1})},
    {"tenants": SPEC["tenants"][1:]},
    {"jwt": {"issuers": [ISSUER]}},
    {"policy": {"packs": ["pii"]}},
    {"cors": {"allowedOrigins": ["*"]}},
    {"providers": [{**SPEC["providers"][0], "timeouts": {"connectSeconds": 1, "firstByteSeconds": 600}}]},
    {"timeouts": {"upstreamFirstByteSeconds": 300}},
    {"providers": [{**SPEC["providers"][0], "minIdleConnections": 2}]},
    {"providers": [{**SPEC["providers"][0], "http": "Http2"}]},
    {"providers": [{**SPEC["providers"][0], "limits": {"requestsPerMinute": 500, "tokensPerMinute": 30000}}]},
    {"timeouts": {"upstreamConnectSeconds": 1, "upstreamResponseSeconds": 2, "drainSeconds": 3}},
    {"timeouts": {"answerSeconds": 60, "connectionAgeSeconds": 30}},
    {"timeouts": {"clientHeadSeconds": 20, "clientBodySeconds": 60, "clientIdleSeconds": 90}},
    {"timeouts": {"lameDuckSeconds": 9}},
    {"limits": {"headBytes": 32768}},
    {"limits": {"bodyBytes": 4096, "uploadBytes": 1 << 30}},
    {"limits": {"connections": 1024}},
    {"limits": {"connections": 4096}},
    {"ledger": {**SPEC["ledger"], "durability": "Synced"}},
    {"ledger": {**SPEC["ledger"], "checkpointIntervalSeconds": 9}},
    {"ledger": {**SPEC["ledger"], "recordClientAddress": True, "recordEndUser": True}},
    {"analysis": {"window": 500}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda value: next(iter(value)))
def test_workers_are_replaced_for_just_what_they_refuse_to_take_on(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    # Both configurations use the same folder, as in a pod.
    before = load_worker_config(tmp_path / "mounted", **{})
    (tmp_path / "mounted").rename(tmp_path / "before")
    after = load_worker_config(tmp_path / "mounted", **changes)
    old, new = configuration(gateway()).digests, configuration(gateway(**changes)).digests
    assert old and new
    assert (old.start != new.start) == bool(needs_restart(before, after))
    assert (old.config != new.config) == (before.digest() != after.digest())


def test_whose_bodies_are_stored_is_taken_on_and_only_the_first_and_the_last_roll_the_workers() -> None:
    def stored(payloads: dict[str, Any] | None, **changes: Any) -> Gateway:
        section = {} if payloads is None else {"payloads": payloads}
        return gateway(ledger={**SPEC["ledger"], "shredKeys": {}, **section}, **changes)

    nobody, one = stored(None), stored(None, tenants=tenant(payloads="Stored"))
    committed, everybody = stored({}), stored({"mode": "Stored", "maxBytes": 4096})
    files = {
        asked: worker_config.worker_config(made, 640 << 20, DEFAULTS)
        for asked, made in (("nobody", nobody), ("one", one), ("everybody", everybody))
    }
    assert "payloads" not in files["nobody"]["ledger"]
    assert files["one"]["ledger"]["payloads"] == {"budgetBytes": 16 << 20}
    assert files["one"]["tenants"][0]["payloads"] == "Stored"
    for content in files.values():
        read = settings.Settings.model_validate(content)
        assert read.limits.buffered_bytes >= 4 * read.limits.body_bytes
    kept = settings.Settings.model_validate(files["everybody"]).ledger.payloads
    assert kept is not None
    assert (kept.mode, kept.max_bytes, kept.budget_bytes) == ("Stored", 4096, 16 << 20)
    taken = [files[asked]["limits"]["bufferedBytes"] for asked in ("nobody", "everybody")]
    assert taken[0] - taken[1] == 16 << 20, "payload storage reduces the memory for bodies"
    fixed = [worker_config.fixed_config_text(made, DEFAULTS) for made in (nobody, one, committed, everybody)]
    assert fixed[1] == fixed[2] == fixed[3] != fixed[0]


def test_the_names_that_the_schema_knows_are_the_workers() -> None:
    for pack in PACKS:
        _core.policy_rules(json.dumps({"packs": [pack]}))
    rule = {"id": "x", "reason": "x", "regex": "[0-9]"}
    words = {"check": Check, "action": Action, "target": Target, "view": View}
    policies = [
        {"rules": [{**rule, name: value}]} for name, kind in words.items() for value in get_args(kind)
    ]
    policies += [{"mode": mode} for mode in get_args(Mode)] + [
        {"attachments": kind} for kind in get_args(Attachments)
    ]
    override = {"packs": ["pii"], "action": "Flag"}
    policies += [{"actions": [{**override, "action": action}]} for action in get_args(OverrideAction)]
    policies += [{"actions": [{**override, "scopes": [scope]}]} for scope in get_args(Scope)]
    for written in policies:
        _core.policy_rules(json.dumps(WorkerPolicy.model_validate(written).to_document()))
    with pytest.raises(_core.ConfigError) as refused:
        _core.policy_rules(json.dumps({"packs": ["none"]}))
    assert set(re.split(r"[,:;] ?", str(refused.value).partition("the packs are: ")[2].strip())) == set(PACKS)


def test_the_shards_of_tenants_are_what_workers_and_the_agent_read(tmp_path: Path) -> None:
    world = World(loadBalancer={"affinity": "Required"})
    world.add(*TEN)
    listed = world.cluster.find("GatewayTenant", "t1", "team-t1")["spec"]["apiKeys"]
    listed[0]["notAfter"] = "2030-01-01T00:00:00Z"
    world.settle()
    shards = {int(name[-2:]): files for name, files in world.shards().items()}
    worker = _core.Worker(json.dumps(core_json(tmp_path / "worker", **everything())))
    files = [(shard, made["keys"].encode(), made["tenants"].encode()) for shard, made in shards.items()]
    report = {"tenants": 10, "keys": 10, "refused": [], "well_known": 0, "first_well_known": []}
    assert json.loads(worker.set_tenant_shards(files)) == report
    for shard, made in shards.items():
        folder = tmp_path / "shards" / f"{shard:02}"
        folder.mkdir(parents=True)
        for file, text in made.items():
            (folder / file).write_text(text)
    tenants = {f"team-{name}/{name}" for name in TEN}
    # Keys lead to tenants; for tokens, so do the tenants' names.
    for name, count, ends in (("tenants.map", 20, tenants), ("owners.map", 10, None)):
        (tmp_path / name).write_text("")
        sources = MapSources(tmp_path / name, tmp_path / "shards")
        entries = sources.merged_entries(sources.read())
        assert sources.errors() == [] and len(entries) == count
        assert tenants <= entries.keys()
        assert ends is None or set(entries.values()) == ends


def written(pattern: str) -> st.SearchStrategy[str]:
    """Generate texts that the API server accepts: its `$` is the end, Python's may precede a newline."""
    return st.from_regex(pattern.removesuffix("$") + r"\Z")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return core_json(tmp_path_factory.mktemp("worker"))


@given(written(urls.BASE_URL_PATTERN).filter(lambda url: len(url) <= 512))
def test_a_base_url_that_is_let_in_is_one_to_the_worker(document: dict[str, Any], url: str) -> None:
    if address_fault(url) is None:
        TypeAdapter(urls.BaseURL).validate_python(url)
        _core.Worker(json.dumps(document | {"providers": [{**document["providers"][0], "baseURL": url}]}))


@given(written(urls.KEY_SET_URL_PATTERN).filter(lambda url: len(url) <= 512))
def test_a_key_set_url_that_is_let_in_is_one_to_the_worker(url: str) -> None:
    if address_fault(url) is None:
        TypeAdapter(urls.KeySetURL).validate_python(url)


@given(written(urls.HOOK_URL_PATTERN).filter(lambda url: len(url) <= 512))
def test_a_policys_url_that_is_let_in_is_one_to_the_worker(url: str) -> None:
    if address_fault(url) is None:
        TypeAdapter(urls.HookURL).validate_python(url)


@given(
    written(external_policies.POLICY_NAME.keywords["pattern"]).filter(lambda name: len(name) <= 31),
    written(f"^{external_policies._FACTORY}$").filter(lambda factory: len(factory) <= 256),
)
def test_a_policys_name_and_factory_that_are_let_in_are_such_to_the_worker(name: str, factory: str) -> None:
    ExternalPolicy.model_validate({"name": name, "factory": factory})


@given(written(urls.WEB_ORIGIN_PATTERN).filter(lambda origin: len(origin) <= 256))
def test_an_origin_that_is_let_in_is_one_to_the_worker(origin: str) -> None:
    default_port = origin.startswith("http:") and origin.endswith(":80")
    default_port |= origin.startswith("https:") and origin.endswith(":443")
    # The CRD has a separate rule for the port.
    if not default_port and (origin == "*" or address_fault(origin) is None):
        Cors.model_validate({"allowedOrigins": [origin]})


@given(written(ledger._LEDGER_ORIGIN).filter(lambda origin: len(origin) <= 128))
def test_a_ledgers_origin_that_is_let_in_is_one_to_the_worker(origin: str) -> None:
    TypeAdapter(fields.LogOrigin).validate_python(origin)


@pytest.mark.parametrize(
    "url",
    [
        "https://a-.example.com",
        "https://a..example.com",
        "http://a:0",
        "http://a:70000",
        "http://a:",
        "http://user@a",
        "http://a/?q",
        "http://a/#f",
        "http://a/ä",
        "http://a b",
        "http://a,b",
        "http://",
    ],
)
def test_a_base_url_that_workers_could_not_use_does_not_fit_the_schema(url: str) -> None:
    field = spec_schema()["properties"]["providers"]["items"]["properties"]["baseURL"]
    assert not re.search(field["pattern"], url)


@pytest.mark.parametrize("url", ["https://1.2.3/v1", "https://999.1.1.1", "http://[::g]", "http://[1.2.3.4]"])
def test_a_host_that_looks_like_an_address_has_to_be_one(url: str) -> None:
    assert address_fault(url)


def test_static_fields_of_an_upstream_reach_the_workers_with_secrets_in_files(tmp_path: Path) -> None:
    found = load_worker_config(tmp_path, **everything())
    first = json.loads(found.to_core_json(0))["providers"][0]
    assert first["headers"] == [
        {"name": "OpenAI-Organization", "value": "org-1", "secret": False},
        {"name": "X-House", "value": "sk-upstream-0123456789", "secret": True},
    ]
    assert first["bodyFields"] == {"provider": {"data_collection": "deny"}}
    assert "sk-upstream" not in found.source.read_text()


def test_the_api_server_refuses_the_headers_that_workers_write_themselves() -> None:
    rule = static_fields.STATIC_FIELD_RULES[-1]["rule"]
    assert all(f"'{name}'" in rule for name in RESERVED_HEADERS)
    assert all(f"startsWith('{prefix}')" in rule for prefix in RESERVED_PREFIXES)


def test_body_fields_that_workers_read_are_named() -> None:
    fields = {"store": False, "max_Tokens": 1}
    asked = gateway(providers=[{**SPEC["providers"][0], "bodyFields": fields}])
    [problem] = configuration(asked).problems
    assert (problem.reason, problem.message) == (
        "SpecInvalid",
        "spec.providers[openai].bodyFields: max_Tokens is a field that workers read themselves",
    )


PROXY = {"url": "http://proxy.example.com:3128", "credentialsSecretRef": {"name": "proxy"}}


def test_the_egress_proxy_reaches_the_workers_with_its_credentials_in_files(tmp_path: Path) -> None:
    found = load_worker_config(tmp_path, egress={"proxy": {**PROXY, "noProxy": [".svc", "10.0.0.0/8"]}})
    assert found.proxy is not None and found.proxy.authorization is not None
    assert found.proxy.authorization.get_secret_value() == "Basic Z2F0ZXdheTpzM2NyZXQ="
    assert "s3cret" not in found.source.read_text()
    core = json.loads(found.to_core_json(0))
    assert (core["egress"]["allow"], core["egress"]["proxy"]["url"]) == (None, PROXY["url"])
    assert all(provider["proxied"] for provider in core["providers"])


def test_credentials_of_the_egress_proxy_that_are_missing_are_named() -> None:
    asked = gateway(egress={"proxy": PROXY})
    for found, reason in [
        (None, "SecretMissing"),
        (secret("proxy", username="a"), "SecretInvalid"),
        (secret("proxy", username="a:b", password="c"), "SecretInvalid"),
        (secret("proxy", username="a", password="b c"), "SecretInvalid"),
    ]:
        configured = configuration(asked, {**user_secrets(), "proxy": found})
        assert not configured.problems
        assert [(fault.field, fault.reason) for fault in configured.faults] == [("spec.egress", reason)]


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "example.com",
        ".svc",
        "*.example.com:8443",
        "10.0.0.0/8",
        "10.1.2.3:80",
        "::1",
        "2001:db8::/32",
        "[::1]:1",
    ],
)
def test_what_no_proxy_may_have_is_accepted(entry: str) -> None:
    assert gateway(egress={"proxy": {**PROXY, "noProxy": [entry]}}).spec.egress is not None
    assert no_proxy_fault(entry) is None


@pytest.mark.parametrize("entry", ["10.0.0.1/8", "2001:db8::1/32", "[::g]", "1::2::3", "10.0.0/8"])
def test_an_address_of_no_proxy_that_is_none_is_named(entry: str) -> None:
    assert no_proxy_fault(entry)


@pytest.mark.parametrize(
    "proxy",
    [
        {"url": "https://proxy.example.com"},
        {"url": "http://user:pass@proxy.example.com"},
        {"url": "http://proxy.example.com/path"},
        {"url": "http://proxy.example.com:0"},
        {**PROXY, "noProxy": ["a b"]},
        {**PROXY, "noProxy": ["http://example.com"]},
        {**PROXY, "noProxy": ["example.com:99999"]},
    ],
)
def test_an_egress_proxy_that_is_none_is_refused(proxy: dict[str, Any]) -> None:
    schema = spec_schema()["properties"]["egress"]["properties"]["proxy"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(proxy, schema)


def test_routes_fallbacks_and_egress_reach_the_worker(tmp_path: Path) -> None:
    first = {
        "name": SPEC["models"][0]["name"],
        "routes": [{"provider": "openai", "weight": 3}, {"provider": "openai", "upstreamModel": "mini"}],
        "fallbacks": [{"provider": "openai"}],
        "fallbackOn": ["Timeout", "ContextLength"],
    }
    core = core_json(tmp_path, models=[first, *SPEC["models"][1:]], egress={"allow": ["10.0.0.0/8"]})
    assert core["egress"]["allow"] == ["10.0.0.0/8"]
    model = core["models"][0]
    assert [route["weight"] for route in model["routes"]] == [3, 1]
    assert [fallback["provider"] for fallback in model["fallbacks"]] == ["openai"]
    assert model["fallbackOn"] == ["Timeout", "ContextLength"]


@pytest.mark.parametrize("cidr", ["10.0.0.1/8", "10.0.0.0/33", "::/129", "1.2.3/8"])
def test_a_range_that_looks_like_one_has_to_be_one(cidr: str) -> None:
    assert range_fault(cidr)
    assert range_fault("10.0.0.0/8") is range_fault("2001:db8::/32") is None


def test_the_configuration_is_yaml_without_aliases(tmp_path: Path) -> None:
    text = load_worker_config(tmp_path, **everything()).source.read_text()
    assert "&id" not in text and yaml.safe_load(text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_lacks_nothing_but_its_secrets(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        if document["kind"] == "GovernanceGateway":
            found = configuration(gateway(spec=document["spec"]), {})
            assert not found.file_problems and not found.balancer_problems
            assert {fault.reason for fault in found.faults} == {"SecretMissing"}
