"""Checks or writes the figures of docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.report import page
from bench.report.charts import CHARTS, all_charts
from bench.summary import SCHEMA

_ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    """0 when the page says what the result says."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail when page or charts are not of this result")
    action.add_argument("--write", action="store_true", help="write page and charts")
    parser.add_argument("--result", type=Path, default=_ROOT / "bench" / "results" / "data-plane.json")
    parser.add_argument("--docs", type=Path, default=_ROOT / "docs")
    options = parser.parse_args()
    result = json.loads(options.result.read_text())
    if result.get("schema") != SCHEMA:
        print(f"{options.result} is of another version of the benchmark: run make bench", file=sys.stderr)
        return 1
    target = options.docs / "benchmarks.md"
    charts = all_charts(result)
    files = {target: page.fill(target.read_text(), result, charts)}
    files |= {options.docs / "images" / CHARTS[section]: svg for section, svg in charts.items()}
    stale = [file for file, text in files.items() if not file.exists() or file.read_text() != text]
    if options.check:
        for file in stale:
            print(f"{file} is not of this result: run python -m bench.report --write", file=sys.stderr)
        return 1 if stale else 0
    (options.docs / "images").mkdir(exist_ok=True)
    for file in stale:
        file.write_text(files[file])
        print(f"written: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
