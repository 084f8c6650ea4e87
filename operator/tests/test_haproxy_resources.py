"""HAProxy's resource requests: from the manifest, and the operator's defaults."""

from typing import Any

import pytest

from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.build.haproxy import deployment
from tests.gateways import DEFAULTS, gateway


def resources(**wanted: Any) -> dict[str, dict[str, str]]:
    found = deployment(gateway(loadBalancer={"resources": wanted}), DEFAULTS, "digest")
    containers = found["spec"]["template"]["spec"]["containers"]
    made: dict[str, dict[str, str]] = next(one["resources"] for one in containers if one["name"] == "haproxy")
    return made


COMPUTED = resources()["limits"]["memory"]


def test_without_a_word_it_asks_for_little_and_may_take_what_its_connections_need() -> None:
    found = resources()
    assert found["requests"] == {"cpu": "50m", "memory": "64Mi"}
    assert found["limits"].keys() == {"memory"} and (parse_quantity(COMPUTED) or 0) > (
        parse_quantity("128Mi") or 0
    )


@pytest.mark.parametrize(
    ("wanted", "requests", "limits"),
    [
        ({"requests": {"cpu": "2"}}, {"cpu": "2", "memory": "64Mi"}, {"memory": COMPUTED}),
        (
            {"requests": {"cpu": "4", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "1Gi"}},
            {"cpu": "4", "memory": "1Gi"},
            {"cpu": "4", "memory": "1Gi"},
        ),
        ({"limits": {"cpu": "20m"}}, {"cpu": "20m", "memory": "64Mi"}, {"cpu": "20m", "memory": COMPUTED}),
        ({"limits": {"memory": "32Mi"}}, {"cpu": "50m", "memory": "32Mi"}, {"memory": "32Mi"}),
        ({"requests": {"memory": "900Gi"}}, {"cpu": "50m", "memory": "900Gi"}, {"memory": "900Gi"}),
    ],
)
def test_it_gets_what_the_manifest_says(
    wanted: dict[str, Any], requests: dict[str, str], limits: dict[str, str]
) -> None:
    assert resources(**wanted) == {"requests": requests, "limits": limits}
