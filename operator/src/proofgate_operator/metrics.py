"""The operator's metrics, named in one place."""

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
