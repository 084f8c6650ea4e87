"""The tables of the operator's costs and reaction times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.report.markdown import Json
from e2e.unkind import MEANING

#: Key of the result, its description, and the goal.
_ROWS = (
    ("ready_s", "`kubectl apply` to Ready, s", "≤ 20"),
    ("scale_up_first_request_s", "`kubectl scale` to the first request that the new worker served, s", "≤ 10"),
    ("drift_repair_s", "time from the deletion of a child to its recreation, s", "≤ 2"),
    ("revocation_s", "time from the removal of a key from its Secret to the last accepted request with it, s", "≤ 5"),
    ("failed_requests_voluntary", "failed requests in all voluntary changes", "0"),
    ("broken_streams_voluntary", "broken streams in all voluntary changes", "0"),
    ("records_lost", "answers without a record, including after kills", "0"),
    ("requests_sent_twice", "requests that the upstream received twice, including after kills", "0"),
    ("takeover_s", "longest time between two whole answers to one client after a worker is killed, s", "≤ 3"),
    (
        "operator_takeover_s",
        "time from the kill of the leading operator to an applied change by the other operator, s",
        "",
    ),
    ("reconcile_p50_s_1000", "time to apply a change with 1,000 gateways, median, s", ""),
    ("reconcile_p99_s_1000", "the same, p99, s", "≤ 1"),
    ("operator_rss_mb_1000", "memory of the operator with 1,000 gateways, MB", "≤ 250"),
    ("operator_idle_cpu", "CPU time with 1,000 idle gateways, % of a core", "≤ 2"),
    (
        "spaces_empty_rss_mb",
        "memory of the operator with 2,000 empty namespaces, 1,800 of them for tenants only, MB",
        "",
    ),
    (
        "spaces_restarted_rss_highest_mb",
        "memory of the operator with 200 gateways and 5,000 tenants in these namespaces, MB",
        "≤ 268",
    ),
    ("spaces_restarted_watch_connections", "connections for the watches of these namespaces", ""),
    ("spaces_restart_s", "time from a restart of the operator until all objects are reconciled, s", "≤ 30"),
    (
        "spaces_key_change_highest_s",
        "time from a change of a tenant's key in its Secret until the gateway's Secret has it, s",
        "≤ 5",
    ),
    ("all_spaces_restarted_rss_highest_mb", "memory of the operator if it serves all namespaces, MB", "≤ 268"),
    (
        "all_spaces_restart_s",
        "time from a restart until all objects are reconciled, if it serves all namespaces, s",
        "≤ 30",
    ),
)


def operator(result: Json) -> str:
    """Times and counts beside their goals, changes under load, and the same on unkind clusters."""
    return f"{_figures(result)}{_operations(result)}{_profiles(result)}"


SECTIONS: dict[str, Callable[[Json], str]] = {"operator": operator}


def _figures(result: dict[str, Any]) -> str:
    rows = ["| | measured | spread | goal |", "|---|---|---|---|"]
    spreads = result.get("spread", {})
    for name, title, goal in _ROWS:
        if name not in result:
            continue
        spread = spreads.get(name, [])
        told = f"{spread[0]} to {spread[-1]}" if len(spread) > 1 else ""
        rows.append(f"| {title} | {result[name]} | {told} | {goal} |")
    return "\n".join(rows)


def _operations(result: dict[str, Any]) -> str:
    if "operations" not in result:
        return ""
    head = (
        "\n\n| under a steady load | requests | failed | broken streams"
        " | longest time between two whole answers to one client, s |"
    )
    rows = [head, "|---|---|---|---|---|"]
    for name, found in result.get("operations", {}).items():
        rows.append(
            f"| {name} | {found['requests']} | {found['failed']} | {found['broken_streams']}"
            f" | {found['longest_wait_s']} |"
        )
    return "\n".join(rows)


def _profiles(result: dict[str, Any]) -> str:
    """Failed requests and broken streams of each change, with a column for each profile of `e2e.unkind`."""
    found: dict[str, dict[str, Any]] = result.get("profiles", {})
    if not found:
        return ""
    told = "\n".join(f"- `{name}`: {MEANING[name]}" for name in found)
    head = ["failed requests + broken streams, of requests", *(f"`{name}`" for name in found)]
    rows = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for operation in dict.fromkeys(name for profile in found.values() for name in profile["operations"]):
        cells = (_noticed(profile["operations"].get(operation)) for profile in found.values())
        rows.append(f"| {operation} | {' | '.join(cells)} |")
    for name, title in (
        ("records_lost", "answers without a record"),
        ("requests_sent_twice", "requests sent twice"),
    ):
        rows.append(f"| {title} | {' | '.join(str(profile[name]) for profile in found.values())} |")
    return (
        "\n\nOn clusters with faults (`python -m bench.operator --only profiles`):\n\n"
        + told
        + "\n\n"
        + "\n".join(rows)
    )


def _noticed(report: dict[str, Any] | None) -> str:
    return f"{report['failed']} + {report['broken_streams']} of {report['requests']}" if report else ""
