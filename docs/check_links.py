"""Checks the links of every Markdown page: the file is there, and so is the heading that an anchor names.

    python docs/check_links.py      # prints one line for each broken link, and exits with 1

Other files are read too: a page of docs/ that a comment or a message names has to exist, in the form `docs/….md` or as
an address of the repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//")
#: A page of docs/, by its path or by its address.
_MENTION = re.compile(r"(?<![\w./-])(?:https://github\.com/proofgate/proofgate/blob/main/)?(docs/[\w/-]+\.md)\b")
#: Texts that were written elsewhere.
_FOREIGN = (
    "rust-core/fuzz/corpus/",
    "rust-core/crates/chat-clients/tests/",
    "rust-core/crates/chat-providers/tests/",
    "rust-core/crates/policy/",
    "bench/",
)


def without_code(page: str) -> str:
    """The page without blocks and spans of code, in which nothing is a link."""
    # A span ends with its paragraph, or with its row of a table.
    return "\n".join(_CODE.sub("", part) for part in re.split(r"\n(?=\n|\|)", _FENCE.sub("", page)))


def anchors(page: str) -> frozenset[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", page)):
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = "".join(letter for letter in text.lower() if letter in "-_ " or unicodedata.category(letter)[0] in "LN")
        slug = slug.replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return frozenset(found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", page)))


def broken_links(root: Path, page: str) -> Iterator[str]:
    """What is wrong with the links of a page, which is given as a path from the root."""
    known = cache(lambda path: anchors(path.read_text()))
    for target in _LINK.findall(without_code((root / page).read_text())):
        if _SCHEME.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = root / os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else root / page
        if not file.exists():
            yield f"{page}: no such file: {target}"
        elif anchor and file.suffix == ".md" and anchor not in known(file):
            yield f"{page}: no such heading: {target}"


def missing_pages(root: Path, file: str) -> Iterator[str]:
    """Pages of docs/ that a file names and that are not there."""
    try:
        text = (root / file).read_text()
    except UnicodeDecodeError:
        return
    for name in sorted(set(_MENTION.findall(text))):
        if not (root / name).exists():
            yield f"{file}: no such page: {name}"


def problems(root: Path, files: Iterable[str]) -> Iterator[str]:
    """What is wrong with these files, given as paths from the root."""
    for file in files:
        if file.startswith(_FOREIGN) or not (root / file).is_file():
            continue
        if file.endswith(".md"):
            yield from broken_links(root, file)
        yield from missing_pages(root, file)


def main() -> int:
    """Returns the exit code."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    wrong = list(problems(_ROOT, files))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
