"""What the site of `make docs` needs besides mkdocs.yml: the navigation, and links to files outside of docs/.

The navigation has a tab for each folder. A folder's README.md comes first, then its other pages in the order in which
it links to them, below its headings if it has several, then the rest by name. So a new page needs no entry elsewhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/proofgate/proofgate"
#: Tabs, by folder.
KINDS = {
    "Tutorial": "tutorial",
    "How-to": "how-to",
    "Concepts": "concepts",
    "Reference": "reference",
    "Clients": "clients",
    "Runbooks": "runbooks",
    "Decisions": "decisions",
}
_LINK = re.compile(r"(\]\(<?)([^)\s>]+)")
_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Called by MkDocs: sets the navigation."""
    docs = Path(config["docs_dir"])
    tabs = ({kind: pages(docs, docs / folder)} for kind, folder in KINDS.items())
    config["nav"] = [{"Home": ["README.md", "comparison.md"]}, *tabs]
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Called by MkDocs with the text of each page: returns it with links that the site can resolve."""
    return outside_links(markdown, page.file.src_uri, Path(config["docs_dir"]))


def pages(docs: Path, folder: Path) -> list[Any]:
    """The pages of a folder in their order, as paths from docs; a folder in it is a section of its own."""
    index = folder / "README.md"
    text = index.read_text() if index.exists() else ""
    found: list[Any] = [index.relative_to(docs).as_posix()] if text else []
    left = {path for path in folder.iterdir() if path.suffix == ".md" and path != index}
    left |= {path / "README.md" for path in folder.iterdir() if path.is_dir() and any(path.glob("*.md"))}

    def entry(path: Path) -> Any:
        left.discard(path)
        if path.parent == folder:
            return path.relative_to(docs).as_posix()
        return {path.parent.name.capitalize(): pages(docs, path.parent)}

    sections: list[tuple[str, list[Any]]] = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE):
        targets = (Path(os.path.normpath(folder / target.split("#")[0])) for _, target in _LINK.findall(part))
        entries = [entry(path) for path in targets if path in left]
        sections += [(part.partition("\n")[0].strip(), entries)] if entries else []
    grouped = len(sections) > 1
    for title, entries in sections:
        found += [{title: entries}] if grouped and not title.startswith("#") else entries
    return found + [entry(path) for path in sorted(left, key=lambda path: str(path).lower())]


def outside_links(markdown: str, page: str, docs: Path) -> str:
    """The page with links to files outside of docs/ as addresses of the repository, and to folders as to their pages.

    Blocks of code stay as they are.
    """
    here = (docs / page).parent

    def resolved(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        if not target or re.match(r"[a-z][a-z0-9+.-]*:|/", target):
            return match[0]
        path = Path(os.path.normpath(here / target))
        after = f"#{anchor}" if anchor else ""
        if not path.is_relative_to(docs) or path.suffix == ".py":
            kind = "tree" if path.is_dir() else "blob"
            return f"{match[1]}{REPOSITORY}/{kind}/main/{path.relative_to(docs.parent).as_posix()}{after}"
        if path.is_dir():
            return f"{match[1]}{os.path.relpath(path / 'README.md', here)}{after}"
        return match[0]

    parts = []
    end = 0
    for block in _FENCE.finditer(markdown):
        parts += [_LINK.sub(resolved, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _LINK.sub(resolved, markdown[end:])])
