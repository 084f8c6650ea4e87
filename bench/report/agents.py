"""The tables of agents' requests, with each figure beside that of plain HAProxy in the same run."""

from __future__ import annotations

from typing import Any

from bench.report.markdown import cell, median, table
from bench.systems import NO_RULES, PLAIN_PROXY, PRODUCT

Result = dict[str, Any]

#: The rules of each system.
_WORKERS = {PRODUCT: "all packs", NO_RULES: "no rules"}
_TURNS = {"first": "first", "20th": "20th"}


def bodies(result: Result) -> str:
    """Rate and CPU time of agents' requests."""
    group = result["scenarios"].get("agents", {})
    rows = []
    for point, systems in group.items():
        dialect, size, turn = point.split("-")
        rows.append([f"{dialect}, {size.removesuffix('KB')} KB", _TURNS[turn], *_row(systems)])
    return table(["request", "turn", *_head()], rows)


def sessions(result: Result) -> str:
    """Rate and CPU time of concurrent whole sessions."""
    group = result["scenarios"].get("sessions", {})
    rows = []
    for point, systems in group.items():
        count, turns = point.split("x")
        size = median(systems.get(PLAIN_PROXY, {}), "kilobytes", "{:,.0f}")
        latencies = [_latency(systems.get(name, {})) for name in (PLAIN_PROXY, *_WORKERS)]
        rows.append([f"{count} of {turns} turns", size, *_row(systems), *latencies])
    names = ("HAProxy", *_WORKERS.values())
    return table(["sessions", "mean KB", *_head(), *(f"{name}: p50 / p99 µs" for name in names)], rows)


def lateness(result: Result) -> str:
    """The lateness of the tokens of a hundred streams."""
    streams = result["scenarios"].get("streams", {})
    points = {"text": streams.get("s100", {})}
    for point, systems in result["scenarios"].get("tool_streams", {}).items():
        points[f"{point.split('-')[0]}: thinking, text, a tool's call"] = systems
    rows = []
    for title, systems in points.items():
        for name, told in ((PLAIN_PROXY, "HAProxy"), *_WORKERS.items()):
            row = systems.get(name)
            if row is None:
                continue
            late = [_milliseconds(row.get(f"late_{figure}_us")) for figure in ("p50", "p99")]
            above = [_milliseconds(row.get(f"late_above_haproxy_{figure}_us")) for figure in ("p50", "p99")]
            rows.append([title, told, *late, *above, median(row, "cpu_us_per_chunk", "{:.1f}")])
    head = ["streams", "", "late p50 ms", "late p99 ms", "p50 above HAProxy", "p99 above HAProxy", "CPU µs/token"]
    return table(head, rows)


def _head() -> list[str]:
    head = ["HAProxy, requests/s", "HAProxy, CPU µs"]
    for name in _WORKERS.values():
        head += [f"{name}: rate to HAProxy's", f"{name}: CPU µs", f"{name}: µs/KB above HAProxy"]
    return head


def _row(systems: dict[str, Any]) -> list[str]:
    plain = systems.get(PLAIN_PROXY, {})
    row = [median(plain, "requests_per_second", "{:,.0f}"), median(plain, "cpu_us_per_request", "{:,.0f}")]
    for name in _WORKERS:
        worker = systems.get(name, {})
        row += [
            cell(worker.get("rate_to_haproxy"), "{:.3f}"),
            median(worker, "cpu_us_per_request", "{:,.0f}"),
            cell(worker.get("cpu_above_haproxy_us_per_kb"), "{:.2f}"),
        ]
    return row


def _latency(row: dict[str, Any]) -> str:
    return " / ".join(median(row, f"{figure}_us", "{:,.0f}") for figure in ("p50", "p99"))


def _milliseconds(spread: dict[str, float] | None) -> str:
    return cell(spread and {bound: value / 1000 for bound, value in spread.items()}, "{:,.2f}")
