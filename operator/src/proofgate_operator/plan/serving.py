"""Detects that no request can be answered although every pod is ready, before the first request."""

from collections.abc import Iterable

from proofgate_operator.plan.budgets import rejects_all_requests
from proofgate_operator.plan.credentials import NOT_RENEWED
from proofgate_operator.plan.presented_certificate import CERTIFICATE_EXPIRED
from proofgate_operator.plan.problems import Fault, Problem
from proofgate_operator.plan.status_inputs import StatusInputs
from proofgate_operator.plan.unreadable_resources import CACHED_DATA_IN_USE_REASONS
from proofgate_operator.plan.upstream_addresses import PLAIN_HTTP
from proofgate_operator.plan.volume_capacity import capacity_problem

#: Faults of a provider that do not stop it: the last known state of an unreadable Secret still applies.
_HARMLESS_REASONS = frozenset({NOT_RENEWED, PLAIN_HTTP, *CACHED_DATA_IN_USE_REASONS})
#: Faults of a provider's address, which make its key irrelevant.
_ADDRESS_REASONS = frozenset({"AddressForbidden", "AddressNotAllowed"})


def serving_problem(situation: StatusInputs) -> Problem | None:
    """Return why no client can be served; None if some clients may be."""
    spec, configuration, seen = situation.gateway.spec, situation.configuration, situation.seen
    broken = [fault for fault in configuration.faults if fault.reason not in _HARMLESS_REASONS]
    if spec.jwt is None and spec.allowed_tenants is None:
        keys = [key for found in configuration.keys.values() for key in found]
        tenants = [fault for fault in configuration.faults if fault.field.startswith("spec.tenants[")]
        if not keys:
            return _combined_problem("no tenant has a key", tenants)
        if all(key.expires_at <= seen.now for key in keys):
            return _combined_problem("every tenant's keys have expired", tenants)
    ended = [fault for fault in configuration.faults if fault.reason == CERTIFICATE_EXPIRED]
    if ended:
        return _combined_problem("no client can connect", ended)
    names = {f"spec.providers[{provider.name}]" for provider in spec.providers}
    providers = [fault for fault in broken if fault.field in names]
    if names <= {fault.field for fault in providers}:
        unreachable = any(fault.reason in _ADDRESS_REASONS for fault in providers)
        return _combined_problem(
            "no provider can be reached" if unreachable else "no provider has a key", providers
        )
    if rejects_all_requests(spec):
        message = (
            "every tenant has a budget in money, but no model that it may use has a price: see ConfigValid"
        )
        return Problem("PriceUnknown", message)
    return capacity_problem(situation.gateway, seen)


def _combined_problem(summary: str, faults: Iterable[Fault]) -> Problem:
    """Return a problem that combines faults, with the reason of the first fault."""
    first = next(iter(faults), None)
    if first is None:
        return Problem("NoKeys", summary)
    return Problem(first.reason, f"{summary}: {first.message}")
