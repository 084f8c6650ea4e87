"""Checks that every test that the documentation names is there.

Rows of the pages on failure modes and capabilities are promises; each names the test that keeps it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_PAGES = ("docs/*.md", "docs/runbooks/*.md", "operator/README.md", "gateway/README.md", "README.md")
#: Python tests by their prefix; Rust tests have no mark of their own, but their names are sentences.
_NAME = re.compile(r"`(test_[a-z0-9_]+|[a-z][a-z0-9]*(?:_[a-z0-9]+){5,})`")
_CODE = ("gateway", "operator", "e2e", "bench", "rust-core/crates")


def main() -> int:
    """Returns the exit code."""
    known: set[str] = set()
    for folder in _CODE:
        for path in (_ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".rs"}:
                known |= set(re.findall(r"\b(?:def|fn) ([a-z0-9_]+)", path.read_text()))
    missing = [
        f"{page.relative_to(_ROOT)}: {name}"
        for pattern in _PAGES
        for page in sorted(_ROOT.glob(pattern))
        for name in sorted(set(_NAME.findall(page.read_text())))
        if name not in known and not name.startswith("proofgate_") and not name.endswith("_total")
    ]
    for line in missing:
        print(f"no such test: {line}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
