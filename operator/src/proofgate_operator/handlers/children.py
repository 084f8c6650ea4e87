"""Events of gateways and of their objects. They only wake a loop: what happened, it sees for itself."""

from typing import Any

import kopf

from proofgate_operator.api import GROUP, PLURAL, VERSION
from proofgate_operator.build.naming import GATEWAY_LABEL, MANAGED_BY_LABEL, OPERATOR
from proofgate_operator.handlers.operator import Operator

#: Kinds a gateway is made of, as (group and version, plural).
WATCHED = (
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "deployments"),
    ("", "v1", "services"),
    ("", "v1", "configmaps"),
    ("", "v1", "secrets"),
    ("", "v1", "serviceaccounts"),
    ("", "v1", "persistentvolumeclaims"),
    ("", "v1", "pods"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("networking.k8s.io", "v1", "networkpolicies"),
)


async def wake_owner(*, namespace: str | None, labels: Any, memo: Any, **_: Any) -> None:
    """Wake the gateway that an object belongs to."""
    operator: Operator = memo.operator
    owner = labels.get(GATEWAY_LABEL)
    if owner and namespace:
        operator.wakes.wake(namespace, owner)


for _group, _version, _plural in WATCHED:
    kopf.on.event(_group, _version, _plural, labels={MANAGED_BY_LABEL: OPERATOR})(wake_owner)


@kopf.on.event(GROUP, VERSION, PLURAL)
async def wake_changed(*, namespace: str | None, name: str | None, body: Any, memo: Any, **_: Any) -> None:
    """Wake a gateway whose spec changed. Its status is the loop's own writing and no reason to look again."""
    operator: Operator = memo.operator
    status = body.get("status") or {}
    changed = status.get("observedGeneration") != body["metadata"].get("generation")
    if changed and namespace and name:
        operator.wakes.wake(namespace, name)


def narrow_watches(settings: kopf.OperatorSettings) -> None:
    """Have the API server send only our own objects: others' pods and Secrets never reach this process."""
    for resource in WATCHED:
        settings.watching.label_selectors[resource] = f"{MANAGED_BY_LABEL}={OPERATOR}"
