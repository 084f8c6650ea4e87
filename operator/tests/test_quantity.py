"""Quantities are compared by value, not by spelling."""

from decimal import Decimal

import pytest

from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.plan.drift import contains


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("1E", Decimal(10) ** 18),
        ("1Ei", Decimal(1024) ** 6),
        ("1e9", Decimal(10) ** 9),
        ("1E9", Decimal(10) ** 9),
        ("5e-1", Decimal("0.5")),
        ("250u", Decimal("0.00025")),
        ("100n", Decimal("1e-7")),
        ("+1.5Gi", Decimal("1.5") * 1024**3),
        (".5", Decimal("0.5")),
        (1, Decimal(1)),
        (0.5, Decimal("0.5")),
        ("1500m", Decimal("1.5")),
    ],
)
def test_a_quantity_has_the_worth_that_the_api_gives_it(text: object, worth: Decimal) -> None:
    assert parse_quantity(text) == worth


@pytest.mark.parametrize("text", ["", "1 Gi", "1gi", "Gi", "1Gie3", "1e", "one", True, None])
def test_what_is_no_quantity_has_no_worth(text: object) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"cpu": 1}, {"cpu": "1"}),
        ({"cpu": 0.5}, {"cpu": "500m"}),
        ({"hugepages-2Mi": "1024Mi"}, {"hugepages-2Mi": "1Gi"}),
        ({"memory": "1e9"}, {"memory": "1G"}),
        ({"example.com/device": 2}, {"example.com/device": "2"}),
    ],
)
def test_a_resource_of_any_name_that_is_spelt_otherwise_holds(
    wanted: dict[str, object], live: dict[str, object]
) -> None:
    assert contains({"resources": {"limits": live}}, {"resources": {"limits": wanted}})


def test_a_resource_of_another_worth_does_not_hold() -> None:
    assert not contains({"limits": {"cpu": "2"}}, {"limits": {"cpu": 1}})
    assert not contains({"limits": {}}, {"limits": {"cpu": 1}})
    assert not contains({"enabled": 1}, {"enabled": "1"})
