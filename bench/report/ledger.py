"""The tables of the growing ledger, and of one tenant's effects on another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench import ledger, neighbour
from bench.report.markdown import NOTHING, Json, cell


def by_records(result: Json) -> str:
    """Restarts, proofs, checks and appends by the number of records."""
    columns: list[tuple[str, Callable[[str], str]]] = [
        (f"{what}, {ending}", partial(_measured, result.get(figure, {}), ending, text))
        for what, figure, text in (
            ("restart, s", "restart_s", "{:.2f}".format),
            ("records read", "restart_records_read", "{:,}".format),
            ("find and prove, ms: p50, p99", "proof_ms", lambda proof: f"{proof['p50']:.1f}, {proof['p99']:.1f}"),
            ("export of 100, ms", "export_ms", "{:.1f}".format),
            ("fsck, records/s", "fsck_records_per_s", "{:,.0f}".format),
        )
        for ending in ledger.ENDINGS
    ]
    columns.append(("append and follow, records/s", lambda size: f"{result['append_per_s'][size]:,.0f}"))
    rows = [["records", *(name for name, _ in columns)], ["---"] * (1 + len(columns))]
    rows += [[f"{int(size):,}", *(of(size) for _, of in columns)] for size in result["append_per_s"]]
    return "\n".join([_machine(result["machine"]), "", *(f"| {' | '.join(row)} |" for row in rows)])


def _measured(by_ending: Json, ending: str, text: Callable[[Any], str], size: str) -> str:
    """A figure of logs with this ending, or a dash if the results have none."""
    return text(by_ending[ending][size]) if size in by_ending.get(ending, {}) else NOTHING


def hot_path(result: Json) -> str:
    """The cost of one record and of a log rotation for the serving thread; the tree beside its controls."""
    rows = ["| | p50, µs | p99, µs |", "|---|---|---|"]
    for key, what in (("append_us", "append"), ("record_us", "hand-off")):
        rows += [
            f"| {what}, {name} | {cell(cost['p50'], '{:,.2f}')} | {cell(cost['p99'], '{:,.2f}')} |"
            for name, cost in result[key].items()
        ]
    stall, tree = result["rotation_stall_us"], result["mmr_per_s"]
    return "\n".join(
        [
            _machine(result["record_machine"]),
            "",
            *rows,
            "",
            f"When the worker starts another log, the next record waits {cell(stall, '{:,.0f}')} µs (measured on the"
            " machine of the first table).",
            "",
            f"The Merkle tree alone processes {tree['engine'] / 1e6:.2f} million leaves a second. In Python it"
            f" processes {tree['python']['median'] / 1e6:.2f} million on one thread, and"
            f" {tree['python_pool']['median'] / 1e6:.2f} million on a pool of two threads.",
        ]
    )


def beside(result: Json) -> str:
    """The growth of a tenant's p99 beside the prompts of another tenant."""
    rows = [
        "| | target | without prompts, p99 µs | with prompts, p99 µs | difference, µs | prompts/s |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {group} | `{name}` | {cell(of['alone_p99_us'], '{:,.0f}')} | {cell(of['beside_p99_us'], '{:,.0f}')}"
        f" | {cell(of['grows_us'], '{:,.0f}')} | {cell(of['prompts_per_second'], '{:,.1f}')} |"
        for group in neighbour.FIGURES
        for name, of in result[group].items()
    ]
    return "\n".join([_machine(result["machine"]), "", *rows])


def _machine(about: Json) -> str:
    return f"{about['processor']}, {about['cores']} cores, load {about['load_before']} before the run."


SECTIONS: dict[str, Callable[[Json], str]] = {"ledger": by_records, "hot": hot_path}
NEIGHBOUR_SECTIONS: dict[str, Callable[[Json], str]] = {"neighbour": beside}
