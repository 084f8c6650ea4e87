"""Python writes exactly the configuration fields that the core reads."""

from __future__ import annotations

import base64
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

import proofgate_schema
from certificates import write_identity
from conftest import ConfigDirectory
from pydantic import BaseModel

from proofgate import _core

#: Every section, with every optional part.
EVERYTHING = """
ledger:
  name: proofgate.dev/ns/demo
  directory: ledger
  signingKeyFile: signing-key
  payloads: {mode: Stored}
  heldCheckpoints: {directory: held}
  shredKeysDirectory: shred-keys
proxyProtocol: {routingKeyFile: routing-key}
tls: {certificateFile: tls.crt, privateKeyFile: tls.key, clientCaFile: tls.crt, clientNames: [balancer.test]}
cors: {allowedOrigins: ['https://app.example.com']}
providers:
  - name: openai
    type: OpenAI
    baseURL: https://api.openai.com/v1
    auth: {type: APIKey, apiKeyFile: openai-key}
    caFile: tls.crt
    clientCertificateFile: tls.crt
    clientKeyFile: tls.key
    anthropicBetas: [effort]
    headers: [{name: x-team, value: blue}]
    bodyFields: {store: false}
    limits: {requestsPerMinute: 10}
    timeouts: {connectSeconds: 1}
  - name: bedrock
    type: Bedrock
    baseURL: https://bedrock-runtime.eu-central-1.amazonaws.com
    region: eu-central-1
    auth: {type: AWSStaticKeys, accessKeyIdFile: openai-key, secretAccessKeyFile: openai-key}
  - name: vertex
    type: VertexAI
    baseURL: https://aiplatform.googleapis.com
    project: p
    location: global
    auth: {type: GCPServiceAccountKey, serviceAccountKeyFile: account.json}
egress: {allow: [10.0.0.0/8], proxy: {url: 'http://proxy.example.com:3128'}}
models:
  - {name: gpt-4o-mini, provider: openai, fallbacks: [{provider: vertex}]}
  - {name: shared, routes: [{provider: openai}]}
prices:
  - provider: openai
    model: gpt-4o-mini
    effectiveFrom: '2026-01-01'
    perRequest: '0.01'
    tools: {web_search: '0.01'}
    maxInputTokens: 1000000
    maxOutputTokens: 1000
    input: '1'
    cachedInput: '0.5'
    cacheWrite: '1.5'
    cacheWrite1h: '2'
    audioInput: '3'
    output: '4'
    audioOutput: '5'
    above:
      - promptTokens: 200000
        input: '1'
        cachedInput: '0.5'
        cacheWrite: '1.5'
        cacheWrite1h: '2'
        audioInput: '3'
        output: '4'
        audioOutput: '5'
    tiers:
      flex:
        input: '1'
        cachedInput: '0.5'
        cacheWrite: '1.5'
        cacheWrite1h: '2'
        audioInput: '3'
        output: '4'
        audioOutput: '5'
        above: [{promptTokens: 200000, input: '1', output: '4'}]
plans:
  - name: gold
    guardedTools: {names: [Bash]}
    modelBudgets: [{model: gpt-4o-mini, dollarsPerDay: '1'}]
    namespaceLimits: {concurrency: 2}
    policy:
      mode: DryRun
      action: Flag
      actions: [{rules: [pii-phone], action: Ignore}]
      threshold: 100
      flagThreshold: 50
tenants:
  - name: acme
    keys: [{hash: ACME, name: laptop}]
    guardedTools: {names: [Bash]}
    modelBudgets: [{model: gpt-4o-mini, dollarsPerDay: '1'}]
    policy:
      mode: DryRun
      action: Flag
      actions: [{rules: [pii-phone], action: Ignore}]
      threshold: 100
      flagThreshold: 50
jwt: {issuers: [{issuer: other, audiences: [a], jwksURL: 'https://login.example.com/jwks'}]}
policy:
  packs: [pii, prompt-injection]
  action: Flag
  actions: [{rules: [pii-phone], action: Ignore}]
  allow: {values: [test-key]}
  threshold: 100
  rules: [{id: card, reason: It is a card., regex: '[0-9]{16}', check: Luhn}]
policies: [{name: outside, url: 'https://policies.example.com/judge'}]
telemetry: {endpoint: 'https://collector.example.com', traces: {ratio: 0.5}}
analysis: {sample: 1.0}
"""
#: Fields that the core reads but no configuration writes, with the reason.
CORE_ALONE = {
    "limits.descriptors": "tests of the core give it fewer file descriptors than the process has",
    "policy.rules[].extent": "of a pack's rules",
    "policy.rules[].likeness": "of a pack's rules",
    "prices[].above[].above": "a type that tiers share",
    "prices[].default": "of the prices that come with the gateway",
    "prices[].host": "of the prices that come with the gateway",
    "prices[].tiers[].promptTokens": "a type that longer prompts share",
}
#: Values that the core reads but no configuration writes.
CORE_ALONE_WORDS = {
    "Ed25519": "the name of RFC 9864 for what a configuration calls EdDSA",
    "HalfPercent": "of a pack's rules",
    "OnePercent": "of a pack's rules",
    "Match": "of a pack's rules",
    "PrivateKey": "of a pack's rules",
    "Token": "of a pack's rules",
}
#: Objects with arbitrary member names.
FREE_NAMES = ("prices[].tiers", "prices[].tools", "providers[].bodyFields")


def paths(value: Any, here: str = "") -> Iterator[str]:
    """Yields the paths of a document in the core's notation."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if here in FREE_NAMES:
                yield from paths(inner, f"{here}[]")
                continue
            path = f"{here}.{name}" if here else name
            yield path
            yield from paths(inner, path)
    elif isinstance(value, list):
        for element in value:
            yield from paths(element, f"{here}[]")


def written(directory: ConfigDirectory) -> set[str]:
    """The paths that Python writes for `EVERYTHING`."""
    write_identity(directory.path)
    directory.write("routing-key", "0123456789abcdef\n")
    (directory.path / "held").mkdir()
    (directory.path / "shred-keys").mkdir()
    directory.write("shred-keys/acme", f"{base64.b64encode(bytes(range(32))).decode()}\n")
    directory.file.write_text(EVERYTHING.replace("ACME", _core.hash_api_key("acme-key")))
    return set(paths(directory.core()))


def test_the_core_reads_no_field_that_python_does_not_write(config_directory: ConfigDirectory) -> None:
    read = {path for path in _core.config_fields() if "=" not in path}
    assert sorted(read - written(config_directory)) == sorted(CORE_ALONE)


def literals() -> Iterator[str]:
    """Yields every literal value that a configuration may contain."""

    def of(hint: Any) -> Iterator[str]:
        if get_origin(hint) is Literal:
            yield from (value for value in get_args(hint) if isinstance(value, str))
        else:
            for inner in get_args(hint):
                yield from of(inner)

    shared = (f"proofgate_schema.{module.name}" for module in pkgutil.iter_modules(proofgate_schema.__path__))
    for name in (*shared, "proofgate.config.settings"):
        for found in vars(import_module(name)).values():
            yield from of(found)
            if isinstance(found, type) and issubclass(found, BaseModel):
                for field in found.model_fields.values():
                    yield from of(field.annotation)


def test_each_word_of_the_core_is_one_that_a_configuration_can_say() -> None:
    said = set(literals())
    read = {path.partition("=")[2] for path in _core.config_fields() if "=" in path}
    assert read - said == set(CORE_ALONE_WORDS)
