"""Disruption budgets: a node drain evicts one pod of a component at a time, and never waits for a broken
pod."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.naming import Manifest, child_manifest, names, selector_labels


def _budget(gateway: Gateway, name: str, component: str) -> Manifest:
    return {
        **child_manifest(gateway, "policy/v1", "PodDisruptionBudget", name, component),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector_labels(gateway, component)},
            # A pod that is not ready serves no one, so its eviction must not be refused.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def worker_budget(gateway: Gateway) -> Manifest:
    """Return the workers' budget."""
    return _budget(gateway, names(gateway).worker, statefulset.COMPONENT)


def haproxy_budget(gateway: Gateway) -> Manifest:
    """Return HAProxy's budget, for more than one replica."""
    return _budget(gateway, names(gateway).haproxy, haproxy.COMPONENT)
