"""A worker's traffic counts as OpenTelemetry metrics, cumulative since its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from proofgate import __version__
from proofgate.telemetry import names
from proofgate.telemetry.names import ConventionNames
from proofgate.telemetry.spans import ProviderAddress

_CUMULATIVE = AggregationTemporality.CUMULATIVE
Labels = dict[str, str | int]


class MetricPoints:
    """Converts the result of `_core.Worker.counted` to metrics."""

    def __init__(
        self, resource: Resource, spoken: ConventionNames, places: Mapping[str, ProviderAddress], since: int
    ) -> None:
        """`since` is the start of the worker's counts, in Unix nanoseconds."""
        self._resource = resource
        self._names = spoken
        self._places = places
        self._since = since

    def metrics_at(self, counted: Mapping[str, Any], now: int) -> MetricsData:
        """Returns all metrics at `now`, in Unix nanoseconds."""
        tenants, models = counted["tenants"], counted["models"]
        known = [entry for entry in tenants if entry["model"]]
        metrics = [
            self._histogram(self._names.duration, models, "exchange", now),
            self._histogram("proofgate.first_byte", models, "first_byte", now),
            self._requests(tenants, now),
            self._sum(
                "proofgate.cost",
                "{USD}",
                [(self._tenant_labels(one), one["cost_nanodollars"] / 1e9) for one in known],
                now,
            ),
        ]
        for name, field in (
            (self._names.input_tokens, "prompt_tokens"),
            (self._names.output_tokens, "completion_tokens"),
        ):
            if name is not None:
                metrics.append(self._tokens(name, known, field, now))
        scope = ScopeMetrics(InstrumentationScope("proofgate", __version__), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _model_labels(self, one: Mapping[str, Any]) -> Labels:
        labels: Labels = {names.REQUEST_MODEL: one["model"], "proofgate.provider": one["provider"]}
        place = self._places.get(one["provider"])
        if place is not None:
            labels |= {
                names.PROVIDER: place.kind,
                names.SERVER_ADDRESS: place.address,
                names.SERVER_PORT: place.port,
            }
        return labels

    def _tenant_labels(self, one: Mapping[str, Any]) -> Labels:
        labels: Labels = {"proofgate.tenant": one["tenant"]}
        return labels | (self._model_labels(one) if one["model"] else {})

    def _requests(self, tenants: Sequence[Mapping[str, Any]], now: int) -> Metric:
        values = [
            ({**self._tenant_labels(one), "proofgate.outcome": outcome}, count)
            for one in tenants
            for outcome, count in one["requests"]
        ]
        return self._sum("proofgate.requests", "{request}", values, now)

    def _tokens(self, name: str, known: Sequence[Mapping[str, Any]], field: str, now: int) -> Metric:
        values = [
            ({**self._tenant_labels(one), names.TOKEN_MODALITY: "unknown"}, one[field]) for one in known
        ]
        return self._sum(name, "{token}", values, now)

    def _sum(self, name: str, unit: str, values: Sequence[tuple[Labels, float]], now: int) -> Metric:
        points = [NumberDataPoint(labels, self._since, now, value) for labels, value in values]
        return Metric(name, None, unit, Sum(points, _CUMULATIVE, is_monotonic=True))

    def _histogram(self, name: str, models: Sequence[Mapping[str, Any]], field: str, now: int) -> Metric:
        points = [
            HistogramDataPoint(
                attributes=self._model_labels(one),
                start_time_unix_nano=self._since,
                time_unix_nano=now,
                count=sum(one[field]["counts"]),
                sum=one[field]["sum_seconds"],
                bucket_counts=one[field]["counts"],
                explicit_bounds=one[field]["bounds"],
                # Minimum and maximum are unknown and omitted.
                min=None,  # type: ignore[arg-type]
                max=None,  # type: ignore[arg-type]
            )
            for one in models
        ]
        return Metric(name, None, "s", Histogram(points, _CUMULATIVE))
