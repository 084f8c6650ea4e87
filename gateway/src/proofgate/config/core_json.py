"""A checked configuration as `_core.Worker` takes it: snake_case JSON, everything inline, small units."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proofgate_schema.providers import ProviderLimits
from proofgate_schema.terms import GuardedTools, ModelBudget, Quota, Terms
from proofgate_schema.timeouts import ProviderTimeouts, Timeouts

from proofgate.config.access import Plan
from proofgate.config.auth import uses_access_token, uses_aws_signature
from proofgate.config.prices import DefaultPrice, default_prices_for, nanodollars, price_documents
from proofgate.limit_kinds import LIMIT_KINDS

if TYPE_CHECKING:
    from proofgate_schema.analysis import Analysis
    from proofgate_schema.models import Model
    from proofgate_schema.payloads import Payloads
    from pydantic import SecretStr

    from proofgate.config.checked import CheckedConfig
    from proofgate.config.key_digests import KeyDigest
    from proofgate.config.settings import Provider, Settings
    from proofgate.config.telemetry import Telemetry

Json = dict[str, Any]

#: Values whose words a change of case alone does not give.
_WORDS = {
    "OpenAI": "openai",
    "AzureOpenAI": "azure_openai",
    "VertexAI": "vertex_ai",
    "ChatCompletions": "chat.completions",
    "GenerateContent": "generate.content",
    "EmbedContent": "embed.content",
    "ImagesGenerations": "images.generations",
    "AudioSpeech": "audio.speech",
    "AudioTranscriptions": "audio.transcriptions",
    "AudioTranslations": "audio.translations",
    "ImageEdits": "images.edits",
    "ImageVariations": "images.variations",
    "Files": "files",
    "Batches": "batches",
}


def worker_json(config: CheckedConfig, shard: int, profile_stages: bool) -> str:
    """The whole configuration, secrets included. Never log it."""
    document = _public(config)
    document["config_digest"] = public_digest(config)
    document["profile_stages"] = profile_stages
    folder = config.shred_keys_directory
    document["shred_keys"] = None if folder is None else str(folder.absolute())
    document["ledger"] |= {"shard": shard, "signing_key": config.signing_key.get_secret_value()}
    for provider in document["providers"]:
        name = provider["name"]
        aws, shown = config.aws_credentials.get(name), config.client_identities.get(name)
        provider["api_key"] = _reveal(config.provider_keys.get(name))
        provider["key_missing"] = any(
            wanted.get(name, ...) is None
            for wanted in (
                config.provider_keys,
                config.aws_credentials,
                config.service_accounts,
                config.provider_cas,
                config.client_identities,
                config.provider_headers,
            )
        ) or (provider["proxied"] and config.proxy is not None and not config.proxy.is_usable)
        provider["client_key_pem"] = None if shown is None else _reveal(shown.private_key_pem)
        for header, value in zip(provider["headers"], config.provider_headers.get(name) or (), strict=False):
            header["value"] = value.get_secret_value()
        if aws is not None:
            provider["aws"]["keys"] = {
                "access_key_id": _reveal(aws.access_key_id),
                "secret_access_key": _reveal(aws.secret_access_key),
                "session_token": _reveal(aws.session_token),
            }
    if config.proxy is not None:
        document["egress_proxy"]["authorization"] = _reveal(config.proxy.authorization)
    if config.routing_key is not None:
        document["proxy_protocol"] = {"routing_key": config.routing_key.get_secret_value()}
    if config.identity is not None:
        document["tls"]["private_key_pem"] = config.identity.private_key_pem.get_secret_value()
    return json.dumps(document, ensure_ascii=False)


def public_digest(config: CheckedConfig) -> str:
    """SHA-256 of `public_json`: the same on every shard with the same files."""
    return hashlib.sha256(public_json(config)).hexdigest()


def public_json(config: CheckedConfig) -> bytes:
    """Everything that is no secret, as JSON of one form; of the keys of each tenant, one digest of theirs."""
    settings = config.settings
    document = _public(config)
    for tenant in document["tenants"]:
        tenant["keys"] = hashlib.sha256(_canonical(tenant["keys"])).hexdigest()
    # What the core is not told, because Python acts on it.
    document["key_sets"] = [
        [issuer.issuer, issuer.jwks_url, config.key_sets.get(issuer.issuer), issuer.refresh_seconds]
        for issuer in config.issuers
    ]
    if settings.egress is not None and settings.egress.proxy is not None:
        document["no_proxy"] = list(settings.egress.proxy.no_proxy)
    return _canonical(document)


def _canonical(document: Json | list[Json]) -> bytes:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _public(config: CheckedConfig) -> Json:
    settings, limits = config.settings, config.settings.limits
    return {
        "ledger": {
            "name": settings.ledger.name,
            "directory": str(config.ledger_directory),
            "durability": word(settings.ledger.durability),
            "checkpoint_interval_ms": _milliseconds(settings.ledger.checkpoint_interval_seconds),
            "segment_bytes": settings.ledger.segment_bytes,
            "log_bytes": settings.ledger.rotation.bytes,
            "log_age_ms": _milliseconds(settings.ledger.rotation.seconds),
            "payloads": None
            if settings.ledger.payloads is None
            else {"budget_bytes": settings.ledger.payloads.budget_bytes},
            "held_checkpoints": _held_checkpoints(config),
        },
        "personal_data": {
            "client_address": settings.ledger.record_client_address,
            "end_user": settings.ledger.record_end_user,
        },
        "listen": settings.listen,
        "proxy_protocol": None if settings.proxy_protocol is None else {},
        "tls": _tls(config),
        "cors": None
        if settings.cors is None
        else {
            "allowed_origins": list(settings.cors.allowed_origins),
            "max_age_seconds": settings.cors.max_age_seconds,
        },
        "providers": [_provider(config, provider) for provider in settings.providers],
        "egress_allow": None
        if settings.egress is None or settings.egress.allow is None
        else list(settings.egress.allow),
        "egress_proxy": None
        if config.proxy is None
        else {"host": config.proxy.host, "port": config.proxy.port},
        "models": [
            {
                "name": model.name,
                "targets": targets_of(model),
                "fall_back_on": [word(reason) for reason in model.fallback_on],
                "max_output_tokens": model.max_output_tokens,
            }
            for model in settings.models
        ],
        "prices": prices_of(settings),
        "plans": [_named_plan(plan, settings.ledger.payloads) for plan in settings.plans],
        "tenants": _tenants(config),
        "tenant_shards": settings.tenant_shards is not None,
        "shred_keys": settings.ledger.shred_keys_directory is not None,
        "jwt": _jwt(config),
        "policy": settings.policy.to_document(),
        "policies": [
            {
                "name": hook.name,
                "revision": hook.revision(),
                "deadline_ms": hook.deadline_milliseconds,
                "on_failure": word(hook.on_failure),
            }
            for hook in settings.policies
        ],
        "timeouts": _in_milliseconds(settings.timeouts),
        "limits": {
            "head_bytes": limits.head_bytes,
            "body_bytes": limits.body_bytes,
            "upload_bytes": limits.upload_bytes,
            "connections": limits.connections,
            "buffered_bytes": limits.buffered_bytes,
        },
        "metrics": {"label_sets": settings.metrics.label_sets},
        "telemetry": _telemetry(settings.telemetry),
        "analysis": _analysis(settings.analysis),
        "profile_stages": settings.profiling.stages,
    }


def _provider(config: CheckedConfig, provider: Provider) -> Json:
    limits = provider.limits or ProviderLimits()
    return {
        "name": provider.name,
        "type": word(provider.type),
        "base_url": provider.base_url,
        "ca_pem": config.provider_cas.get(provider.name),
        "client_certificate_pem": _client_certificate(config, provider.name),
        "arn_in_path": word(provider.arn_in_path),
        "azure_api_version": provider.api_version,
        "stream_usage": word(provider.stream_usage),
        "responses": word(provider.responses),
        "untranslatable": word(provider.untranslatable_fields),
        "objects_of": provider.objects_of,
        "max_concurrency": provider.max_concurrent_requests,
        "min_idle": provider.min_idle_connections,
        "http": word(provider.http),
        "rate": {
            "requests_per_minute": limits.requests_per_minute,
            "tokens_per_minute": limits.tokens_per_minute,
        },
        "timeouts": _in_milliseconds(provider.timeouts or ProviderTimeouts()),
        "betas": None if provider.anthropic_betas is None else list(provider.anthropic_betas),
        "vertex": None
        if provider.type != "VertexAI"
        else {"project": provider.project, "location": provider.location},
        "aws": {"region": provider.region, "keys": None} if uses_aws_signature(provider.auth) else None,
        "access_token": uses_access_token(provider.auth),
        "headers": [
            {"name": header.name, "value": header.value, "secret": header.value is None}
            for header in provider.headers
        ],
        "body_fields": [
            {"name": name, "value": json.dumps(value, ensure_ascii=False, separators=(",", ":"))}
            for name, value in (provider.body_fields or {}).items()
        ],
        "proxied": config.proxy is not None and config.proxy.applies_to(provider.base_url),
    }


def _analysis(analysis: Analysis | None) -> Json | None:
    if analysis is None:
        return None
    return {
        "sample": analysis.sample,
        "tenants": list(analysis.tenants),
        "models": list(analysis.models),
        "window": analysis.window,
        "false_alarms": analysis.false_alarms,
        "top_logprobs": analysis.top_logprobs,
        "vocabulary": analysis.vocabulary,
        "repetition": analysis.repetition,
        "answer_bytes": analysis.max_answer_bytes,
        "copy_bytes": analysis.max_copy_bytes,
        "pairs": analysis.max_pairs,
    }


def _telemetry(telemetry: Telemetry) -> Json:
    traces = telemetry.traces
    return {
        "access_log": word(telemetry.access_log),
        "traces": None if traces is None else {"ratio": traces.ratio, "propagate": traces.propagate},
    }


def _held_checkpoints(config: CheckedConfig) -> Json | None:
    held = config.settings.ledger.held_checkpoints
    if held is None:
        return None
    return {"directory": str(config.held_checkpoints), "by": word(held.kept_by)}


def _client_certificate(config: CheckedConfig, provider: str) -> str | None:
    shown = config.client_identities.get(provider)
    return None if shown is None else shown.certificate_pem


def _tls(config: CheckedConfig) -> Json | None:
    tls = config.settings.tls
    if tls is None or config.identity is None:
        return None
    return {
        "certificate_pem": config.identity.certificate_pem,
        "min_version": tls.min_version,
        "client_ca_pem": config.client_authorities,
        "client_names": list(tls.client_names),
        "accept_plain": tls.accept_plain,
    }


def _tenants(config: CheckedConfig) -> list[Json]:
    plans = {plan.name: plan for plan in config.settings.plans}
    return [
        {
            "name": tenant.name,
            "keys": [_key(key) for key in config.tenant_keys[tenant.name]],
            **_terms(plans.get(tenant.plan or "", tenant), config.settings.ledger.payloads),
        }
        for tenant in config.settings.tenants
    ]


def _key(key: KeyDigest) -> Json:
    # A key without a name has the form from before there were names, so that digests of configurations stay.
    named = {} if key.name is None else {"name": key.name}
    return {"hash": key.hash, "expires_at": key.expires_at, **named}


def prices_of(settings: Settings) -> list[Json]:
    """The prices of a configuration, and those that come with the gateway that its models may have."""
    defaults: list[DefaultPrice] = []
    if settings.default_prices:
        hosts = {provider.name: urlsplit(provider.base_url).hostname or "" for provider in settings.providers}
        targets = (target for model in settings.models for target in targets_of(model))
        defaults = default_prices_for(
            (hosts.get(target["provider"], ""), target["upstream_model"]) for target in targets
        )
    return price_documents(settings.prices, defaults)


def targets_of(model: Model) -> list[Json]:
    """The providers of a model with their shares; those of 0 are for what failed elsewhere."""
    targets = [(route.provider, route.upstream_model, route.weight) for route in model.routes]
    if model.provider is not None:
        targets.append((model.provider, model.upstream_model, 1))
    targets += [(route.provider, route.upstream_model, 0) for route in model.fallbacks]
    return [
        {"provider": provider, "upstream_model": name or model.name, "weight": weight}
        for provider, name, weight in targets
    ]


def _terms(plan: Terms, payloads: Payloads | None) -> Json:
    return {
        "models": None if plan.models is None else list(plan.models),
        "endpoints": None if plan.endpoints is None else [word(name) for name in plan.endpoints],
        "hosted_tools": list(plan.hosted_tools.allow),
        "tool_calls": {"most": plan.hosted_tools.max_calls, "tokens": plan.hosted_tools.tokens_per_call},
        "denied_betas": list(plan.denied_betas),
        # Terms that guard nothing have the digest that they have had.
        **({} if plan.guarded_tools is None else {"guarded_tools": _guarded_tools(plan.guarded_tools)}),
        "limits": _quota(plan.limits),
        "key_limits": _quota(plan.key_limits),
        "model_budgets": [{"model": budget.model, **_quota(budget)} for budget in plan.model_budgets],
        "wait_ms": _milliseconds(plan.wait_seconds),
        "policy": None if plan.policy is None else plan.policy.to_document(),
        "policies": list(plan.policies),
        "payload_bytes": _payload_bytes(plan, payloads),
    }


def _guarded_tools(guarded: GuardedTools) -> Json:
    return {"names": list(guarded.names), "on_flag": word(guarded.on_flag)}


def _named_plan(plan: Plan, payloads: Payloads | None) -> Json:
    shared = _quota(plan.namespace_limits)
    named = {"name": plan.name, **_terms(plan, payloads)}
    # A plan whose tenants share nothing has the digest that it has had.
    return {**named, "namespace_limits": shared} if any(shared.values()) else named


def _payload_bytes(plan: Terms, payloads: Payloads | None) -> int | None:
    if payloads is None or (plan.payloads or payloads.mode) == "Committed":
        return None
    return payloads.max_bytes


def _jwt(config: CheckedConfig) -> list[Json]:
    return [
        {
            "issuer": issuer.issuer,
            "audiences": list(issuer.audiences),
            "algorithms": list(issuer.algorithms),
            "tenant_claim": issuer.tenant_claim,
            "leeway_seconds": issuer.leeway_seconds,
        }
        for issuer in config.issuers
    ]


def _in_milliseconds(timeouts: Timeouts | ProviderTimeouts) -> Json:
    """Every field of a section in milliseconds, 0 for what is not set."""
    seconds = timeouts.model_dump()
    return {
        name.removesuffix("_seconds") + "_ms": _milliseconds(value or 0) for name, value in seconds.items()
    }


def _quota(quota: Quota | ModelBudget) -> Json:
    """Every limit that a section has; null is none."""
    kinds = [kind for kind in LIMIT_KINDS if kind.name in type(quota).model_fields]
    limits = [(kind, getattr(quota, kind.name)) for kind in kinds]
    return {
        kind.field: nanodollars(limit) if kind.is_money and limit is not None else limit
        for kind, limit in limits
    }


def word(value: str) -> str:
    """A value of an enumeration as the core and the records spell it."""
    return _WORDS.get(value) or re.sub("(?<=[a-z])(?=[A-Z])", "_", value).lower()


def _reveal(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
