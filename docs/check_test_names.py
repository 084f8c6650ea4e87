"""Checks what the documentation says of tests.

Every test that a page names is there. In docs/reference/guarantees.md each row below the first heading is a promise,
the test that shows it, and the suite that runs it: the test is in the file of its link, the suite is a step of
`make test`, and neither a promise nor a test is there twice.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(_ROOT))

GUARANTEES = _ROOT / "docs" / "reference" / "guarantees.md"
_PAGES = ("docs/**/*.md", "operator/README.md", "gateway/README.md", "README.md")
#: Python tests by their prefix; Rust tests have no mark of their own, but their names are sentences.
_NAME = re.compile(r"`(test_[a-z0-9_]+|[a-z][a-z0-9]*(?:_[a-z0-9]+){5,})`")
_CODE = ("gateway", "operator", "e2e", "bench", "rust-core/crates")
_LINK = re.compile(r"\[`([a-z0-9_]+)`\]\(\.\./\.\./([^)#]+)\)")
_MOST_WORDS = 20
#: Which step of suites/catalogue.py runs the tests of a folder; the longest that fits.
SUITES = {
    "rust-core/crates/": "rust",
    "gateway/tests/": "gateway",
    "operator/tests/": "operator",
    "operator/tests/controlplane/": "control-plane",
    "e2e/worker/": "worker",
    "e2e/worker/test_clients.py": "clients",
    "e2e/tests/": "cluster",
    "e2e/garden/tests/": "tools",
    "e2e/unkind/tests/": "tools",
    "setup/tests/": "tools",
}


@dataclass(frozen=True)
class Row:
    """A row of docs/reference/guarantees.md; the file as a path from the root."""

    promise: str
    test: str
    file: str
    suite: str


def is_test(path: Path, name: str) -> bool:
    """Whether a file of Python or Rust has a test function of this name; in Rust the attribute makes it one."""
    if not path.is_file():
        return False
    text = path.read_text()
    if path.suffix == ".py":
        return re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE) is not None
    attribute = r"#\[(?:tokio::)?test[^\]]*\]\s*(?:(?:#\[[^\]]*\]|//[^\n]*)\s*)*"
    return re.search(rf"{attribute}(?:async )?fn {name}\(", text) is not None


def suite_of(file: str) -> str | None:
    """The suite that runs the tests of a file."""
    fitting = [folder for folder in SUITES if file.startswith(folder)]
    return SUITES[max(fitting, key=len)] if fitting else None


def rows(page: str) -> Iterator[Row | str]:
    """The rows of the page's tables, or what is wrong with one."""
    for line in page.partition("\n## ")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|- ") or cells == ["promise", "test", "suite"]:
            continue
        link = _LINK.fullmatch(cells[1]) if len(cells) == 3 else None
        if link is None:
            yield f"no row of a promise, a link to one test, and a suite: {line}"
        elif len(cells[0].split()) > _MOST_WORDS:
            yield f"more than {_MOST_WORDS} words: {cells[0]}"
        else:
            yield Row(cells[0], link[1], link[2], cells[2])


def wrong_rows(page: str, root: Path, suites: frozenset[str]) -> Iterator[str]:
    """What is wrong with the page, where `make test` runs these suites."""
    found = [row for row in rows(page) if isinstance(row, Row)]
    yield from (row for row in rows(page) if isinstance(row, str))
    if not found:
        yield "no promise at all"
    for row in found:
        if not is_test(root / row.file, row.test):
            yield f"no test {row.test} in {row.file}"
        if suite_of(row.file) != row.suite:
            yield f"{row.file} is run by the suite {suite_of(row.file)}, and not by {row.suite}"
        if row.suite not in suites:
            yield f"make test runs no suite {row.suite}"
    for text, times in Counter(row.promise.lower() for row in found).items():
        if times > 1:
            yield f"{times} times: {text}"
    for (file, test), times in Counter((row.file, row.test) for row in found).items():
        if times > 1:
            yield f"{times} promises have the test {test} of {file}"


def missing_tests(root: Path) -> Iterator[str]:
    """Names of tests in the documentation that no file of tests has."""
    known: set[str] = set()
    for folder in _CODE:
        for path in (root / folder).rglob("*"):
            if path.suffix in {".py", ".rs"}:
                known |= set(re.findall(r"\b(?:def|fn) ([a-z0-9_]+)", path.read_text()))
    for pattern in _PAGES:
        for page in sorted(root.glob(pattern)):
            for name in sorted(set(_NAME.findall(page.read_text()))):
                if name not in known and not name.startswith("proofgate_") and not name.endswith("_total"):
                    yield f"no such test: {page.relative_to(root)}: {name}"


def main() -> int:
    """Returns the exit code."""
    from suites.catalogue import BY_NAME

    page = GUARANTEES.relative_to(_ROOT)
    wrong = [f"{page}: {problem}" for problem in wrong_rows(GUARANTEES.read_text(), _ROOT, frozenset(BY_NAME))]
    wrong += missing_tests(_ROOT)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
