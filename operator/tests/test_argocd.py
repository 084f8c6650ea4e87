"""The health checks for Argo CD: they read the operator's conditions and interpret them correctly."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa import LuaRuntime

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.plan.attachment import TenantConditionType

FILE = Path(__file__).parents[2] / "examples" / "argocd" / "argocd-cm.yaml"
DATA = yaml.safe_load(FILE.read_text())["data"]
GATEWAY = DATA["resource.customizations.health.proofgate.dev_GovernanceGateway"]
TENANT = DATA["resource.customizations.health.proofgate.dev_GatewayTenant"]

Manifest = dict[str, Any]


def lua(value: Any) -> str:
    """Return a value as Lua source."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{json.dumps(key)}] = {lua(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(map(lua, value)) + "}"
    return json.dumps(value)


def health(script: str, obj: Manifest) -> str:
    """Return a script's result for an object."""
    text = f"local obj = {lua(obj)}\nlocal health = (function()\n{script}\nend)()\nreturn health.status"
    return str(LuaRuntime().execute(text))


def seen(generation: int | None = 3, paused: bool = False, **conditions: Any) -> Manifest:
    """Return an object of generation 3; `conditions` are statuses with an optional reason after a slash."""
    status: Manifest = {
        "conditions": [
            {"type": kind, "status": said.partition("/")[0], "reason": said.partition("/")[2], "message": ""}
            for kind, said in conditions.items()
        ]
    }
    if generation is not None:
        status["observedGeneration"] = generation
    return {"metadata": {"generation": 3}, "spec": {"paused": paused}, "status": status}


@pytest.mark.parametrize(("script", "kinds"), [(GATEWAY, ConditionType), (TENANT, TenantConditionType)])
def test_the_checks_read_conditions_that_there_are(script: str, kinds: type) -> None:
    named = set(re.findall(r"\bis\.([A-Z]\w+)", script)) | set(re.findall(r"says\(\"(\w+)\"", script))
    assert "Ready" in named and named <= {str(kind) for kind in kinds}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"metadata": {"generation": 1}, "spec": {}}, "Progressing"),
        ({"metadata": {"generation": 1}, "spec": {}, "status": {"observedGeneration": -1}}, "Progressing"),
        (seen(2, Ready="True", Progressing="False"), "Progressing"),
        (seen(Ready="True", Progressing="False"), "Healthy"),
        (seen(Ready="True", Progressing="True"), "Progressing"),
        (seen(Ready="True", Progressing="False", Stalled="True"), "Degraded"),
        (seen(Ready="False", Progressing="True", Stalled="True"), "Degraded"),
        (seen(Ready="False", Progressing="True"), "Progressing"),
        (seen(Ready="False", Progressing="False"), "Degraded"),
        (seen(paused=True, Ready="True", Progressing="False"), "Suspended"),
    ],
)
def test_a_gateway_is_healthy_only_when_what_was_asked_holds(obj: Manifest, expected: str) -> None:
    assert health(GATEWAY, obj) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}, "Progressing"),
        (seen(2, Ready="True"), "Progressing"),
        (seen(Ready="True"), "Healthy"),
        (seen(Ready="False", Programmed="False/Pending"), "Progressing"),
        (seen(Ready="False", Programmed="False/NotAccepted"), "Degraded"),
    ],
)
def test_a_tenant_is_healthy_only_when_what_was_asked_holds(obj: Manifest, expected: str) -> None:
    assert health(TENANT, obj) == expected
