"""PodMonitors: Prometheus scrapes each worker and each HAProxy separately, because each has its own
counters."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, haproxy, statefulset
from proofgate_operator.build.naming import GATEWAY_LABEL, Manifest, child_manifest, names, selector_labels

API_VERSION = "monitoring.coreos.com/v1"
KIND = "PodMonitor"
PLURAL = "podmonitors"


def _monitor(gateway: Gateway, name: str, component: str, *ports: str) -> Manifest:
    wanted = gateway.spec.monitoring
    head = child_manifest(gateway, API_VERSION, KIND, name, component)
    # The operator's labels take precedence, because it finds the object by them.
    head["metadata"]["labels"] = {**wanted.labels, **head["metadata"]["labels"]}
    label = "__meta_kubernetes_pod_label_" + GATEWAY_LABEL.replace(".", "_").replace("/", "_")
    return {
        **head,
        "spec": {
            "selector": {"matchLabels": selector_labels(gateway, component)},
            # The dashboards and alerts group by the gateway's name.
            "podMetricsEndpoints": [
                {
                    "port": port,
                    "path": "/metrics",
                    "interval": f"{wanted.interval_seconds}s",
                    "relabelings": [
                        {"action": "replace", "sourceLabels": [label], "targetLabel": "gateway"},
                    ],
                }
                for port in ports
            ],
        },
    }


def worker_monitor(gateway: Gateway) -> Manifest:
    """Return the PodMonitor of the workers, including those that are not ready."""
    return _monitor(gateway, names(gateway).worker, statefulset.COMPONENT, "admin")


def haproxy_monitor(gateway: Gateway) -> Manifest:
    """Return the PodMonitor of HAProxy and of the agent next to it."""
    return _monitor(gateway, names(gateway).haproxy, haproxy.COMPONENT, "metrics", "agent")


def auditor_monitor(gateway: Gateway) -> Manifest:
    """Return the PodMonitor of the auditor."""
    return _monitor(gateway, names(gateway).auditor, auditor.COMPONENT, "http")


def pod_monitors(gateway: Gateway) -> list[Manifest]:
    """Return the PodMonitors of a gateway, for a cluster that serves their API."""
    found = [worker_monitor(gateway), haproxy_monitor(gateway)]
    return [*found, auditor_monitor(gateway)] if gateway.enabled_auditor else found
