"""Keys of tenants that workers ignore although they are in the shards.

The operator never writes such keys. So another client, or another release of the operator, wrote the Secret.
"""

from collections.abc import Iterator

from proofgate_operator.build.well_known_keys import WELL_KNOWN_MESSAGE
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault


def omitted_key_faults(seen: ObservedState) -> Iterator[Fault]:
    """Yield one fault, with the message of the worker that ignores most keys."""
    told = max(
        ((report.omitted_keys.count, -number) for number, report in seen.worker_reports.items()),
        default=(0, 0),
    )
    count, number = told[0], -told[1]
    if not count:
        return
    first = " and ".join(
        f"{key} of {tenant}" for tenant, key in seen.worker_reports[number].omitted_keys.first
    )
    keys = "key is" if count == 1 else "keys are"
    message = f"worker {number}: {count} {keys} ignored, such as {first}: the key is {WELL_KNOWN_MESSAGE}"
    yield Fault("spec.allowedTenants", "KeyWellKnown", message)
