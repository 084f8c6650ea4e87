"""Checks whether the models that a budget in money counts have prices."""

from __future__ import annotations

from collections.abc import Iterator

from proofgate_schema.models import Model
from proofgate_schema.prices import Price
from proofgate_schema.terms import Quota, Terms

from proofgate_operator.api.access import Plan
from proofgate_operator.api.gateway import Gateway, GatewaySpec


def budgets_note(gateway: Gateway) -> str | None:
    """Return which requests are refused because a budget in money applies to models without a price; None if
    all have prices.

    With spec.defaultPrices only the workers know the prices; `proofgate validate` checks their configuration.
    """
    spec = gateway.spec
    if spec.default_prices:
        return None
    unpriced = {route.name: missing for route in spec.models if (missing := _unpriced_provider(spec, route))}
    notes = [
        f"{whose} has a budget in money, and {model} has no price at provider {unpriced[model]}: requests "
        "for this model are refused (price_unknown); add its price to spec.prices"
        for whose, terms in _terms(spec)
        for model in sorted(_budgeted_models(spec, terms) & unpriced.keys())
    ]
    if not notes:
        return None
    return notes[0] if len(notes) == 1 else f"{notes[0]}; and {len(notes) - 1} more"


def rejects_all_requests(spec: GatewaySpec) -> bool:
    """Return whether budgets in money refuse every request, because no permitted model has a price."""
    if spec.default_prices:
        return False
    plans: dict[str, Terms] = {plan.name: plan for plan in spec.plans}
    terms = [plans.get(tenant.plan, tenant) if tenant.plan else tenant for tenant in spec.tenants]
    terms += plans.values() if spec.allowed_tenants is not None else ()
    unpriced = {route.name for route in spec.models if not _priced(spec, route)}
    every = {route.name for route in spec.models}
    return bool(terms) and all(
        (set(one.models) if one.models is not None else every) <= _budgeted_models(spec, one) & unpriced
        for one in terms
    )


def _terms(spec: GatewaySpec) -> Iterator[tuple[str, Terms]]:
    for plan in spec.plans:
        yield f"spec.plans[{plan.name}]", plan
    for tenant in spec.tenants:
        yield f"spec.tenants[{tenant.name}]", tenant


def _budgeted_models(spec: GatewaySpec, terms: Terms) -> set[str]:
    """Return the models whose cost a budget counts."""
    quotas = [quota for quota in (terms.limits, terms.key_limits, _shared(terms)) if quota is not None]
    if any(quota.has_budget for quota in quotas):
        return set(terms.models if terms.models is not None else (route.name for route in spec.models))
    return {budget.model for budget in terms.model_budgets}


def _shared(terms: Terms) -> Quota | None:
    return terms.shared_limits if isinstance(terms, Plan) else None


def _unpriced_provider(spec: GatewaySpec, model: Model) -> str | None:
    """Return the provider for which a model has no price; None if there is none."""
    return next(
        (provider for provider, name in _provider_models(model) if not _has_price(spec, provider, name)), None
    )


def _priced(spec: GatewaySpec, model: Model) -> bool:
    """Return whether a model has a price at any of its providers."""
    return any(_has_price(spec, provider, name) for provider, name in _provider_models(model))


def _provider_models(model: Model) -> Iterator[tuple[str, str]]:
    """Yield the providers of a model, each with its own name for the model."""
    for place in (*model.routes, *model.fallbacks):
        yield place.provider, place.upstream_model or model.name
    if model.provider is not None:
        yield model.provider, model.upstream_model or model.name


def _has_price(spec: GatewaySpec, provider: str, name: str) -> bool:
    return any(price.provider in (None, provider) and _price_matches(price, name) for price in spec.prices)


def _price_matches(price: Price, name: str) -> bool:
    """Return whether a price may apply to a model; `*` stands for the rest of a name in both."""
    begin, wildcard, _ = name.partition("*")
    if price.model.endswith("*"):
        prefix = price.model[:-1]
        return name.startswith(prefix) or bool(wildcard and prefix.startswith(begin))
    return price.model == name or bool(wildcard and price.model.startswith(begin))
