"""Checks that numbers and comparisons in README.md, docs/comparison.md and docs/concepts/compliance.md have a source.

    python docs/check_claims.py      # prints one line for each claim without a source, and exits with 1

- A number with a unit, or with a comma, is in an entry of docs/claims.toml for its page. The entry has a command or a
  test of this repository, or an address and the day it was read. With `result`, it has the value of a result file.
- An entry whose text is gone from its page is an error, too.
- A row that says what Proofgate has ends with its source; each other column has its gateway in the sources below. A
  cell with a number such as [3] has that item in the numbered list, with the day. README's table is an excerpt.
- A row of a table with a column `command` has a command, or says **not shown**. A date has an address in its section.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
README, COMPARISON, COMPLIANCE = "README.md", "docs/comparison.md", "docs/concepts/compliance.md"
PAGES = (README, COMPARISON, COMPLIANCE)
_UNITS = (
    "%|ms|µs|s|seconds?|minutes?|hours?|days?|KB|MB|GB|MiB|GiB|requests/s|cores?|connections|clients|workers|streams"
)
_NUMBER = re.compile(rf"(?<![\w.,/-])(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?= ?(?:{_UNITS})(?![\w/])))")
_NOT_TEXT = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"\b\d{{1,2}}\s(?:{_MONTH})\s\d{{4}}\b")
_READ = re.compile(rf"\b(?:[Rr]ead|[Mm]easured) on\s\d{{1,2}}\s(?:{_MONTH})\s\d{{4}}\b")
_MARK = re.compile(r" ?\[(\d+)\](?!\()")


def text_of(page: str) -> str:
    """The page without code and addresses; what is left keeps its place."""
    return _NOT_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), page)


def tables(page: str) -> Iterator[list[list[str]]]:
    """The cells of each table: the header first, then its rows."""
    for block in re.findall(r"(?:^\|.*\n?)+", page, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        yield [row for row in rows if not set("".join(row)) <= set("-: ")]


def unclaimed_numbers(name: str, page: str, claims: list[dict[str, Any]]) -> Iterator[str]:
    """Numbers of a page that no entry has."""
    covered: list[tuple[int, int]] = []
    for claim in claims:
        places = [(found.start(), found.end()) for found in re.finditer(re.escape(claim["text"]), page)]
        covered += places
        if not places:
            yield f"{name}: an entry of docs/claims.toml is not on the page: {claim['text']}"
    for found in _NUMBER.finditer(text_of(page)):
        if not any(begin <= found.start() and found.end() <= end for begin, end in covered):
            line = page.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: no entry of docs/claims.toml for {found[0]}"


def wrong_source(root: Path, claim: dict[str, Any]) -> str | None:
    """What is wrong with the source of an entry."""
    source = claim.get("source", "")
    if source.startswith("https://"):
        return None if isinstance(claim.get("read"), date) else "an address needs the day it was read"
    if source.startswith("make "):
        target = source.split()[1]
        known = re.search(rf"^{re.escape(target)}:", (root / "Makefile").read_text(), re.MULTILINE)
        return None if known else f"no target {target} in the Makefile"
    path, _, test = source.partition("::")
    if not (root / path).is_file():
        return f"neither a make target, nor an address, nor a file: {source!r}"
    text = (root / path).read_text()
    return None if re.search(rf"\b(?:def|fn) {re.escape(test)}\(", text) or not test else f"no test {test} in {path}"


def differs(root: Path, claim: dict[str, Any]) -> str | None:
    """How an entry's numbers differ from those of the result file that it names."""
    if "result" not in claim:
        return None
    file, _, keys = claim["result"].partition("#")
    numbers = [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", claim["text"])]
    measured = []
    for key in keys.split(" "):
        found: Any = json.loads((root / file).read_text())
        for part in key.split("/"):
            found = found[part]
        measured.append(found * claim.get("times", 1))
    shown = numbers[: len(measured)]
    # As many digits as are shown.
    digits = [len(one.partition(".")[2]) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", claim["text"])]
    rounded = [round(one, count) for one, count in zip(measured, digits, strict=False)]
    return None if shown == rounded else f"{file} has {rounded}"


def wrong_comparison(page: str) -> Iterator[str]:
    """Cells of docs/comparison.md without a source."""
    listed = page.partition("\n## Sources\n")[2]
    numbered = dict(re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", listed, re.MULTILINE | re.DOTALL))
    for header, *rows in tables(page):
        if header[-1] not in ("source", "command"):
            continue
        for product in header[2:-1]:
            if header[-1] == "source" and f"- **{product}**: [" not in listed:
                yield f"{COMPARISON}: no source for the column {product}"
        for row in rows:
            if len(row) != len(header) or (row[1] != "no" and not re.search(r"\]\(|`", row[-1])):
                yield f"{COMPARISON}: no source for the row {row[0]}"
    if not _READ.search(listed.partition("- **")[0].replace("\n", " ")):
        yield f"{COMPARISON}: the sources do not say when they were read"
    for mark in sorted(set(_MARK.findall(page.partition("\n## Sources\n")[0]))):
        item = numbered.get(mark, "")
        if "](" not in item or not _READ.match(item):
            yield f"{COMPARISON}: no dated source [{mark}]"


def wrong_excerpt(readme: str, page: str) -> Iterator[str]:
    """Rows of README's table that are not those of docs/comparison.md."""
    whole: list[list[str]] = next((table for table in tables(page) if "source" in table[0]), [[]])
    mine = next((table for table in tables(readme) if any("LiteLLM" in cell for cell in table[0])), None)
    if mine is None:
        yield f"{README}: no table of gateways"
        return
    columns = [whole[0].index(name) if name in whole[0] else None for name in mine[0]]
    if None in columns:
        yield f"{README}: a column is not in {COMPARISON}: {mine[0]}"
        return
    known = {row[0]: [_MARK.sub("", row[place or 0]) for place in columns] for row in whole[1:]}
    for row in mine[1:]:
        if known.get(row[0]) != row:
            yield f"{README}: not as in {COMPARISON}: {' | '.join(row)}"


def wrong_compliance(page: str) -> Iterator[str]:
    """Rows without a command, and dates without a source, of docs/concepts/compliance.md."""
    for header, *rows in tables(page):
        for row in rows:
            if header[-1] == "command" and "`proofgate " not in row[-1] and "**not shown**" not in "".join(row):
                yield f"{COMPLIANCE}: no command for {row[0]}"
    for section in re.split(r"^#+ ", page, flags=re.MULTILINE):
        flat = re.sub(r"\s+", " ", section)
        if _DATE.search(flat) and not ("](https://" in flat and _READ.search(flat)):
            title = section.partition("\n")[0]
            yield f"{COMPLIANCE}: dates in “{title}” without an address and the day it was read"


def problems(root: Path) -> Iterator[str]:
    """What is wrong with the pages and docs/claims.toml."""
    claims = tomllib.loads((root / "docs" / "claims.toml").read_text())["claim"]
    texts = {name: (root / name).read_text() for name in PAGES}
    for claim in claims:
        wrong = wrong_source(root, claim) or differs(root, claim)
        if wrong or claim["page"] not in texts:
            yield f"docs/claims.toml: {claim['text']}: {wrong or 'another page'}"
    for name, page in texts.items():
        yield from unclaimed_numbers(name, page, [claim for claim in claims if claim["page"] == name])
    yield from wrong_comparison(texts[COMPARISON])
    yield from wrong_excerpt(texts[README], texts[COMPARISON])
    yield from wrong_compliance(texts[COMPLIANCE])


def main() -> int:
    """Returns the exit code."""
    wrong = list(problems(_ROOT))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
