"""A HorizontalPodAutoscaler scales the gateway itself, through its scale subresource."""

from __future__ import annotations

from e2e.kubernetes import PATIENCE, Namespace, Object, wait_until
from e2e.operations import Gateway


def autoscaler(gateway: str, least: int, most: int) -> Object:
    """An autoscaler with bounds only, which needs no metrics server."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "fleet"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "proofgate.dev/v1alpha1", "kind": "GovernanceGateway", "name": gateway},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                }
            ],
        },
    }


def test_an_autoscaler_scales_the_gateway_and_is_not_fought(namespace: Namespace, two_workers: str) -> None:
    fleet = Gateway(namespace, two_workers)
    namespace.apply(autoscaler(two_workers, 3, 3))
    try:
        wait_until(lambda: fleet.settled(3), PATIENCE, "the autoscaler has scaled the gateway to its least")
        scaled = namespace.get("hpa", "fleet") or {}
        conditions = {one["type"]: one["status"] for one in scaled["status"]["conditions"]}
        assert conditions["AbleToScale"] == "True", scaled["status"]
        found = namespace.get("ggw", two_workers)
        assert found is not None and found["spec"]["replicas"] == 3
        namespace.apply(autoscaler(two_workers, 1, 2))
        wait_until(lambda: fleet.settled(2), PATIENCE, "the autoscaler has scaled the gateway to its most")
    finally:
        namespace.delete("hpa", "fleet")
