"""All metrics of the operator."""

import contextlib
import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from proofgate_operator import __version__

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

BUILD = Gauge(
    "proofgate_build_info",
    "1, with the running version as labels.",
    ["component", "version", "python"],
    registry=REGISTRY,
)
BUILD.labels("operator", __version__, platform.python_version()).set(1)

RECONCILES = Counter(
    "proofgate_operator_reconciles_total",
    "Reconciles of a gateway, by result: done or failed.",
    ["result"],
    registry=REGISTRY,
)
RECONCILE_SECONDS = Histogram(
    "proofgate_operator_reconcile_seconds",
    "Time from the first read to the last write of one reconcile.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)
WRITES = Counter(
    "proofgate_operator_writes_total",
    "Writes to the API server, by kind of object and verb. A gateway that matches its spec causes no writes.",
    ["kind", "verb"],
    registry=REGISTRY,
)
READY = Gauge(
    "proofgate_operator_gateway_ready",
    "1 where a gateway's Ready condition is True, else 0.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
AVAILABLE = Gauge(
    "proofgate_operator_gateway_available",
    "1 where a gateway's Available condition is True: requests are served. Else 0.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
AUDITED = Gauge(
    "proofgate_operator_gateway_audited",
    "1 where a gateway's Audited condition is True, else 0; only for gateways with an auditor.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
KEPT = Gauge(
    "proofgate_operator_gateway_kept",
    "0 where a gateway's Kept condition is False, else 1; only for gateways with a retention job.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
REQUESTS = Counter(
    "proofgate_operator_requests_total",
    "Requests to the API server except watches, by verb and result: ok, or the status code.",
    ["method", "result"],
    registry=REGISTRY,
)
FAILED_READS = Counter(
    "proofgate_operator_unread_total",
    "Failed reads, by verb, kind and reason: MayNotLook or Unavailable.",
    ["verb", "kind", "reason"],
    registry=REGISTRY,
)
FAILING_READS = Gauge(
    "proofgate_operator_held_reads",
    "Number of a gateway's objects that the operator currently cannot read. The operator uses cached data "
    "until the data expires.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
EXPIRED_READS = Gauge(
    "proofgate_operator_holds_ended",
    "Reads of a gateway that have failed for so long that their cached data is no longer used.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
WATCHES_STARTED = Counter(
    "proofgate_operator_watches_total",
    "Started watches, by kind and reason: list (all objects were read first), resume (no change was missed).",
    ["kind", "start"],
    registry=REGISTRY,
)
WATCH_CONNECTIONS = Gauge(
    "proofgate_operator_watch_connections",
    "Connections with open watches. One connection (HTTP/2) can carry a hundred watches or more.",
    registry=REGISTRY,
)
OBJECTS = Gauge(
    "proofgate_operator_objects",
    "Objects known from watches, by kind.",
    ["kind"],
    registry=REGISTRY,
)
BLOCKED_NAMESPACES = Gauge(
    "proofgate_operator_namespaces_barred",
    "Configured namespaces that no longer exist or cannot be listed. Gateways in these namespaces stay "
    "unchanged.",
    registry=REGISTRY,
)
FOREIGN_NAMESPACES = Gauge(
    "proofgate_operator_namespaces_foreign",
    "Namespaces with gateways that another release serves. This release ignores them.",
    registry=REGISTRY,
)
LEADER = Gauge(
    "proofgate_operator_leader",
    "1 while this replica is the active one, else 0.",
    registry=REGISTRY,
)


def remove_gateway(namespace: str, gateway: str) -> None:
    """Drop the series of a deleted gateway."""
    for gauge in (READY, AVAILABLE, AUDITED, KEPT, FAILING_READS, EXPIRED_READS):
        with contextlib.suppress(KeyError):
            gauge.remove(namespace, gateway)


def remove_auditor(namespace: str, gateway: str) -> None:
    """Drop the series of a gateway's auditor that was removed."""
    with contextlib.suppress(KeyError):
        AUDITED.remove(namespace, gateway)


def remove_retention(namespace: str, gateway: str) -> None:
    """Drop the series of a gateway's retention job that was removed."""
    with contextlib.suppress(KeyError):
        KEPT.remove(namespace, gateway)
