"""The operator's reaction to a clock that is changed while it runs."""

from typing import Any, cast

import pytest

from proofgate_operator.handlers.roster import Roster, TenantVerdict, newly_expired_tenants

DAY = 86_400.0
NOW = 2_000_000_000.0


@pytest.mark.parametrize("step", [1.0, 3600.0, DAY, 365 * DAY, 3650 * DAY])
def test_tenants_hear_of_keys_that_expire_and_of_those_that_a_clock_set_back_revives(step: float) -> None:
    ends = {"past": NOW - 2 * step, "amid": NOW + step / 2, "later": NOW + 2 * step}
    verdicts = {("team", name): TenantVerdict(expires_at=end) for name, end in ends.items()}
    roster = Roster("uid", cast("Any", None), verdicts=verdicts)
    newly_expired_tenants(roster, NOW)
    assert newly_expired_tenants(roster, NOW + step) == {("team", "amid")}
    assert newly_expired_tenants(roster, NOW + step) == set()
    assert newly_expired_tenants(roster, NOW) == {("team", "amid")}, (
        "the key has not expired by the new clock"
    )
    assert newly_expired_tenants(roster, NOW + step) == {("team", "amid")}
