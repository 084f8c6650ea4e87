"""The pages: generated sections are between markers, everything else is written by hand.

A page is any Markdown file of docs with a marker, so a page can be moved without a change here.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from bench.report import data_plane, ledger, operator, policies
from bench.report.charts import CHARTS, all_charts
from bench.report.markdown import Json
from bench.summary import SCHEMA

_ROOT = Path(__file__).resolve().parents[2]
DOCS = _ROOT / "docs"
RESULTS = _ROOT / "bench" / "results"
_DATA_PLANE = "data-plane.json"
#: The sections that each result file fills.
SECTIONS = {
    _DATA_PLANE: data_plane.SECTIONS,
    "operator.json": operator.SECTIONS,
    "scoring.json": policies.SECTIONS,
    "scoring-soak.json": policies.SOAK_SECTIONS,
    "ledger.json": ledger.SECTIONS,
    "neighbour.json": ledger.NEIGHBOUR_SECTIONS,
}
_NOTHING = "No figures."
_MARKERS = re.compile(r"(?P<begin><!-- figures: (?P<name>[a-z]+) -->\n).*?(?P<end><!-- end of figures -->)", re.DOTALL)


class PageError(Exception):
    """Pages, sections and results do not fit together."""


def write(docs: Path = DOCS, results: Path = RESULTS) -> list[Path]:
    """Writes every file that differs from the results, and returns these files. Raises PageError."""
    changed = _changed(docs, results)
    for path, text in changed.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return list(changed)


def stale(docs: Path = DOCS, results: Path = RESULTS) -> list[Path]:
    """The files that differ from the results. Raises PageError."""
    return list(_changed(docs, results))


def fill(page: str, texts: dict[str, str], images: str = "images") -> str:
    """The page with its sections made anew, and a chart above those that have one; `images` leads to charts."""

    def section(match: re.Match[str]) -> str:
        return f"{match['begin']}\n{texts[match['name']].replace('(images/', f'({images}/')}\n\n{match['end']}"

    return _MARKERS.sub(section, page)


def names(page: str) -> list[str]:
    """The names of the sections that a page has markers for."""
    return [match["name"] for match in _MARKERS.finditer(page)]


def _changed(docs: Path, results: Path) -> dict[Path, str]:
    found = {path: text for path in sorted(docs.rglob("*.md")) if names(text := path.read_text())}
    texts, charts = _sections(results)
    named = sorted(name for text in found.values() for name in names(text))
    if named != sorted(texts):
        raise PageError(f"pages have places for the figures {named}, and there are {sorted(texts)}")
    images = docs / "images"
    files = {path: fill(text, texts, os.path.relpath(images, path.parent)) for path, text in found.items()}
    files |= {images / CHARTS[section]: svg for section, svg in charts.items()}
    return {path: text for path, text in files.items() if not path.exists() or path.read_text() != text}


def _sections(results: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Texts by section, and charts by the section that they stand above."""
    texts: dict[str, str] = {}
    charts: dict[str, str] = {}
    for file, sections in SECTIONS.items():
        path = results / file
        result: Json | None = json.loads(path.read_text()) if path.exists() else None
        if file == _DATA_PLANE and result is not None:
            if result.get("schema") != SCHEMA:
                raise PageError(f"{path} is of another version of the benchmark: run make bench")
            charts = all_charts(result)
        for name, section in sections.items():
            texts[name] = (section(result) if result is not None else "") or _NOTHING
    for name in charts:
        texts[name] = f"![{name}](images/{CHARTS[name]})\n\n{texts[name]}"
    return texts, charts
