"""A growing volume is reported, and counts as bound."""

from typing import Any

import pytest

from proofgate_operator.plan.volume_growth import growth


def claim(*conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "demo-wal"},
        "spec": {"resources": {"requests": {"storage": "20Gi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}, "conditions": list(conditions)},
    }


def held(kind: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": "True", "message": message}


def test_a_claim_at_rest_has_nothing_to_tell() -> None:
    assert growth(claim()) is None
    assert growth(claim({"type": "Resizing", "status": "False"})) is None
    assert growth({"metadata": {"name": "demo-wal"}}) is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Resizing", "Resizing"),
        ("FileSystemResizePending", "ResizePending"),
        ("ControllerResizeError", "ResizeFailed"),
        ("NodeResizeError", "ResizeFailed"),
    ],
)
def test_each_step_of_growing_has_its_reason_and_both_sizes(kind: str, reason: str) -> None:
    told = growth(claim(held(kind, "no space in the pool")))
    assert told and told[0] == reason
    for part in ("demo-wal", "10Gi", "20Gi", "no space in the pool"):
        assert part in told[1]


def test_what_went_wrong_comes_before_what_goes_on() -> None:
    told = growth(claim(held("Resizing"), held("ControllerResizeError")))
    assert told and told[0] == "ResizeFailed"
