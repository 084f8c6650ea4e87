"""The operator's metrics, named in one place."""

import contextlib

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

RECONCILES = Counter(
    "proofgate_operator_reconciles_total",
    "Looks at a gateway, by how they ended: done, or failed.",
    ["result"],
    registry=REGISTRY,
)
RECONCILE_SECONDS = Histogram(
    "proofgate_operator_reconcile_seconds",
    "Time from the first read to the last write of one look.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)
WRITES = Counter(
    "proofgate_operator_writes_total",
    "Writes to the API server, by kind of object and verb. A settled gateway causes none.",
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
    "1 where a gateway's Audited condition is True, else 0; of gateways that shall have an auditor.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
KEPT = Gauge(
    "proofgate_operator_gateway_kept",
    "0 where a gateway's Kept condition is False, else 1; of gateways that shall have a retention job.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
REQUESTS = Counter(
    "proofgate_operator_requests_total",
    "Requests to the API server except watches, by verb and result: ok, or the status of the refusal.",
    ["method", "result"],
    registry=REGISTRY,
)
UNREAD = Counter(
    "proofgate_operator_unread_total",
    "Reads that were no look at what they are about, by verb, kind and why: MayNotLook, or Unavailable.",
    ["verb", "kind", "reason"],
    registry=REGISTRY,
)
HELD = Gauge(
    "proofgate_operator_held_reads",
    "Reads of a gateway that are no look just now: what was known before counts, or did until it ended.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
HOLDS_ENDED = Gauge(
    "proofgate_operator_holds_ended",
    "Reads of a gateway that were no look for so long that what was known before counts no more.",
    ["namespace", "gateway"],
    registry=REGISTRY,
)
WATCHES_BEGUN = Counter(
    "proofgate_operator_watches_total",
    "Watches started, by kind and reason: list (all objects were read first), resume (nothing was missed).",
    ["kind", "start"],
    registry=REGISTRY,
)
WATCH_CONNECTIONS = Gauge(
    "proofgate_operator_watch_connections",
    "Connections over which watches are open, a hundred or more each (HTTP/2).",
    registry=REGISTRY,
)
OBJECTS = Gauge(
    "proofgate_operator_objects",
    "Objects known from watches, by kind.",
    ["kind"],
    registry=REGISTRY,
)
BARRED = Gauge(
    "proofgate_operator_namespaces_barred",
    "Namespaces to be served that are gone or refuse to be listed. Gateways in them stay as they are.",
    registry=REGISTRY,
)
FOREIGN = Gauge(
    "proofgate_operator_namespaces_foreign",
    "Namespaces with gateways to be served that another release looks after. Nothing is done there.",
    registry=REGISTRY,
)
LEADER = Gauge(
    "proofgate_operator_leader",
    "1 while this replica is the one that acts, else 0.",
    registry=REGISTRY,
)


def forget(namespace: str, gateway: str) -> None:
    """Drop the series of a gateway that is gone."""
    for gauge in (READY, AVAILABLE, AUDITED, KEPT, HELD, HOLDS_ENDED):
        with contextlib.suppress(KeyError):
            gauge.remove(namespace, gateway)


def forget_audit(namespace: str, gateway: str) -> None:
    """Drop the series of the auditor of a gateway that is to have none."""
    with contextlib.suppress(KeyError):
        AUDITED.remove(namespace, gateway)


def forget_keeping(namespace: str, gateway: str) -> None:
    """Drop the series of the retention job of a gateway that is to have none."""
    with contextlib.suppress(KeyError):
        KEPT.remove(namespace, gateway)
