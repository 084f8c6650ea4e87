"""Faults of providers whose cloud credentials the workers cannot obtain, as the workers report them."""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault

#: No worker that was asked has credentials for the provider, so requests for its models are refused.
UNAVAILABLE = "CredentialsUnavailable"
#: Some workers have no credentials, or all have some that expire soon.
NOT_RENEWED = "CredentialsNotRenewed"


def credential_faults(gateway: Gateway, seen: ObservedState) -> Iterator[Fault]:
    """Yield one fault per provider, with the message of the first worker that reports one."""
    asked = {number: report for number, report in sorted(seen.worker_reports.items()) if report.reachable}
    for provider in gateway.spec.providers:
        told = [
            (number, found)
            for number, report in asked.items()
            for found in report.unrenewed_credentials
            if found.provider == provider.name
        ]
        if not told:
            continue
        number, first = told[0]
        without = sum(not found.valid for _, found in told)
        reason = UNAVAILABLE if without == len(asked) else NOT_RENEWED
        state = (
            f"{without} of {len(asked)} workers have no credentials for the provider"
            if without
            else "the current credentials stay in use"
        )
        message = f"worker {number}: {first.message}; {state}"
        yield Fault(f"spec.providers[{provider.name}]", reason, message)
