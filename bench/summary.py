"""Computes the stored result from the measurements of all turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.cell import Cell
from bench.systems import NO_RULES, NULL, PLAIN_PROXY, PRODUCT, SPINNING

SCHEMA = 3

Spread = dict[str, float]


@dataclass(frozen=True)
class Sample:
    """One cell, with its turn, system and scenario."""

    turn: int
    group: str
    point: str
    system: str
    cell: Cell


@dataclass
class Record:
    """All measurements, and the missing ones with reasons."""

    samples: list[Sample] = field(default_factory=list)
    voided: list[dict[str, Any]] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """Adds a sample; of a sample with failures, only the reason."""
        if sample.cell.failures:
            self.void(sample.turn, sample.system, f"{sample.group}/{sample.point}", sample.cell.reason)
        else:
            self.samples.append(sample)

    def void(self, number: int, system: str, scenario: str, reason: str) -> None:
        """Records that a cell has no figures."""
        self.voided.append({"turn": number, "system": system, "scenario": scenario, "reason": reason})

    def series(self, group: str, point: str, system: str, figure: str) -> dict[int, float]:
        """A figure by turn; void turns are missing."""
        return {
            sample.turn: sample.cell.figures[figure]
            for sample in self.samples
            if (sample.group, sample.point, sample.system) == (group, point, system) and figure in sample.cell.figures
        }


def spread(values: Iterable[float], digits: int = 2) -> Spread:
    """Median, minimum and maximum of at least one value."""
    known = list(values)
    figures = {"median": statistics.median(known), "min": min(known), "max": max(known)}
    return {name: round(value, digits) for name, value in figures.items()}


def paired(one: dict[int, float], other: dict[int, float], *, ratio: bool) -> Spread | None:
    """Ratios or differences of two series, each pair from one turn: the machine drifts between turns."""
    turns = sorted(one.keys() & other.keys())
    if ratio:
        return spread((one[t] / other[t] for t in turns if other[t]), 3) if turns else None
    return spread(one[t] - other[t] for t in turns) if turns else None


def summarise(record: Record, about: dict[str, Any]) -> dict[str, Any]:
    """The result: `about` (machine, method, versions), the headline figures, and every scenario with its spreads."""
    scenarios: dict[str, Any] = {}
    for sample in record.samples:
        systems = scenarios.setdefault(sample.group, {}).setdefault(sample.point, {})
        if sample.system not in systems:
            systems[sample.system] = {
                figure: spread(record.series(sample.group, sample.point, sample.system, figure).values())
                for figure in sample.cell.figures
            }
    for systems in scenarios.get("open_loop", {}).items():
        _add_differences(record, *systems)
    for group in ("agents", "sessions", "streams", "tool_streams"):
        for point, systems in scenarios.get(group, {}).items():
            _compare_with_plain_proxy(record, group, point, systems)
    closed = scenarios.get("closed_loop", {})
    names = list(dict.fromkeys(system for row in closed.values() for system in row))
    best = {name: _best(closed, name) for name in names}
    others = [name for name in names if name not in (NULL, PRODUCT, SPINNING, NO_RULES)]
    ratios = {name: _ratios(record, closed, PRODUCT, name) for name in others}
    return {
        "schema": SCHEMA,
        **about,
        "absent": record.absent,
        "voided": record.voided,
        "null_server_rps": best[NULL]["median"] if NULL in best else None,
        "rps_per_core": {name: best[name]["median"] for name in names if name != NULL},
        "rps_per_core_spread": {name: best[name] for name in names if name != NULL},
        "cpu_us_per_request": {name: _cpu(closed, name) for name in names if name != NULL},
        "added_latency_us": {name: _added(record, name) for name in names if name != NULL},
        "ratio_to": {name: points for name, points in ratios.items() if points},
        "spinning_python_ratio": _ratios(record, closed, SPINNING, PRODUCT),
        "scenarios": scenarios,
    }


def _best(closed: dict[str, Any], name: str) -> dict[str, Any]:
    """The highest rate over all numbers of connections."""
    points = {point: row[name]["requests_per_second"] for point, row in closed.items() if name in row}
    point = max(points, key=lambda key: float(points[key]["median"]))
    return {**points[point], "at": point}


def _cpu(closed: dict[str, Any], name: str) -> float:
    """The CPU time at the highest number of connections."""
    last = [row[name]["cpu_us_per_request"]["median"] for row in closed.values() if name in row][-1]
    return float(last)


def _added(record: Record, name: str) -> dict[str, Any] | None:
    """Latency minus that of the null server, at a constant rate; at one connection if a system cannot keep up."""
    for group, point in (("open_loop", "at_once"), ("closed_loop", "c1")):
        added = {
            figure: paired(
                record.series(group, point, name, f"{figure}_us"),
                record.series(group, point, NULL, f"{figure}_us"),
                ratio=False,
            )
            for figure in ("p50", "p99")
        }
        if added["p50"] and added["p99"]:
            medians = {figure: values["median"] for figure, values in added.items() if values}
            return {**medians, "at": f"{group}/{point}"}
    return None


def _ratios(record: Record, closed: dict[str, Any], system: str, other: str) -> dict[str, Spread]:
    """Requests per second of `system` over those of `other`, by number of connections."""
    ratios = {}
    for point in closed:
        figure = "requests_per_second"
        one = record.series("closed_loop", point, system, figure)
        pair = paired(one, record.series("closed_loop", point, other, figure), ratio=True)
        if pair:
            ratios[point] = pair
    return ratios


def _add_differences(record: Record, point: str, systems: dict[str, Any]) -> None:
    """Adds, to each latency of the open loop, the difference to the null server and to plain HAProxy."""
    for name, row in systems.items():
        for base, title in ((NULL, "added"), (PLAIN_PROXY, "above_haproxy")):
            for figure in ("p50", "p99"):
                one = record.series("open_loop", point, name, f"{figure}_us")
                pair = paired(one, record.series("open_loop", point, base, f"{figure}_us"), ratio=False)
                if pair and name not in (base, NULL):
                    row[f"{title}_{figure}_us"] = pair


def _compare_with_plain_proxy(record: Record, group: str, point: str, systems: dict[str, Any]) -> None:
    """Adds, to each system's figures, their ratio to plain HAProxy's, turn by turn: rate, CPU time, lateness."""
    for name, row in systems.items():
        if name in (PLAIN_PROXY, NULL):
            continue

        def pair(figure: str, *, ratio: bool = False, system: str = name) -> Spread | None:
            one = record.series(group, point, system, figure)
            return paired(one, record.series(group, point, PLAIN_PROXY, figure), ratio=ratio)

        found = {
            "rate_to_haproxy": pair("requests_per_second", ratio=True),
            "cpu_above_haproxy_us": pair("cpu_us_per_request"),
            "late_above_haproxy_p50_us": pair("late_p50_us"),
            "late_above_haproxy_p99_us": pair("late_p99_us"),
        }
        row.update({figure: values for figure, values in found.items() if values})
        if (above := found["cpu_above_haproxy_us"]) and "kilobytes" in row:
            kilobytes = row["kilobytes"]["median"]
            row["cpu_above_haproxy_us_per_kb"] = {bound: round(us / kilobytes, 3) for bound, us in above.items()}
