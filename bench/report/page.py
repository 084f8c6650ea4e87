"""The page: generated sections stand between markers, everything else is written by hand."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from bench.report import table
from bench.report.charts import CHARTS

_MARKERS = re.compile(r"(?P<begin><!-- figures: (?P<name>[a-z]+) -->\n).*?(?P<end><!-- end of figures -->)", re.DOTALL)


class PageError(Exception):
    """The page and the sections do not fit together."""


def fill(page: str, result: dict[str, Any], charts: Collection[str]) -> str:
    """The page with every section from the result, and a chart above those that have one.

    Raises PageError when the page names a section that does not exist, or lacks one.
    """
    named = [match["name"] for match in _MARKERS.finditer(page)]
    if sorted(named) != sorted(table.SECTIONS):
        raise PageError(f"the page has the sections {sorted(named)}, and there are {sorted(table.SECTIONS)}")

    def section(match: re.Match[str]) -> str:
        text = table.SECTIONS[match["name"]](result) or "No figures."
        if match["name"] in charts:
            text = f"![{match['name']}](../images/{CHARTS[match['name']]})\n\n{text}"
        return f"{match['begin']}\n{text}\n\n{match['end']}"

    return _MARKERS.sub(section, page)
