"""Proofgate beside other systems: one function for each section. A scenario without figures has no rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.report import agents
from bench.report.markdown import NOTHING, cell, median, table
from bench.systems import CANDIDATES, NO_RULES, NULL, PRODUCT, SPINNING

Result = dict[str, Any]

_ORDER = [candidate.name for candidate in CANDIDATES]
_POINTS = {"c1": "c=1", "c16": "c=16", "c64": "c=64"}
_UPSTREAMS = {"at_once": "at once", "after_50ms": "after 50 ms"}
_ATTACKS = {"bad_key": "a wrong key", "malformed": "malformed heads", "blocked_prompt": "a blocked prompt"}


def everything(result: Result) -> str:
    """All sections, for a terminal."""
    return "\n\n".join(f"## {name}\n\n{text}" for name, section in SECTIONS.items() if (text := section(result)))


def machine(result: Result) -> str:
    """The machine, time and method of the run, and all versions."""
    where, how = result["machine"], result["method"]
    rows = [[name, version] for name, version in sorted(result["versions"].items())]
    return "\n\n".join(
        [
            f"{where['processor']}, {where['cores']} cores, {where['memory_gb']} GB, kernel {where['kernel']}, "
            f"Python {where['python']}; load average {where['load_before']} before the run. {how['turns']} turns, "
            f"{how['paced_turns']} in front of the paced upstream. "
            f"Proofgate with: {', '.join(how['proofgate'])}.",
            table(["", "version"], rows),
        ]
    )


def closed(result: Result) -> str:
    """Requests per second on one core."""
    group = _group(result, "closed_loop")
    rows = []
    for name in _systems(group):
        rates = [_median(group, point, name, "requests_per_second", "{:,.0f}") for point in _POINTS]
        best = result["rps_per_core_spread"].get(name)
        told = f"{best['min']:,.0f} to {best['max']:,.0f}" if best else NOTHING
        latency = [_median(group, "c16", name, f"{figure}_us", "{:,.0f}") for figure in ("p50", "p99")]
        last = "c64" if name in group.get("c64", {}) else "c16"
        cost = _median(group, last, name, "cpu_us_per_request", "{:.1f}")
        busy = _median(group, last, name, "load_core_busy_share", "{:.0%}")
        rows.append([_code(name), *rates, told, cost, busy, " / ".join(latency)])
    head = ["system", *_POINTS.values(), "spread at its best point", "CPU µs/request", "load core busy"]
    head.append("p50 / p99 µs at c=16")
    return table(head, rows)


def ratios(result: Result) -> str:
    """The ratio of Proofgate's rate to that of each other system."""
    rows = [
        [_code(name), *(cell(points.get(point), "{:.3g}") for point in _POINTS)]
        for name in _ORDER
        if (points := result["ratio_to"].get(name))
    ]
    return table(["proofgate divided by", *_POINTS.values()], rows)


def spinning(result: Result) -> str:
    """The ratio of the rate with a spinning Python thread to the rate without it."""
    points = result["spinning_python_ratio"]
    row = [
        "rate with the thread divided by the rate without",
        *(cell(points.get(point), "{:.3f}") for point in _POINTS),
    ]
    return table(["", *_POINTS.values()], [row] if points else [])


def open_loop(result: Result) -> str:
    """Latency at a constant rate."""
    group = _group(result, "open_loop")
    rows = []
    for point, title in _UPSTREAMS.items():
        for name in _systems({point: group.get(point, {})}):
            row = group[point][name]
            told = [f"{row['p50_us']['median']:,.0f} / {row['p99_us']['median']:,.0f}"]
            for base in ("added", "above_haproxy"):
                told.extend(cell(row.get(f"{base}_{figure}_us"), "{:,.0f}") for figure in ("p50", "p99"))
            rows.append([title, _code(name), *told, f"{row['cpu_us_per_request']['median']:.1f}"])
    head = ["upstream answers", "system", "p50 / p99 µs", "added p50 µs", "added p99 µs"]
    return table([*head, "p50 above HAProxy", "p99 above HAProxy", "CPU µs/request"], rows)


def prompts(result: Result) -> str:
    """Requests per second and CPU time by the size of the prompt."""
    sizes = _prompt_sizes(result)
    rows = []
    for name in _systems(sizes):
        rates = [_median(sizes, size, name, "requests_per_second", "{:,.0f}") for size in sizes]
        costs = [_median(sizes, size, name, "cpu_us_per_request", "{:,.1f}") for size in sizes]
        rows.append([_code(name), *rates, *costs])
    head = ["system", *(f"{size}, requests/s" for size in sizes), *(f"{size}, CPU µs" for size in sizes)]
    return table(head, rows)


def attacks(result: Result) -> str:
    """The cost of a request that should be refused, for both sides."""
    group = _group(result, "attacks")
    rows = []
    for point, title in _ATTACKS.items():
        for name in _systems({point: group.get(point, {})}):
            row = group[point][name]
            cost = [f"{row[f'{side}_cpu_us_per_request']['median']:.1f}" for side in ("gateway", "attacker")]
            rate = f"{row['requests_per_second']['median']:,.0f}"
            rows.append([title, _code(name), f"{row['refused_share']['median']:.0%}", rate, *cost])
    return table(["attack", "system", "refused", "requests/s", "gateway CPU µs", "attacker CPU µs"], rows)


def streams(result: Result) -> str:
    """The cost and lateness of a token of a paced stream."""
    group = _group(result, "streams")
    rows = []
    for point, systems in sorted(group.items(), key=lambda item: int(item[0][1:])):
        for name in _systems({point: systems}):
            row = systems[name]
            late = [f"{row[f'late_{figure}_us']['median'] / 1000:,.2f}" for figure in ("p50", "p99")]
            cost = cell(row["cpu_us_per_chunk"], "{:.1f}")
            busy = f"{row['load_core_busy_share']['median']:.0%}"
            rows.append(
                [f"{int(point[1:]):,}", _code(name), f"{row['chunks_per_second']['median']:,.0f}", *late, cost, busy]
            )
    return table(
        ["streams", "system", "tokens/s", "late p50 ms", "late p99 ms", "CPU µs/token", "load core busy"], rows
    )


def memory(result: Result) -> str:
    """Resident memory before the load and after it."""
    group = _group(result, "memory")
    rows = [
        [
            _code(name),
            _median(group, "requests", name, "start_mb", "{:,.0f}"),
            _median(group, "requests", name, "after_mb", "{:,.0f}"),
            _median(group, "streams", name, "after_mb", "{:,.0f}"),
        ]
        for name in _systems(group)
        if name != NULL
    ]
    return table(["system", "at the start", "after the requests", "after the streams"], rows)


def standing(result: Result) -> str:
    """Every comparison that Proofgate wins or loses, by medians."""
    rows = []
    for title, systems, figure, higher, form in _comparisons(result):
        own = systems.get(PRODUCT, {}).get(figure)
        if own is None:
            continue
        better: list[str] = []
        worse: list[str] = []
        for name in _ORDER:
            if name in (NULL, PRODUCT, SPINNING, NO_RULES) or figure not in systems.get(name, {}):
                continue
            other = systems[name][figure]["median"]
            ahead = other > own["median"] if higher else other < own["median"]
            (better if ahead else worse).append(f"{name} {form.format(other)}")
        rows.append([title, form.format(own["median"]), ", ".join(better) or "none", ", ".join(worse) or "none"])
    return table(["", "proofgate", "better", "not better"], rows)


def missing(result: Result) -> str:
    """Unavailable systems and void measurements, with reasons."""
    rows = [[_code(name), "everything", reason] for name, reason in sorted(result["absent"].items())]
    rows += [
        [_code(void["system"]), f"{void['scenario']}, turn {void['turn']}", void["reason"]] for void in result["voided"]
    ]
    return table(["system", "without figures", "reason"], rows) or "Every system ran and no measurement is void."


SECTIONS: dict[str, Callable[[Result], str]] = {
    "agents": agents.bodies,
    "sessions": agents.sessions,
    "lateness": agents.lateness,
    "machine": machine,
    "standing": standing,
    "closed": closed,
    "ratios": ratios,
    "open": open_loop,
    "prompts": prompts,
    "attacks": attacks,
    "streams": streams,
    "memory": memory,
    "spinning": spinning,
    "missing": missing,
}


def _comparisons(result: Result) -> list[tuple[str, dict[str, Any], str, bool, str]]:
    """Title, systems, figure, whether more is better, and the format."""
    found: list[tuple[str, dict[str, Any], str, bool, str]] = []
    group = _group(result, "closed_loop")
    for point, title in _POINTS.items():
        found.append((f"requests/s, {title}", group.get(point, {}), "requests_per_second", True, "{:,.0f}"))
    for point, title in _POINTS.items():
        found.append((f"CPU µs/request, {title}", group.get(point, {}), "cpu_us_per_request", False, "{:,.1f}"))
    for point, title in _UPSTREAMS.items():
        systems = _group(result, "open_loop").get(point, {})
        for figure in ("p50", "p99"):
            name = f"added {figure} µs at a constant rate, upstream answers {title}"
            found.append((name, systems, f"added_{figure}_us", False, "{:,.0f}"))
    for size, systems in list(_prompt_sizes(result).items())[1:]:
        found.append((f"requests/s, prompts of {size}", systems, "requests_per_second", True, "{:,.0f}"))
    for point, systems in _group(result, "streams").items():
        found.append((f"CPU µs/token, {point[1:]} streams", systems, "cpu_us_per_chunk", False, "{:,.1f}"))
        found.append((f"lateness p99 µs, {point[1:]} streams", systems, "late_p99_us", False, "{:,.0f}"))
    found.append(
        ("memory MB after the requests", _group(result, "memory").get("requests", {}), "after_mb", False, "{:,.0f}")
    )
    return found


def _prompt_sizes(result: Result) -> dict[str, Any]:
    group = _group(result, "prompts")
    larger = sorted(group.items(), key=lambda item: int(item[0].removesuffix("KB")))
    # The figures for a prompt of 1 KB are those of the closed loop with the same number of connections.
    smallest = {"1 KB": _group(result, "closed_loop").get("c16", {})}
    return {**smallest, **{f"{point.removesuffix('KB')} KB": systems for point, systems in larger}} if larger else {}


def _group(result: Result, name: str) -> dict[str, Any]:
    group: dict[str, Any] = result["scenarios"].get(name, {})
    return group


def _systems(points: dict[str, Any]) -> list[str]:
    """The systems with figures at any of these points, in the order of tables."""
    return [name for name in _ORDER if any(name in systems for systems in points.values())]


def _median(group: dict[str, Any], point: str, name: str, figure: str, form: str) -> str:
    return median(group.get(point, {}).get(name, {}), figure, form)


def _code(name: str) -> str:
    return f"`{name}`"
