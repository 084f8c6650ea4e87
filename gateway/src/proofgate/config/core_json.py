"""A checked configuration as JSON for `_core.Worker` and for the archive.

The JSON has the sections, names, values and units of the configuration file, with every default. File names
are replaced by the files' contents. Fields that only Python uses are omitted, and values that Python resolves
from several fields are added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proofgate_schema.external_policies import ExternalPolicy
from proofgate_schema.terms import Terms

from proofgate.archive import FORMAT
from proofgate.config.auth import Auth
from proofgate.config.prices import DefaultPrice, default_prices_for, price_documents
from proofgate.config.telemetry import Telemetry

if TYPE_CHECKING:
    from proofgate_schema.models import Model
    from pydantic import SecretStr

    from proofgate.config.checked_config import CheckedConfig
    from proofgate.config.settings import Settings

Json = dict[str, Any]


def _all_but(fields: Iterable[str], *kept: str) -> set[str]:
    return set(fields) - set(kept)


#: Fields that the core does not use, names of files, and sections that are written differently below.
_LEFT_OUT: Json = {
    "admin": True,
    "ledger": {"signing_key_file"},
    "proxy_protocol": {"routing_key_file"},
    "tls": {"certificate_file", "private_key_file", "client_ca_file"},
    "providers": {
        "__all__": {
            "auth": _all_but(Auth.model_fields, "type"),
            "api": True,
            "ca_file": True,
            "client_certificate_file": True,
            "client_key_file": True,
            "headers": {"__all__": {"value_file"}},
        }
    },
    "egress": {"proxy": {"username_file", "password_file", "no_proxy"}},
    "prices": True,
    "default_prices": True,
    "plans": True,
    "tenants": True,
    "tenant_shards": {"directory"},
    "jwt": {"issuers": {"__all__": {"jwks_url", "jwks_file", "refresh_seconds"}}},
    "policies": {
        "__all__": _all_but(ExternalPolicy.model_fields, "name", "deadline_milliseconds", "on_failure")
    },
    "telemetry": _all_but(Telemetry.model_fields, "access_log", "traces"),
}


def worker_json(config: CheckedConfig, shard: int, profile_stages: bool) -> str:
    """The whole configuration, secrets included. Never log it."""
    document = _public(config)
    document["configDigest"] = public_digest(config)
    document["profiling"]["stages"] = profile_stages
    ledger = document["ledger"]
    ledger |= {"shard": shard, "signingKey": config.signing_key.get_secret_value()}
    if config.shred_keys_directory is not None:
        ledger["shredKeysDirectory"] = str(config.shred_keys_directory.absolute())
    for provider in document["providers"]:
        _add_secrets(provider, config)
    if config.proxy is not None:
        document["egress"]["proxy"]["authorization"] = _reveal(config.proxy.authorization)
    if config.routing_key is not None:
        document["proxyProtocol"] = {"routingKey": config.routing_key.get_secret_value()}
    if config.identity is not None:
        document["tls"]["privateKeyPem"] = config.identity.private_key_pem.get_secret_value()
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def public_digest(config: CheckedConfig) -> str:
    """SHA-256 of `public_json`: the same on every shard with the same files."""
    return hashlib.sha256(public_json(config)).hexdigest()


def public_json(config: CheckedConfig) -> bytes:
    """Everything that is not secret, as canonical JSON. The keys of each tenant are replaced by one
    digest."""
    settings = config.settings
    document = _public(config)
    document["format"] = FORMAT
    for tenant in document["tenants"]:
        tenant["keys"] = hashlib.sha256(_canonical(tenant["keys"])).hexdigest()
    # Fields that only Python uses.
    document["keySets"] = [
        [issuer.issuer, issuer.jwks_url, config.key_sets.get(issuer.issuer), issuer.refresh_seconds]
        for issuer in config.issuers
    ]
    if settings.egress is not None and settings.egress.proxy is not None:
        document["noProxy"] = list(settings.egress.proxy.no_proxy)
    return _canonical(document)


def _canonical(document: Json | list[Json]) -> bytes:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _public(config: CheckedConfig) -> Json:
    settings = config.settings
    document = settings.model_dump(mode="json", by_alias=True, exclude=_LEFT_OUT)
    ledger = document["ledger"]
    ledger["directory"] = str(config.ledger_directory)
    if ledger["heldCheckpoints"] is not None:
        ledger["heldCheckpoints"]["directory"] = str(config.held_checkpoints)
    if config.identity is None:
        document["tls"] = None
    else:
        document["tls"] |= {
            "certificatePem": config.identity.certificate_pem,
            "clientCaPem": config.client_authorities,
        }
    for provider in document["providers"]:
        shown = config.client_identities.get(provider["name"])
        provider["caPem"] = config.provider_cas.get(provider["name"])
        provider["clientCertificatePem"] = None if shown is None else shown.certificate_pem
        provider["proxied"] = config.proxy is not None and config.proxy.applies_to(provider["baseURL"])
        for header in provider["headers"]:
            header["secret"] = header["value"] is None
    for hook, told in zip(settings.policies, document["policies"], strict=True):
        told["revision"] = hook.revision()
    document["prices"] = prices_of(settings)
    document["plans"] = [
        {
            "name": plan.name,
            "namespaceLimits": plan.namespace_limits.model_dump(mode="json", by_alias=True),
            **_terms(plan),
        }
        for plan in settings.plans
    ]
    document["tenants"] = _tenants(config)
    return document


def _tenants(config: CheckedConfig) -> list[Json]:
    plans = {plan.name: plan for plan in config.settings.plans}
    return [
        {
            "name": tenant.name,
            "keys": [
                {"hash": key.hash, "expiresAt": key.expires_at, "name": key.name}
                for key in config.tenant_keys[tenant.name]
            ],
            **_terms(plans.get(tenant.plan or "", tenant)),
        }
        for tenant in config.settings.tenants
    ]


def _terms(terms: Terms) -> Json:
    fields: Json = terms.model_dump(mode="json", by_alias=True, include=set(Terms.model_fields))
    return fields


def _add_secrets(provider: Json, config: CheckedConfig) -> None:
    """Adds the contents of files to a provider's section, and whether any content is missing."""
    name = provider["name"]
    aws, shown = config.aws_credentials.get(name), config.client_identities.get(name)
    wanted = (
        config.provider_keys,
        config.aws_credentials,
        config.service_accounts,
        config.provider_cas,
        config.client_identities,
        config.provider_headers,
    )
    is_stopped = provider["proxied"] and config.proxy is not None and not config.proxy.is_usable
    provider["keyMissing"] = is_stopped or any(found.get(name, ...) is None for found in wanted)
    provider["apiKey"] = _reveal(config.provider_keys.get(name))
    provider["clientKeyPem"] = None if shown is None else _reveal(shown.private_key_pem)
    for header, value in zip(provider["headers"], config.provider_headers.get(name) or (), strict=False):
        header["value"] = value.get_secret_value()
    if aws is not None:
        provider["awsKeys"] = {
            "accessKeyId": _reveal(aws.access_key_id),
            "secretAccessKey": _reveal(aws.secret_access_key),
            "sessionToken": _reveal(aws.session_token),
        }


def prices_of(settings: Settings) -> list[Json]:
    """The prices of a configuration, and the gateway's built-in prices that may apply to its models."""
    defaults: list[DefaultPrice] = []
    if settings.default_prices:
        hosts = {provider.name: urlsplit(provider.base_url).hostname or "" for provider in settings.providers}
        targets = (target for model in settings.models for target in targets_of(model))
        defaults = default_prices_for((hosts.get(provider, ""), upstream) for provider, upstream in targets)
    return price_documents(settings.prices, defaults)


def targets_of(model: Model) -> list[tuple[str, str]]:
    """The providers of a model, each with the model's name at this provider, in the core's order."""
    targets = [(route.provider, route.upstream_model) for route in model.routes]
    if model.provider is not None:
        targets.append((model.provider, model.upstream_model))
    targets += [(route.provider, route.upstream_model) for route in model.fallbacks]
    return [(provider, name or model.name) for provider, name in targets]


def _reveal(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
