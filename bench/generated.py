"""Files that are made from results: written, or checked to be fresh."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A command line that asks for one of `--write` and `--check`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail when a file is not what the result makes of it")
    action.add_argument("--write", action="store_true", help="write the files that are not")
    return parser


def settle(files: Mapping[Path, str], options: argparse.Namespace, module: str) -> int:
    """Writes or checks `files`, by path their contents as they should be; returns the exit code."""
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if options.write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path])
            print(f"written: {path}")
        else:
            print(f"{path} is stale: run python -m {module} --write", file=sys.stderr)
    return 1 if stale and options.check else 0
