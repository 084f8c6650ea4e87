"""Checks across settings: unique names, existing references, consistent fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from proofgate_schema.models import Model
from proofgate_schema.terms import Terms
from proofgate_schema.urls import is_loopback

from proofgate.address import split_address
from proofgate.config.auth import check_auth, uses_aws_signature
from proofgate.config.problems import Findings, did_you_mean, report_duplicates
from proofgate.config.settings import Settings
from proofgate.config.telemetry import check_telemetry


def check_references(settings: Settings, findings: Findings) -> None:
    """Reports every duplicate or unknown name, and every pair of contradicting fields."""
    _check_names(settings, findings)
    _check_credentials(settings, findings)
    _check_deployments(settings, findings)
    _check_projects(settings, findings)
    _check_objects(settings, findings)
    _check_models(settings, findings)
    _check_prices(settings, findings)
    _check_plans(settings, findings)
    _check_policies(settings, findings)
    _check_payloads(settings, findings)
    _check_ports(settings, findings)
    _check_issuers(settings, findings)
    _check_headers(settings, findings)
    _check_proxy(settings, findings)
    check_telemetry(settings.telemetry, findings)
    if settings.limits.buffered_bytes < 4 * settings.limits.body_bytes:
        message = (
            "bufferedBytes is less than four times bodyBytes: the buffer might never have space for "
            "a body of that size"
        )
        findings.report("config_small_buffer", ("limits", "bufferedBytes"), message)


def unknown_name_message(kind: str, name: str, known: Iterable[str], otherwise: str) -> str:
    """Returns the message about a name that does not exist."""
    close = did_you_mean(name, known)
    return f"no {kind} is named {name}: " + (f"did you mean {close}?" if close else otherwise)


def _check_payloads(settings: Settings, findings: Findings) -> None:
    payloads = settings.ledger.payloads
    asking = [
        (field, position, "payloads")
        for field, plans in (("plans", settings.plans), ("tenants", settings.tenants))
        for position, plan in enumerate(plans)
        if plan.payloads == "Stored"
    ]
    if payloads is None:
        for path in asking:
            message = "set ledger.payloads: without that section nothing is stored"
            findings.report("config_payloads", path, message)
    elif (asking or payloads.mode == "Stored") and settings.ledger.shred_keys_directory is None:
        message = "set ledger.shredKeysDirectory: stored bodies are encrypted with keys from this directory"
        findings.report("config_payloads", ("ledger", "payloads"), message)


def _check_names(settings: Settings, findings: Findings) -> None:
    report_duplicates((entry.name for entry in settings.providers), ("providers",), "name", findings)
    report_duplicates((entry.name for entry in settings.models), ("models",), "name", findings)
    report_duplicates((entry.name for entry in settings.plans), ("plans",), "name", findings)
    report_duplicates((entry.name for entry in settings.tenants), ("tenants",), "name", findings)


def _upstream_models(model: Model) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The names of a model at its providers, each with the path of its field."""
    yield ("upstreamModel",), model.upstream_model or ""
    for field, routes in (("routes", model.routes), ("fallbacks", model.fallbacks)):
        for place, route in enumerate(routes):
            yield (field, place, "upstreamModel"), route.upstream_model or ""


def _providers_of(model: Model) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The providers that a model names, each with the path of its field."""
    if model.provider is not None:
        yield ("provider",), model.provider
    for field, routes in (("routes", model.routes), ("fallbacks", model.fallbacks)):
        for place, route in enumerate(routes):
            yield (field, place, "provider"), route.provider


def _check_credentials(settings: Settings, findings: Findings) -> None:
    for position, provider in enumerate(settings.providers):
        path = ("providers", position)
        check_auth(provider.auth, provider.type, (*path, "auth"), findings)
        if provider.type != "Bedrock" and provider.region is not None:
            message = "only a provider of type Bedrock has region: remove it, or change the type"
            findings.report("config_provider_credentials", (*path, "region"), message)
        elif provider.type == "Bedrock" and uses_aws_signature(provider.auth) and provider.region is None:
            message = "set region: a request is signed for one region"
            findings.report("config_provider_credentials", path, message)


def _check_projects(settings: Settings, findings: Findings) -> None:
    for position, provider in enumerate(settings.providers):
        path = ("providers", position)
        for field, value in (("project", provider.project), ("location", provider.location)):
            if provider.type == "VertexAI" and value is None:
                message = f"set {field}: a provider of type VertexAI needs project and location"
                findings.report("config_provider_project", (*path, field), message)
            elif provider.type != "VertexAI" and value is not None:
                message = f"only a provider of type VertexAI has {field}: remove it, or change the type"
                findings.report("config_provider_project", (*path, field), message)


def _check_deployments(settings: Settings, findings: Findings) -> None:
    for position, provider in enumerate(settings.providers):
        path = ("providers", position)
        if provider.api == "Deployments" and provider.type != "AzureOpenAI":
            message = "only a provider of type AzureOpenAI has deployments: remove it, or change the type"
            findings.report("config_provider_api", (*path, "api"), message)
        elif provider.api == "Deployments" and provider.api_version is None:
            message = "set apiVersion: a request to a deployment needs an API version, for example 2024-10-21"
            findings.report("config_provider_api", path, message)
        elif provider.api == "V1" and provider.api_version is not None:
            message = "only api: Deployments has an apiVersion: remove it, or set api: Deployments"
            findings.report("config_provider_api", (*path, "apiVersion"), message)


def _check_objects(settings: Settings, findings: Findings) -> None:
    tenants = {tenant.name for tenant in settings.tenants}
    object_providers: dict[str, str] = {}
    for position, provider in enumerate(settings.providers):
        path, tenant = ("providers", position, "objectsOf"), provider.objects_of
        if tenant is None:
            continue
        if provider.type not in ("OpenAI", "AzureOpenAI") or provider.api != "V1":
            message = (
                "only a provider of type OpenAI, or AzureOpenAI with api: V1, keeps files and batches:"
                " remove it"
            )
            findings.report("config_provider_objects", path, message)
        if tenant in object_providers:
            message = (
                f"the provider {object_providers[tenant]} already keeps the objects of {tenant}: "
                "remove objectsOf from one of the two providers"
            )
            findings.report("config_provider_objects", path, message)
        object_providers.setdefault(tenant, provider.name)
        # A tenant in a shard may be added later.
        is_of_shards = "/" in tenant and settings.tenant_shards is not None
        if tenant not in tenants and not is_of_shards:
            message = unknown_name_message("tenant", tenant, tenants, "define it under tenants")
            findings.report("config_unknown_tenant", path, message)


def _check_models(settings: Settings, findings: Findings) -> None:
    providers = {provider.name for provider in settings.providers}
    models = {model.name for model in settings.models}
    for position, model in enumerate(settings.models):
        if (model.provider is None) == (not model.routes):
            message = "set provider, or set routes to several providers"
            findings.report("config_no_provider", ("models", position), message)
        if model.routes and model.upstream_model is not None:
            message = "each route has its own upstreamModel: move it there"
            findings.report("config_two_names", ("models", position, "upstreamModel"), message)
        if not model.name.endswith("*"):
            for where_named, name in _upstream_models(model):
                if "*" in name:
                    message = "'*' is allowed here only if the model's name ends with '*'"
                    findings.report("config_no_wildcard", ("models", position, *where_named), message)
        for where_named, name in _providers_of(model):
            if name not in providers:
                message = unknown_name_message("provider", name, providers, "define it under providers")
                findings.report("config_unknown_provider", ("models", position, *where_named), message)
    terms: dict[str, tuple[Terms, ...]] = {"plans": settings.plans, "tenants": settings.tenants}
    for where, entries in terms.items():
        for position, entry in enumerate(entries):
            for place, name in enumerate(entry.models or ()):
                if name not in models:
                    message = unknown_name_message("model", name, models, "define it under models")
                    findings.report("config_unknown_model", (where, position, "models", place), message)
            budgets = (where, position, "modelBudgets")
            report_duplicates((budget.model for budget in entry.model_budgets), budgets, "model", findings)
            for place, budget in enumerate(entry.model_budgets):
                if budget.model not in models:
                    message = unknown_name_message("model", budget.model, models, "define it under models")
                    findings.report("config_unknown_model", (*budgets, place, "model"), message)


def _check_prices(settings: Settings, findings: Findings) -> None:
    providers = {provider.name for provider in settings.providers}
    seen = set()
    for position, price in enumerate(settings.prices):
        if price.provider is not None and price.provider not in providers:
            message = unknown_name_message("provider", price.provider, providers, "define it under providers")
            findings.report("config_unknown_provider", ("prices", position, "provider"), message)
        named = (price.provider, price.model, price.effective_from)
        if named in seen:
            message = f"{price.model} already has a price for this provider and day: remove one"
            findings.report("config_duplicate_price", ("prices", position), message)
        seen.add(named)


def _check_plans(settings: Settings, findings: Findings) -> None:
    if not settings.tenants and settings.tenant_shards is None:
        message = "no client could send requests: list at least one tenant, or set tenantShards"
        findings.report("config_no_tenants", ("tenants",), message)
    plans = {plan.name for plan in settings.plans}
    for position, tenant in enumerate(settings.tenants):
        path = ("tenants", position, "plan")
        if tenant.plan is None:
            continue
        if tenant.plan not in plans:
            message = unknown_name_message("plan", tenant.plan, plans, "define it under plans")
            findings.report("config_unknown_plan", path, message)
        if tenant.has_own_terms:
            message = (
                "a tenant with a plan cannot set the fields of a plan itself: remove these "
                "fields, or the plan"
            )
            findings.report("config_two_plans", path, message)


def _check_policies(settings: Settings, findings: Findings) -> None:
    names = [policy.name for policy in settings.policies]
    report_duplicates(names, ("policies",), "name", findings)
    for position, policy in enumerate(settings.policies):
        url = urlsplit(policy.url or "")
        if (policy.factory is None) == (policy.url is None):
            message = "set exactly one of factory and url"
            findings.report("config_policy_source", ("policies", position), message)
        if policy.url is not None and policy.parameters:
            message = "a policy with url does not accept parameters: remove them"
            findings.report("config_policy_source", ("policies", position, "parameters"), message)
        if policy.ca_file is not None and url.scheme != "https":
            message = "this field needs a url with https: remove the field, or use https"
            findings.report("config_policy_source", ("policies", position, "caFile"), message)
        if policy.token_file is not None and url.scheme != "https" and not is_loopback(url.hostname or ""):
            message = "the token would be sent unencrypted: use a url with https"
            findings.report("config_policy_source", ("policies", position, "tokenFile"), message)
    terms: dict[str, tuple[Terms, ...]] = {"plans": settings.plans, "tenants": settings.tenants}
    for where, entries in terms.items():
        for position, entry in enumerate(entries):
            for place, name in enumerate(entry.policies):
                if name not in names:
                    message = unknown_name_message("policy", name, names, "define it under policies")
                    findings.report("config_unknown_policy", (where, position, "policies", place), message)


def _check_ports(settings: Settings, findings: Findings) -> None:
    traffic, admin = split_address(settings.listen), split_address(settings.admin.listen)
    if traffic == admin and traffic[1] != 0:
        message = "the admin port must not be the traffic port: choose another port"
        findings.report("config_same_port", ("admin", "listen"), message)


def _check_issuers(settings: Settings, findings: Findings) -> None:
    issuers = settings.jwt.issuers if settings.jwt else ()
    report_duplicates((entry.issuer for entry in issuers), ("jwt", "issuers"), "issuer", findings)
    for position, issuer in enumerate(issuers):
        if (issuer.jwks_url is None) == (issuer.jwks_file is None):
            message = "set exactly one of jwksURL and jwksFile"
            findings.report("config_key_set_source", ("jwt", "issuers", position), message)


def _check_proxy(settings: Settings, findings: Findings) -> None:
    proxy = settings.egress.proxy if settings.egress else None
    if proxy is None:
        return
    fields = {"usernameFile": proxy.username_file, "passwordFile": proxy.password_file}
    missing = [name for name, value in fields.items() if value is None]
    if len(missing) == 1:
        message = f"set {missing[0]}: a user name and its password must be set together"
        findings.report("config_proxy_credentials", ("egress", "proxy"), message)


def _check_headers(settings: Settings, findings: Findings) -> None:
    for position, provider in enumerate(settings.providers):
        path = ("providers", position, "headers")
        names = [header.name.lower() for header in provider.headers]
        report_duplicates(names, path, "name", findings)
        for place, header in enumerate(provider.headers):
            if (header.value is None) == (header.value_file is None):
                message = "set exactly one of value and valueFile"
                findings.report("config_provider_headers", (*path, place), message)
