"""Checks or writes the figures of docs/reference/benchmarks.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.generated import arguments, settle
from bench.report import page
from bench.report.charts import CHARTS, all_charts
from bench.summary import SCHEMA

_ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    """Returns the exit code."""
    parser = arguments(__doc__)
    parser.add_argument("--result", type=Path, default=_ROOT / "bench" / "results" / "data-plane.json")
    parser.add_argument("--docs", type=Path, default=_ROOT / "docs")
    options = parser.parse_args()
    result = json.loads(options.result.read_text())
    if result.get("schema") != SCHEMA:
        print(f"{options.result} is of another version of the benchmark: run make bench", file=sys.stderr)
        return 1
    target = options.docs / "reference" / "benchmarks.md"
    charts = all_charts(result)
    files = {target: page.fill(target.read_text(), result, charts)}
    files |= {options.docs / "images" / CHARTS[section]: svg for section, svg in charts.items()}
    return settle(files, options, "bench.report")


if __name__ == "__main__":
    sys.exit(main())
