"""Warnings about budgets in money whose models have no price: each request to such a model would be
refused."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from proofgate_schema.models import Model
from proofgate_schema.prices import Price

from proofgate.config.access import Plan, Tenant
from proofgate.config.core_json import targets_of
from proofgate.config.document import FieldPath
from proofgate.config.prices import default_prices_for
from proofgate.config.problems import Findings, Problem, with_line
from proofgate.config.settings import Settings

BUDGET_WITHOUT_PRICE = "config_budget_without_price"


def check_budgets(settings: Settings, findings: Findings) -> None:
    """Warns about each model that a budget in money counts but that has no price at one of its providers."""
    unpriced = {
        model.name: missing for model in settings.models if (missing := _unpriced_target(settings, model))
    }
    if not unpriced:
        return
    for path, plan in _plans(settings):
        for name in sorted(_budgeted_models(settings, plan) & unpriced.keys()):
            provider, upstream_model = unpriced[name]
            message = (
                f"{plan.name} has a budget in money, but the model {name} has no price at "
                f"provider {provider}, where its name is {upstream_model}: requests for this "
                "model are refused (price_unknown). Add the model to prices, set defaultPrices, "
                "or remove the model from models"
            )
            findings.warnings.append(
                with_line(findings.document, Problem(BUDGET_WITHOUT_PRICE, path, message))
            )


def _plans(settings: Settings) -> Iterator[tuple[FieldPath, Plan | Tenant]]:
    for position, plan in enumerate(settings.plans):
        yield ("plans", position), plan
    for position, tenant in enumerate(settings.tenants):
        if tenant.plan is None:
            yield ("tenants", position), tenant


def _budgeted_models(settings: Settings, plan: Plan | Tenant) -> set[str]:
    """The models whose cost counts against a budget of the plan."""
    quotas = [plan.limits, plan.key_limits]
    if isinstance(plan, Plan):
        quotas.append(plan.namespace_limits)
    if any(quota.has_budget for quota in quotas):
        return set(plan.models if plan.models is not None else (model.name for model in settings.models))
    return {budget.model for budget in plan.model_budgets}


def _unpriced_target(settings: Settings, model: Model) -> tuple[str, str] | None:
    """The first provider at which the model has no price, and the model's name at it; None if all have
    prices."""
    hosts = {provider.name: urlsplit(provider.base_url).hostname or "" for provider in settings.providers}
    for provider, name in targets_of(model):
        if any(price.provider in (None, provider) and _may_match(price, name) for price in settings.prices):
            continue
        if settings.default_prices and default_prices_for([(hosts.get(provider, ""), name)]):
            continue
        return provider, name
    return None


def _may_match(price: Price, name: str) -> bool:
    """Whether a price may apply to a model. In both names, `*` matches the rest of a name."""
    begin, wildcard, _ = name.partition("*")
    if price.model.endswith("*"):
        prefix = price.model[:-1]
        return name.startswith(prefix) or bool(wildcard and prefix.startswith(begin))
    return price.model == name or bool(wildcard and price.model.startswith(begin))
