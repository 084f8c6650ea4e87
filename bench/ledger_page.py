"""Fills docs/reference/benchmarks-ledger.md with the last results of `make bench-ledger` and `make bench-neighbour`.

`python -m bench.ledger_page --write` writes it; `--check` exits with 1 when it is stale.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench import ledger, neighbour
from bench.generated import arguments, settle

PAGE = ledger.ROOT / "docs" / "reference" / "benchmarks-ledger.md"
_NOTHING = "No figures yet."

Json = dict[str, Any]


def main() -> int:
    """Returns the exit code."""
    options = arguments(__doc__).parse_args()
    return settle(_pages(), options, __spec__.name)


def _pages() -> dict[Path, str]:
    return {PAGE: fill(PAGE.read_text(), _read(ledger.RESULTS), _read(neighbour.RESULT))}


def fill(page: str, about_ledger: Json | None, about_neighbour: Json | None) -> str:
    """The page with every generated section made anew. Raises ValueError when it has no place for one."""
    sections: list[tuple[str, Callable[[Json], str], Json | None]] = [
        ("ledger", by_records, about_ledger),
        ("hot", hot_path, about_ledger),
        ("neighbour", beside, about_neighbour),
    ]
    for name, section, result in sections:
        marked = re.compile(f"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = _NOTHING if result is None else section(result)
        page, count = marked.subn(lambda marks, text=text: f"{marks[1]}\n{text}\n\n{marks[2]}", page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{PAGE.name} has {count} places for {name}")
    return page


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
    """A figure of logs that ended so, or a dash where the results have none."""
    return text(by_ending[ending][size]) if size in by_ending.get(ending, {}) else "-"


def write() -> int:
    """Fills the page anew; returns the exit code."""
    return settle(_pages(), argparse.Namespace(write=True, check=False), "bench.ledger_page")


def hot_path(result: Json) -> str:
    """What one record and a change of logs cost the thread that serves; the tree beside its controls."""
    rows = ["| | p50, µs | p99, µs |", "|---|---|---|"]
    for key, what in (("append_us", "append"), ("record_us", "hand-off")):
        rows += [
            f"| {what}, {name} | {_spread(cost['p50'], 2)} | {_spread(cost['p99'], 2)} |"
            for name, cost in result[key].items()
        ]
    stall, tree = result["rotation_stall_us"], result["mmr_per_s"]
    return "\n".join(
        [
            _machine(result["record_machine"]),
            "",
            *rows,
            "",
            f"On the machine of the first table: while logs change, the next record waits {_spread(stall, 0)} µs.",
            "",
            f"The tree alone, in millions of leaves a second: {tree['engine'] / 1e6:.2f}; in Python on one thread"
            f" {tree['python']['median'] / 1e6:.2f}, on a pool of two {tree['python_pool']['median'] / 1e6:.2f}.",
        ]
    )


def beside(result: Json) -> str:
    """By how much the p99 of a tenant grows beside another one's prompts."""
    rows = [
        "| | asked | alone, p99 µs | beside, p99 µs | grows by, µs | prompts/s |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {group} | `{name}` | {_spread(of['alone_p99_us'], 0)} | {_spread(of['beside_p99_us'], 0)}"
        f" | {_spread(of['grows_us'], 0)} | {_spread(of['prompts_per_second'], 1)} |"
        for group in neighbour.FIGURES
        for name, of in result[group].items()
    ]
    return "\n".join([_machine(result["machine"]), "", *rows])


def _machine(about: Json) -> str:
    return f"{about['processor']}, {about['cores']} cores, load {about['load_before']} before the run."


def _spread(spread: dict[str, float], digits: int) -> str:
    median, least, most = (f"{spread[key]:,.{digits}f}" for key in ("median", "min", "max"))
    return f"{median} ({least} to {most})"


def _read(path: Path) -> Json | None:
    if not path.exists():
        return None
    result: Json = json.loads(path.read_text())
    return result


if __name__ == "__main__":
    sys.exit(main())
