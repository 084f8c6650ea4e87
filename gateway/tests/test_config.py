"""The configuration: the loaded settings, and the report of each error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from conftest import ACME_HASH, SECRETS, ConfigDirectory
from proofgate_schema.limits import Limits
from pydantic import BaseModel
from signing import LEDGER, Key

from proofgate import _core
from proofgate.config import InvalidConfigError, Problem, load
from proofgate.config.document import parse_document
from proofgate.config.settings import Provider, Settings
from proofgate.limit_kinds import LIMIT_KINDS

NO_QUOTA = dict.fromkeys(kind.alias for kind in LIMIT_KINDS)


def load_problems(directory: ConfigDirectory) -> tuple[Problem, ...]:
    with pytest.raises(InvalidConfigError) as caught:
        load(directory.file)
    return caught.value.problems


def test_the_core_gets_the_document_of_the_file_with_every_default_and_everything_inline(
    config_directory: ConfigDirectory,
) -> None:
    config = load(config_directory.file)
    core = json.loads(config.to_core_json(shard=3))
    digest = core.pop("configDigest")
    assert digest == config.digest()
    assert core == {
        "ledger": {
            "name": "proofgate.dev/ns/demo",
            "directory": str(config_directory.ledger),
            "shard": 3,
            "durability": "Synced",
            "checkpointIntervalSeconds": 0.5,
            "signingKey": LEDGER.signing,
            "segmentBytes": 33554432,
            "rotation": {"bytes": 1 << 30, "seconds": 86_400},
            "payloads": None,
            "heldCheckpoints": None,
            "shredKeysDirectory": None,
            "recordClientAddress": False,
            "recordEndUser": False,
        },
        "listen": "127.0.0.1:0",
        "proxyProtocol": None,
        "tls": None,
        "cors": None,
        "providers": [
            {
                "name": "openai",
                "type": "OpenAI",
                "baseURL": "https://api.openai.com/v1",
                "auth": {"type": "APIKey"},
                "apiKey": "sk-very-secret",
                "keyMissing": False,
                "caPem": None,
                "clientCertificatePem": None,
                "clientKeyPem": None,
                "region": None,
                "project": None,
                "location": None,
                "arnInPath": "Encoded",
                "apiVersion": None,
                "streamUsage": "Ask",
                "responses": "Auto",
                "untranslatableFields": "Refuse",
                "objectsOf": None,
                "maxConcurrentRequests": None,
                "minIdleConnections": 0,
                "http": "Http1",
                "limits": None,
                "timeouts": None,
                "anthropicBetas": None,
                "headers": [],
                "bodyFields": None,
                "proxied": False,
            }
        ],
        "egress": None,
        "models": [
            {
                "name": name,
                "provider": "openai",
                "upstreamModel": upstream,
                "routes": [],
                "fallbacks": [],
                "fallbackOn": ["Unreachable", "RateLimited", "Overloaded"],
                "maxOutputTokens": 4096,
            }
            for name, upstream in (("gpt-4o-mini", None), ("fast", "gpt-4o-mini"))
        ],
        "prices": [],
        "plans": [],
        "tenantShards": None,
        "tenants": [
            {
                "name": name,
                "keys": [{"hash": _core.hash_api_key(key), "expiresAt": None, "name": None}],
                "models": models,
                "endpoints": None,
                "hostedTools": {"allow": [], "maxCalls": 10, "tokensPerCall": None},
                "guardedTools": None,
                "limits": NO_QUOTA,
                "keyLimits": NO_QUOTA,
                "modelBudgets": [],
                "deniedBetas": [],
                "waitSeconds": 5,
                "policy": None,
                "policies": [],
                "payloads": None,
            }
            for name, key, models in (("acme", "acme-key", ["gpt-4o-mini"]), ("globex", "globex-key", None))
        ],
        "jwt": None,
        "policy": {
            "packs": [],
            "mode": "Enforce",
            "action": None,
            "actions": [],
            "allow": None,
            "threshold": None,
            "flagThreshold": 50,
            "budgetMilliseconds": 10,
            "budgetMicrosecondsPerKibibyte": 200,
            "attachments": "ScanText",
            "rules": [],
        },
        "policies": [],
        "timeouts": {
            "clientHeadSeconds": 10,
            "clientBodySeconds": 30,
            "clientIdleSeconds": 75,
            "upstreamConnectSeconds": 5,
            "upstreamFirstByteSeconds": None,
            "upstreamResponseSeconds": 600,
            "answerSeconds": 3600,
            "heartbeatSeconds": 15,
            "connectionAgeSeconds": 300,
            "drainSeconds": 20,
            "lameDuckSeconds": 0,
        },
        "limits": {
            "headBytes": 16384,
            "bodyBytes": 33554432,
            "uploadBytes": 536870912,
            "connections": 4096,
            "bufferedBytes": 201326592,
        },
        "metrics": {"labelSets": 1000},
        "telemetry": {"accessLog": "None", "traces": None},
        "analysis": None,
        "profiling": {"stages": False},
    }


def test_no_secret_is_in_the_representation_of_a_configuration(config_directory: ConfigDirectory) -> None:
    config = load(config_directory.file)
    for secret in SECRETS:
        assert secret not in repr(config)
        assert secret not in repr(config.__dict__)


def test_the_digest_ignores_secrets(config_directory: ConfigDirectory) -> None:
    before = load(config_directory.file).digest()
    config_directory.write("openai-key", "sk-rotated")
    assert load(config_directory.file).digest() == before


def test_the_digest_notices_who_may_use_what(config_directory: ConfigDirectory) -> None:
    before = load(config_directory.file).digest()
    config_directory.replace("models: [gpt-4o-mini]", "models: [gpt-4o-mini, fast]")
    assert load(config_directory.file).digest() != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("upstreamModel: gpt-4o-mini", "maxOutputTokens: 100"),
        ("name: acme", "name: acme\n    limits: {requestsPerMinute: 5}"),
        ("name: acme", "name: acme\n    keyLimits: {concurrency: 5}"),
        ("name: acme", "name: acme\n    endpoints: [Models]"),
        ("name: acme", "name: acme\n    policy: {mode: DryRun}"),
        (f"keyHashes: [{ACME_HASH}]", f"keys: [{{hash: {ACME_HASH}, expiresAt: 2026-12-31T00:00:00Z}}]"),
        ("timeouts:", "cors: {allowedOrigins: ['*']}\ntimeouts:"),
        ("timeouts:", "limits: {bufferedBytes: 268435456}\ntimeouts:"),
        ("timeouts:", "profiling: {stages: true}\ntimeouts:"),
        ("timeouts:", "policy: {threshold: 5}\ntimeouts:"),
        ("timeouts:", "policy: {rules: [{id: x, reason: y, regex: z}]}\ntimeouts:"),
    ],
)
def test_the_digest_notices_every_field_that_is_no_secret(
    config_directory: ConfigDirectory, old: str, new: str
) -> None:
    before = load(config_directory.file).digest()
    config_directory.replace(old, new)
    assert load(config_directory.file).digest() != before


def test_the_digest_notices_that_a_key_of_a_file_now_expires(config_directory: ConfigDirectory) -> None:
    before = load(config_directory.file).digest()
    digest = _core.hash_api_key("globex-key")
    config_directory.write("globex-keys", f"{digest} expires=2030-01-01T00:00:00Z")
    assert load(config_directory.file).digest() != before


def test_two_configurations_that_mean_the_same_are_equal(config_directory: ConfigDirectory) -> None:
    before = load(config_directory.file)
    config_directory.replace("listen: 127.0.0.1:0", "# a comment\nlisten: '127.0.0.1:0'")
    assert load(config_directory.file) == before
    config_directory.write("openai-key", "sk-rotated")
    assert load(config_directory.file) != before


def test_an_unknown_field_is_refused_with_its_line_and_the_likely_name(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.replace("signingKeyFile:", "signingKeyfile:")
    text = str(config_directory.problems())
    assert f"{config_directory.file}:7: ledger.signingKeyfile: there is no such field" in text
    assert "did you mean signingKeyFile?" in text
    assert "ledger.signingKeyFile: this field is required: add it" in text


def test_a_misspelt_field_is_compared_with_those_of_its_section(config_directory: ConfigDirectory) -> None:
    config_directory.replace("name: acme", "name: acme\n    limit: {}\n    directory: x")
    text = str(config_directory.problems())
    assert ":25: tenants[0].limit: there is no such field: did you mean limits?" in text
    assert ":26: tenants[0].directory: there is no such field: remove it" in text


def test_a_misspelt_reference_gets_the_likely_name(config_directory: ConfigDirectory) -> None:
    config_directory.replace("models: [gpt-4o-mini]", "models: [gpt-4o_mini]")
    assert "did you mean gpt-4o-mini?" in str(config_directory.problems())


def test_where_a_problem_is_can_be_told_without_what_the_file_says(config_directory: ConfigDirectory) -> None:
    config_directory.replace("name: acme", "name: acme\n    sk-very-secret: x")
    (problem,) = load_problems(config_directory)
    assert problem.location_as_json(config_directory.file) == {
        "code": "config_unknown_field",
        "file": str(config_directory.file),
        "line": 25,
        "field": "tenants[0]",
    }


def test_a_python_field_name_is_not_a_second_spelling(config_directory: ConfigDirectory) -> None:
    config_directory.replace("baseURL", "base_url")
    assert config_directory.codes() == ["config_missing_field", "config_unknown_field"]


@pytest.mark.parametrize("section", ["providers", "models"])
def test_an_empty_list_is_refused(config_directory: ConfigDirectory, section: str) -> None:
    head, _, _ = config_directory.file.read_text().partition("providers:")
    rest = dict.fromkeys(("providers", "models"), "[]")
    config_directory.file.write_text(head + "".join(f"{name}: {value}\n" for name, value in rest.items()))
    assert f"{section}: list at least one" in str(config_directory.problems())


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("{name: other}", "config_no_provider"),
        ("{name: other, provider: openai, routes: [{provider: openai}]}", "config_no_provider"),
        ("{name: other, routes: [{provider: openai}], upstreamModel: x}", "config_two_names"),
        ("{name: other, routes: [{provider: nobody}]}", "config_unknown_provider"),
        ("{name: other, provider: openai, fallbacks: [{provider: nobody}]}", "config_unknown_provider"),
        ("{name: other, provider: openai, fallbackOn: [Boredom]}", "config_invalid_value"),
        ("{name: 'o*r', provider: openai}", "config_invalid_value"),
        ("{name: 'o*', provider: openai, upstreamModel: '*-*'}", "config_invalid_value"),
        ("{name: other, provider: openai, upstreamModel: 'x-*'}", "config_no_wildcard"),
        ("{name: other, routes: [{provider: openai, upstreamModel: '*'}]}", "config_no_wildcard"),
        ("{name: other, routes: [{provider: openai, weight: 0}]}", "config_invalid_value"),
    ],
)
def test_a_model_whose_providers_make_no_sense_is_refused(
    config_directory: ConfigDirectory, model: str, code: str
) -> None:
    config_directory.replace("models:\n", f"models:\n  - {model}\n")
    assert config_directory.codes() == [code]


def test_the_providers_of_a_model_reach_the_core_with_their_shares(config_directory: ConfigDirectory) -> None:
    routes = "routes: [{provider: openai, weight: 3, upstreamModel: x}, {provider: openai}]"
    model = f"{{name: other, {routes}, fallbacks: [{{provider: openai}}], fallbackOn: [Timeout]}}"
    config_directory.replace("models:\n", f"models:\n  - {model}\n")
    found = json.loads(load(config_directory.file).to_core_json(shard=0))["models"][0]
    assert found["routes"] == [
        {"provider": "openai", "upstreamModel": "x", "weight": 3},
        {"provider": "openai", "upstreamModel": None, "weight": 1},
    ]
    assert found["fallbacks"] == [{"provider": "openai", "upstreamModel": None}]
    assert found["fallbackOn"] == ["Timeout"]


def test_static_fields_of_a_provider_reach_the_core_with_secrets_from_files(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.write("header", "plain secret\n")
    config_directory.replace(
        "    baseURL: https://api.openai.com/v1/\n",
        """    baseURL: https://api.openai.com/v1
    headers:
      - {name: OpenAI-Organization, value: org-1}
      - {name: X-Secret, valueFile: header}
    bodyFields: {provider: {data_collection: deny}, store: false}
""",
    )
    config = load(config_directory.file)
    [provider] = json.loads(config.to_core_json(0))["providers"]
    assert provider["headers"] == [
        {"name": "OpenAI-Organization", "value": "org-1", "secret": False},
        {"name": "X-Secret", "value": "plain secret", "secret": True},
    ]
    assert provider["bodyFields"] == {"provider": {"data_collection": "deny"}, "store": False}
    assert "plain secret" not in config.public_json().decode() + repr(config)
    config_directory.write("header", "two\nlines")
    config = load(config_directory.file)
    assert json.loads(config.to_core_json(0))["providers"][0]["keyMissing"]
    assert [warning.code for warning in config.warnings] == ["config_bad_secret"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("headers: [{name: Authorization, value: x}]", "config_invalid_value"),
        ("headers: [{name: X-API-Key, value: x}]", "config_invalid_value"),
        ("headers: [{name: Transfer-Encoding, value: x}]", "config_invalid_value"),
        ("headers: [{name: Proxy-Authorization, value: x}]", "config_invalid_value"),
        ("headers: [{name: X-Amz-Security-Token, value: x}]", "config_invalid_value"),
        ('headers: [{name: "A B", value: x}]', "config_invalid_value"),
        ('headers: [{name: A, value: "x\\r\\nB: c"}]', "config_invalid_value"),
        ("headers: [{name: A}]", "config_provider_headers"),
        ("headers: [{name: A, value: x, valueFile: y}]", "config_provider_headers"),
        ("headers: [{name: A, value: x}, {name: a, value: y}]", "config_duplicate_name"),
        ("bodyFields: {model: other}", "config_invalid_value"),
        ("bodyFields: {max_Tokens: 1}", "config_invalid_value"),
        ("bodyFields: {serviceTier: flex}", "config_invalid_value"),
        ('bodyFields: {"a b": 1}', "config_invalid_value"),
        ("bodyFields: {a: .nan}", "config_invalid_value"),
    ],
)
def test_static_fields_that_are_the_gateways_or_none_are_refused(
    config_directory: ConfigDirectory, fields: str, code: str
) -> None:
    url = "    baseURL: https://api.openai.com/v1/\n"
    config_directory.replace(url, f"{url}    {fields}\n")
    assert code in config_directory.codes()


def test_how_long_requests_wait_for_reservations_is_the_plans(config_directory: ConfigDirectory) -> None:
    assert [tenant["waitSeconds"] for tenant in config_directory.core()["tenants"]] == [5, 5]
    config_directory.replace("models: [gpt-4o-mini]", "waitSeconds: 0")
    assert [tenant["waitSeconds"] for tenant in config_directory.core()["tenants"]] == [0, 5]
    config_directory.replace("waitSeconds: 0", "waitSeconds: 61")
    assert config_directory.codes() == ["config_invalid_value"]


def test_a_range_of_addresses_that_is_none_is_refused(config_directory: ConfigDirectory) -> None:
    config_directory.replace("models:\n", "egress: {allow: [10.0.0.1/8]}\nmodels:\n")
    assert config_directory.codes() == ["config_invalid_value"]
    assert "has host bits set" in str(config_directory.problems())


def test_all_problems_are_reported_at_once(config_directory: ConfigDirectory) -> None:
    config_directory.replace("provider: openai", "provider: azure")
    config_directory.replace("models: [gpt-4o-mini]", "models: [gpt-5]")
    assert config_directory.codes() == ["config_unknown_provider", "config_unknown_model"]
    text = str(config_directory.problems())
    assert ":19: models[0].provider: no provider is named azure" in text
    assert ":26: tenants[0].models[0]: no model is named gpt-5" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("durability: Synced", "durability: fast", "'Written' or 'Synced'"),
        ("drainSeconds: 20", "drainSeconds: '20'", "timeouts.drainSeconds"),
        ("drainSeconds: 20", "drainSeconds: .nan", "timeouts.drainSeconds"),
        ("drainSeconds: 20", "drainSeconds: 0", "timeouts.drainSeconds"),
        ("drainSeconds: 20", "drainSeconds: yes", "timeouts.drainSeconds"),
        ("listen: 127.0.0.1:0", "listen: 127.0.0.1", "write an address and a port"),
        ("listen: 127.0.0.1:0", "listen: '::1:8080'", "in brackets"),
        ("listen: 127.0.0.1:0", "listen: 127.0.0.1:70000", "write an address and a port"),
        ("https://api.openai.com/v1/", "api.openai.com/v1", "write an http or https URL"),
        ("https://api.openai.com/v1/", "https://me:sk-very-secret@api.openai.com", "belongs in auth"),
        ("name: proofgate.dev/ns/demo", "name: my ledger", "schema-less URL"),
        ("name: acme", "name: 'acme corp'", "a name has"),
        ("apiKeyFile: openai-key", 'apiKeyFile: "a\\0b"', "write the path of a file"),
        ("upstreamModel: gpt-4o-mini", "maxOutputTokens: 0", "models[1].maxOutputTokens"),
        ("timeouts:", "limits: {bufferedBytes: 1.5}\ntimeouts:", "limits.bufferedBytes"),
        ("timeouts:", "profiling: {stages: 1}\ntimeouts:", "profiling.stages"),
        ("[ACME]".replace("ACME", ACME_HASH), "acme", "tenants[0].keyHashes"),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    config_directory: ConfigDirectory, old: str, new: str, message: str
) -> None:
    config_directory.replace(old, new)
    assert message in str(config_directory.problems())


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("directory: ledger", "directory: not-mounted", "config_no_directory"),
        (
            "directory: ledger",
            "directory: ledger\n  heldCheckpoints: {directory: nowhere}",
            "config_no_directory",
        ),
        (
            "directory: ledger",
            "directory: ledger\n  heldCheckpoints: {directory: ledger}",
            "config_held_inside",
        ),
        ("name: fast", "name: gpt-4o-mini", "config_duplicate_name"),
        ("name: globex", "name: acme", "config_duplicate_name"),
        (f"keyHashes: [{ACME_HASH}]", f"keyHashes: [{ACME_HASH.upper()}]", "config_bad_hash"),
        (f"keyHashes: [{ACME_HASH}]", "keyHashes: [sk-very-secret]", "config_bad_hash"),
        (f"keyHashes: [{ACME_HASH}]", "keyHashes: []", "config_no_keys"),
        ("keyHashesFile: globex-keys", f"keyHashes: [{ACME_HASH}]", "config_shared_key"),
        (
            "auth: {type: APIKey, apiKeyFile: openai-key}",
            "clientKeyFile: openai-key",
            "config_half_client_certificate",
        ),
        ("timeouts:", "limits: {bodyBytes: 2048, bufferedBytes: 8191}\ntimeouts:", "config_small_buffer"),
    ],
)
def test_a_reference_or_name_that_cannot_hold_is_refused(
    config_directory: ConfigDirectory, old: str, new: str, code: str
) -> None:
    config_directory.replace(old, new)
    assert config_directory.codes() == [code]


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("signing-key", Key("proofgate.dev/other").signing, "config_foreign_key"),
        ("signing-key", LEDGER.secret, "config_bad_signing_key"),
        ("admin-token", "short", "config_weak_token"),
        ("globex-keys", "globex-key", "config_bad_hash"),
    ],
)
def test_a_named_file_with_the_wrong_content_is_refused(
    config_directory: ConfigDirectory, file: str, content: str, code: str
) -> None:
    config_directory.write(file, content)
    assert config_directory.codes() == [code]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "config_file_unreadable"),
        ("\n", "config_empty_secret"),
        ("sk-very-secret\nx-injected: header", "config_bad_secret"),
    ],
)
def test_a_provider_without_a_usable_key_costs_nobody_else_anything(
    config_directory: ConfigDirectory, content: str | None, code: str
) -> None:
    if content is None:
        config_directory.replace("apiKeyFile: openai-key", "apiKeyFile: nowhere")
    else:
        config_directory.write("openai-key", content)
    config = load(config_directory.file)
    (provider,) = json.loads(config.to_core_json(shard=0))["providers"]
    assert (provider["apiKey"], provider["keyMissing"]) == (None, True)
    (warning,) = config.warnings
    assert warning.code == code
    assert warning.message.endswith("requests for models of openai are refused")
    assert "sk-very-secret" not in str(config.warnings)


def _bedrock(config_directory: ConfigDirectory, *lines: str) -> None:
    config_directory.replace("type: OpenAI", "type: Bedrock")
    config_directory.replace(
        "    auth: {type: APIKey, apiKeyFile: openai-key}",
        "".join(f"    {line}\n" for line in lines).rstrip("\n"),
    )


FILES = "accessKeyIdFile: aws-id, secretAccessKeyFile: aws-secret, sessionTokenFile: aws-token"
SIGNED = ("region: eu-west-1", f"auth: {{type: AWSStaticKeys, {FILES}}}")
KEYED = "auth: {type: APIKey, apiKeyFile: openai-key}"


def test_the_credentials_of_bedrock_are_read_and_no_representation_shows_them(
    config_directory: ConfigDirectory,
) -> None:
    _bedrock(config_directory, *SIGNED)
    for name in ("id", "secret", "token"):
        config_directory.write(f"aws-{name}", f"sk-very-{name}\n")
    config = load(config_directory.file)
    (provider,) = json.loads(config.to_core_json(shard=0))["providers"]
    assert (provider["type"], provider["apiKey"], provider["keyMissing"]) == ("Bedrock", None, False)
    assert (provider["region"], provider["auth"]) == ("eu-west-1", {"type": "AWSStaticKeys"})
    assert provider["awsKeys"] == {
        "accessKeyId": "sk-very-id",
        "secretAccessKey": "sk-very-secret",
        "sessionToken": "sk-very-token",
    }
    assert "sk-very" not in repr(config)
    digest = config.digest()
    config_directory.write("aws-secret", "sk-very-new\n")
    changed = load(config_directory.file)
    assert changed != config
    assert changed.digest() == digest


@pytest.mark.parametrize("lost", ["aws-id", "aws-secret", "aws-token"])
def test_credentials_of_which_a_part_is_missing_are_none_at_all(
    config_directory: ConfigDirectory, lost: str
) -> None:
    _bedrock(config_directory, *SIGNED)
    for name in ("id", "secret", "token"):
        config_directory.write(f"aws-{name}", "" if lost == f"aws-{name}" else "sk-very-secret")
    config = load(config_directory.file)
    (provider,) = json.loads(config.to_core_json(shard=0))["providers"]
    assert (provider.get("awsKeys"), provider["keyMissing"]) == (None, True)
    assert [warning.code for warning in config.warnings] == ["config_empty_secret"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "add it with type APIKey, AWSStaticKeys, AWSWebIdentity or AWSPodIdentity"),
        (SIGNED[1:], "set region"),
        (("auth: {type: AWSPodIdentity}",), "set region"),
        (("auth: {type: GCPMetadataServer}",), "GCPMetadataServer does not fit a provider of type Bedrock"),
        (("auth: {type: APIKey}",), "auth.apiKeyFile: type APIKey needs this field"),
        (
            (SIGNED[0], "auth: {type: AWSPodIdentity, roleARN: 'arn:aws:iam::123456789012:role/a'}"),
            "no such field",
        ),
    ],
)
def test_bedrock_takes_a_key_or_credentials_with_their_region(
    config_directory: ConfigDirectory, lines: tuple[str, ...], message: str
) -> None:
    _bedrock(config_directory, *lines)
    for name in ("id", "secret", "token"):
        config_directory.write(f"aws-{name}", "x")
    assert config_directory.codes() == ["config_provider_credentials"]
    assert message in str(config_directory.problems())


ACCOUNT_KEY = "auth: {type: GCPServiceAccountKey, serviceAccountKeyFile: account.json}"
VERTEX = ("project: my-project", "location: europe-west1", ACCOUNT_KEY)
ACCOUNT = {
    "client_email": "worker@my-project.iam.gserviceaccount.com",
    "private_key": "sk-very-secret",
    "token_uri": "https://oauth2.googleapis.com/token",
}


def _vertex(config_directory: ConfigDirectory, *lines: str) -> None:
    config_directory.replace("type: OpenAI", "type: VertexAI")
    config_directory.replace(
        "    auth: {type: APIKey, apiKeyFile: openai-key}",
        "".join(f"    {line}\n" for line in lines).rstrip("\n"),
    )


def test_the_key_of_a_service_account_stays_with_python_and_no_representation_shows_it(
    config_directory: ConfigDirectory,
) -> None:
    _vertex(config_directory, *VERTEX)
    config_directory.write("account.json", json.dumps(ACCOUNT))
    config = load(config_directory.file)
    core = config.to_core_json(shard=0)
    (provider,) = json.loads(core)["providers"]
    assert (provider["type"], provider["keyMissing"]) == ("VertexAI", False)
    assert (provider["project"], provider["location"]) == ("my-project", "europe-west1")
    assert "sk-very" not in repr(config) + core
    digest = config.digest()
    config_directory.write("account.json", json.dumps(ACCOUNT | {"private_key": "sk-very-new"}))
    changed = load(config_directory.file)
    assert changed != config
    assert changed.digest() == digest


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("europe-west1", "https://europe-west1-aiplatform.googleapis.com/v1"),
        ("global", "https://aiplatform.googleapis.com/v1"),
    ],
)
def test_vertex_ai_is_where_its_location_is(location: str, url: str) -> None:
    given = {"name": "v", "type": "VertexAI", "project": "p", "location": location}
    assert Provider.model_validate(given).base_url == url
    own = "https://psc.example.com/v1"
    assert Provider.model_validate(given | {"baseURL": own}).base_url == own


@pytest.mark.parametrize(
    "text",
    [
        "sk-very-secret",
        "[]",
        json.dumps(ACCOUNT | {"token_uri": None}),
        json.dumps(ACCOUNT | {"token_uri": "http://oauth2.example.com/token"}),
    ],
)
def test_what_is_no_key_of_a_service_account_costs_its_provider_alone(
    config_directory: ConfigDirectory, text: str
) -> None:
    _vertex(config_directory, *VERTEX)
    config_directory.write("account.json", text)
    config = load(config_directory.file)
    (provider,) = json.loads(config.to_core_json(shard=0))["providers"]
    assert provider["keyMissing"]
    assert [warning.code for warning in config.warnings] == ["config_service_account"]
    assert "sk-very" not in str(config.warnings)


@pytest.mark.parametrize(
    ("kind", "lines", "message"),
    [
        ("OpenAI", ("project: p",), "only a provider of type VertexAI has project"),
        ("OpenAI", (ACCOUNT_KEY,), "GCPServiceAccountKey does not fit a provider of type OpenAI"),
        ("VertexAI", ("project: p", "auth: {type: GCPMetadataServer}"), "set location"),
        ("VertexAI", ("location: global", "auth: {type: GCPMetadataServer}"), "set project"),
        (
            "VertexAI",
            ("project: p", "location: global", KEYED),
            "APIKey does not fit a provider of type VertexAI",
        ),
        ("VertexAI", ("project: p", "location: global"), "add it with type GCPServiceAccountKey,"),
    ],
)
def test_a_project_and_a_location_belong_together_and_to_vertex_ai(
    config_directory: ConfigDirectory, kind: str, lines: tuple[str, ...], message: str
) -> None:
    _vertex(config_directory, *lines)
    config_directory.replace("type: VertexAI", f"type: {kind}")
    assert set(config_directory.codes()) <= {"config_provider_project", "config_provider_credentials"}
    assert message in str(config_directory.problems())


@pytest.mark.parametrize(
    ("kind", "lines", "message"),
    [
        ("OpenAI", ("api: Deployments", "apiVersion: 2024-10-21"), "only a provider of type AzureOpenAI"),
        ("AzureOpenAI", ("api: Deployments",), "set apiVersion"),
        ("AzureOpenAI", ("apiVersion: 2024-10-21",), "only api: Deployments has an apiVersion"),
    ],
)
def test_a_version_and_deployments_belong_together_and_to_azure(
    config_directory: ConfigDirectory, kind: str, lines: tuple[str, ...], message: str
) -> None:
    more = "".join(f"\n    {line}" for line in lines).replace("2024-10-21", "'2024-10-21'")
    config_directory.replace("type: OpenAI", f"type: {kind}{more}")
    assert config_directory.codes() == ["config_provider_api"]
    assert message in str(config_directory.problems())


def test_the_tenant_whose_objects_a_provider_keeps_reaches_the_core(
    config_directory: ConfigDirectory,
) -> None:
    assert config_directory.core()["providers"][0]["objectsOf"] is None
    config_directory.replace("type: OpenAI", "type: OpenAI\n    objectsOf: acme")
    assert config_directory.core()["providers"][0]["objectsOf"] == "acme"


@pytest.mark.parametrize(
    ("kind", "tenant", "code", "message"),
    [
        ("Anthropic", "acme", "config_provider_objects", "only a provider of type OpenAI"),
        ("OpenAI", "acmee", "config_unknown_tenant", "did you mean acme?"),
        ("OpenAI", "team/acme", "config_unknown_tenant", "no tenant is named team/acme"),
        ("OpenAI", "a/b/c", "config_invalid_value", "objectsOf"),
    ],
)
def test_a_provider_keeps_objects_of_a_tenant_that_is_there_and_speaks_openais_api(
    config_directory: ConfigDirectory, kind: str, tenant: str, code: str, message: str
) -> None:
    config_directory.replace("type: OpenAI", f"type: {kind}\n    objectsOf: {tenant}")
    assert config_directory.codes() == [code]
    assert message in str(config_directory.problems())


def test_the_objects_of_a_tenant_are_at_one_provider(config_directory: ConfigDirectory) -> None:
    second = "\n  - {name: second, type: OpenAI, baseURL: 'http://127.0.0.1:1/v1', objectsOf: acme}"
    config_directory.replace("providers:", f"providers:{second}")
    config_directory.replace("type: OpenAI\n", "type: OpenAI\n    objectsOf: acme\n")
    assert config_directory.codes() == ["config_provider_objects"]
    assert "the provider second already keeps the objects of acme" in str(config_directory.problems())


def test_no_other_provider_has_credentials_of_aws_or_a_region(config_directory: ConfigDirectory) -> None:
    config_directory.replace(KEYED, "\n    ".join(SIGNED))
    problems = str(config_directory.problems())
    assert "only a provider of type Bedrock has region" in problems
    assert "AWSStaticKeys does not fit a provider of type OpenAI: use APIKey" in problems


def test_a_region_that_is_none_is_refused(config_directory: ConfigDirectory) -> None:
    _bedrock(config_directory, KEYED, "region: US East")
    assert "providers[0].region" in str(config_directory.problems())


def test_a_tenant_whose_file_of_keys_is_gone_has_none(config_directory: ConfigDirectory) -> None:
    config_directory.replace("keyHashesFile: globex-keys", "keyHashesFile: nowhere")
    config = load(config_directory.file)
    assert config.tenant_keys["globex"] == ()
    assert config.tenant_keys["acme"]
    assert [warning.code for warning in config.warnings] == ["config_file_unreadable"]


def test_a_file_of_key_hashes_may_be_empty_when_every_key_is_revoked(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.write("globex-keys", "# none\n")
    assert load(config_directory.file).tenant_keys["globex"] == ()


def test_one_address_for_traffic_and_admin_is_refused(config_directory: ConfigDirectory) -> None:
    config_directory.file.write_text(
        config_directory.file.read_text().replace("127.0.0.1:0", "127.0.0.1:8080")
    )
    assert config_directory.codes() == ["config_same_port"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- a", ":1: expected a mapping"),
        ("listen: a\nlisten: b\n", ":2: the field listen is given twice"),
        ("a: {b: 1, b: 2}", ":1: the field b is given twice"),
        ("a: &x [*x]", ":1: YAML aliases are not supported"),
        ("a: [1\nb: 2", ":2: not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ("a: !!python/object:os.system x", ":1: not valid YAML"),
        ("? [1]\n: 2", ":1: a field name must be plain text"),
        ("a: 0x_", "not valid YAML"),
        ("a: 1\nb: !!int x", "not valid YAML"),
        ('a: 1\nb: "\\ud800"', ":2: unpaired surrogate in an escape"),
        ("a: " + "[" * 5000, "nested too deep"),
    ],
)
def test_a_document_that_is_not_one_plain_mapping_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    with pytest.raises(InvalidConfigError) as caught:
        load(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


README = (Path(__file__).parents[1] / "README.md").read_text()


def fields(section: type[BaseModel], below: str = "") -> Iterator[str]:
    """Yields every field of the configuration in the README's notation, with [] for a list."""
    for field in section.model_fields.values():
        name = below + (field.alias or "") + ("[]" if "tuple[" in str(field.annotation) else "")
        inner = [kind for kind in kinds(field.annotation) if issubclass(kind, BaseModel)]
        yield from fields(inner[0], f"{name}.") if inner else [name]


def kinds(annotation: object) -> list[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        return [annotation]
    return [kind for inner in get_args(annotation) for kind in kinds(inner)]


def test_the_configuration_in_the_readme_is_accepted() -> None:
    example = README.partition("## The configuration")[2].partition("```yaml\n")[2].partition("```")[0]
    assert Settings.model_validate(parse_document(example).data).limits == Limits()


def test_the_readme_describes_every_field_and_no_other() -> None:
    described = re.findall(r"^\| `([A-Za-z0-9.\[\]]+)` \|.*\|.*\|.*\|$", README, re.MULTILINE)
    sections = {"tls", "cors", "jwt", "providers[].auth"}
    assert sorted(set(described) - sections) == sorted(fields(Settings))
    assert len(described) == len(set(described))


def test_a_missing_configuration_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"gateway\.yaml: cannot be read: No such file"):
        load(tmp_path / "gateway.yaml")


@pytest.mark.parametrize("size", [1_048_577, (1 << 30) - 4])
def test_a_segment_size_that_the_log_cannot_have_is_a_problem_of_the_configuration(
    config_directory: ConfigDirectory, size: int
) -> None:
    config_directory.replace("ledger:\n", f"ledger:\n  segmentBytes: {size}\n")
    assert "ledger.segmentBytes: expected a multiple of 8" in str(config_directory.problems())
