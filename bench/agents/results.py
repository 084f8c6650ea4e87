"""The results of tools: source files of this repository, JSON and logs, the same in each run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import count, cycle
from pathlib import Path

_ROOT = Path(__file__).parents[2]
#: Folders of plain source, without lists of patterns and inputs of tests, which rules would match.
_FOLDERS = (
    "rust-core/crates/wire/src",
    "rust-core/crates/json/src",
    "rust-core/crates/stages/src",
    "rust-core/crates/limits/src",
    "operator/src/proofgate_operator/plan",
)
_CRATES = ("wire", "json", "stages", "limits", "providers", "translate", "state", "wal", "ledger", "replay")


def texts() -> Iterator[tuple[str, str]]:
    """Yields endlessly the path in a tool's call and its result, in turn source, JSON and a log."""
    files = cycle(_sources())
    for number in count():
        match number % 5:
            case 3:
                yield f"target/report-{number}.json", _report(number)
            case 4:
                yield f"target/build-{number}.log", _log(number)
            case _:
                yield next(files)


@cache
def _sources() -> list[tuple[str, str]]:
    found = [
        path
        for folder in _FOLDERS
        for path in sorted((_ROOT / folder).rglob("*"))
        if path.suffix in {".rs", ".py"} and path.stat().st_size > 1_000
    ]
    return [(str(path.relative_to(_ROOT)), _numbered(path.read_text())) for path in found]


def _numbered(text: str) -> str:
    """A text in the form of agents' tools: each line after its number."""
    return "".join(f"{number:6}\t{line}\n" for number, line in enumerate(text.splitlines(), 1))


def _report(number: int) -> str:
    """JSON in the form of a tool's output, formatted every other time."""
    entries = [
        {
            "crate": crate,
            "file": f"rust-core/crates/{crate}/src/part_{place}.rs",
            "lines": 40 + (number * 37 + place * 11) % 300,
            "warnings": place % 3,
            "passed": place % 7 != 0,
            "note": None if place % 2 else f'line {place}: expected "value", found "other"\n  at \\{crate}\\',
        }
        for place, crate in enumerate(_CRATES * 12)
    ]
    return json.dumps({"report": number, "entries": entries}, indent=2 if number % 2 else None)


def _log(number: int) -> str:
    lines = []
    for place, crate in enumerate(_CRATES * 30):
        minute, second = divmod(place * 7 + number, 60)
        lines.append(
            f"{minute % 24:02}:{second:02} INFO  build: compiled `{crate}` step={place} took={place * 13 % 97}ms\t"
            f'cache="{"hit" if place % 3 else "miss"}"'
        )
        if place % 11 == 0:
            lines.append(f"\x1b[33mwarning\x1b[0m: unused variable: `part_{place}`\n  --> src/{crate}.rs:{place}:9")
    return "\n".join(lines)
