"""The charts of a result."""

from __future__ import annotations

from typing import Any

from bench.report.plot import Bar, Row, bars
from bench.systems import CANDIDATES, NO_RULES, NULL, PRODUCT, SPINNING

# The section of the page that contains each chart.
CHARTS = {
    "closed": "requests-per-core.svg",
    "open": "added-latency.svg",
    "prompts": "prompt-size.svg",
    "streams": "stream-cost.svg",
}
_LEFT_OUT = (NULL, SPINNING, NO_RULES)


def all_charts(result: dict[str, Any]) -> dict[str, str]:
    """Section and SVG of every chart; one without figures is left out."""
    scenarios = result["scenarios"]
    closed = scenarios.get("closed_loop", {})
    opened = scenarios.get("open_loop", {})
    prompts = scenarios.get("prompts", {})
    streams = scenarios.get("streams", {})
    rate = "requests_per_second"
    drawn = {
        "closed": _chart(
            "Requests per second on one core",
            "closed loop, 16 and 64 connections, prompts of 1 KB; lines: slowest and fastest turn; more is better",
            {"16 connections": (closed.get("c16", {}), rate), "64 connections": (closed.get("c64", {}), rate)},
            logarithmic=False,
        ),
        "open": _chart(
            "Latency added at 1,000 requests per second, µs",
            "open loop, from the intended time of sending, above the null server; less is better",
            {
                "p50": (opened.get("at_once", {}), "added_p50_us"),
                "p99": (opened.get("at_once", {}), "added_p99_us"),
            },
        ),
        "prompts": _chart(
            "CPU time for each request by size of the prompt, µs",
            "closed loop, 16 connections; less is better",
            {
                "1 KB": (closed.get("c16", {}), "cpu_us_per_request"),
                "16 KB": (prompts.get("16KB", {}), "cpu_us_per_request"),
                "128 KB": (prompts.get("128KB", {}), "cpu_us_per_request"),
            },
        ),
        "streams": _chart(
            "CPU time for each token of a stream, µs",
            "50 tokens per second on each stream; less is better",
            {
                f"{int(point[1:]):,} streams": (systems, "cpu_us_per_chunk")
                for point, systems in sorted(streams.items(), key=lambda item: int(item[0][1:]))
            },
            form="{:,.1f}",
        ),
    }
    return {name: svg for name, svg in drawn.items() if svg}


def _chart(
    title: str,
    note: str,
    series: dict[str, tuple[dict[str, Any], str]],
    form: str = "{:,.0f}",
    logarithmic: bool = True,
) -> str | None:
    rows = []
    for candidate in CANDIDATES:
        found = [_bar(systems, candidate.name, figure) for systems, figure in series.values()]
        if candidate.name not in _LEFT_OUT and any(found):
            rows.append(Row(candidate.name, found, emphasised=candidate.name == PRODUCT))
    return bars(title, note, list(series), rows, form=form, logarithmic=logarithmic) if rows else None


def _bar(systems: dict[str, Any], name: str, figure: str) -> Bar | None:
    spread = systems.get(name, {}).get(figure)
    return Bar(spread["median"], spread["min"], spread["max"]) if spread else None
