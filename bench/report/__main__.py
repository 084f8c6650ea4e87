"""Checks or writes the figures of all pages in docs, from the last results of benchmarks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.report import pages


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail when a file is not what the results make of it")
    action.add_argument("--write", action="store_true", help="write the files that are not")
    parser.add_argument("--results", type=Path, default=pages.RESULTS, help="folder of results")
    parser.add_argument("--docs", type=Path, default=pages.DOCS, help="folder of pages")
    options = parser.parse_args()
    try:
        if options.write:
            for path in pages.write(options.docs, options.results):
                print(f"written: {path}")
            return 0
        stale = pages.stale(options.docs, options.results)
    except pages.PageError as error:
        print(error, file=sys.stderr)
        return 1
    for path in stale:
        print(f"{path} is stale: run python -m bench.report --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
