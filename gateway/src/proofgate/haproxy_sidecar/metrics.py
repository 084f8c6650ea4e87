"""The agent's metrics as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator

from proofgate import process_metrics
from proofgate.haproxy_sidecar.follower import SyncLoop, TargetState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "proofgate_haproxy_sidecar"
_FAILURES = ("unreachable", "refused", "internal")
#: The help text of each gauge of a target, by the suffix of its name.
_GAUGES = {
    "entries": "Entries of the map or file that HAProxy has loaded",
    "by_name": "Workers whose addresses are resolved by name",
    "refused_shards": "Tenant shards that are refused: their previous content stays in use",
    "expires_timestamp_seconds": "Unix time at which the certificate expires; 0 before it was read",
}


def render(follower: SyncLoop) -> str:
    """Renders the metrics of every target."""
    lines = "".join(f"{line}\n" for line in _lines(follower.standings))
    return lines + process_metrics.render("haproxy-sidecar")


def _lines(standings: tuple[TargetState, ...]) -> Iterator[str]:
    yield from _family("in_sync", "gauge", "1 if HAProxy has the content of the last valid file, else 0")
    for found in standings:
        yield f'{_PREFIX}_in_sync{{target="{found.target.name}"}} {int(found.in_sync)}'
    yield from _family("up_to_date", "gauge", "1 if HAProxy has all of the newest file, else 0")
    for found in standings:
        yield f'{_PREFIX}_up_to_date{{target="{found.target.name}"}} {int(found.up_to_date)}'
    yield from _family("updates_total", "counter", "Changes that HAProxy applied")
    for found in standings:
        yield f'{_PREFIX}_updates_total{{target="{found.target.name}"}} {found.updates}'
    yield from _family("failures_total", "counter", "Files or changes that were not applied")
    for found in standings:
        for reason in _FAILURES:
            labels = f'target="{found.target.name}",reason="{reason}"'
            yield f"{_PREFIX}_failures_total{{{labels}}} {found.failures[reason]}"
    yield from _family("last_success_timestamp_seconds", "gauge", "Unix time when HAProxy was last in sync")
    for found in standings:
        labels = f'target="{found.target.name}"'
        yield f"{_PREFIX}_last_success_timestamp_seconds{{{labels}}} {found.last_success:.3f}"
    gauges = {name for found in standings for name in found.target.gauges()}
    for name in sorted(gauges):
        yield from _family(name, "gauge", _GAUGES[name])
        for found in standings:
            value = found.target.gauges().get(name)
            if value is not None:
                yield f'{_PREFIX}_{name}{{target="{found.target.name}"}} {value:.0f}'


def _family(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {text}."
    yield f"# TYPE {_PREFIX}_{name} {kind}"
