"""Names of metrics: in alerts, dashboards and runbooks, and in an exposition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from e2e.runbooks import blocks

CHART = Path(__file__).resolve().parents[1] / "charts" / "proofgate-operator"


def expressions() -> Iterator[str]:
    """Yields every PromQL expression of the chart's alerts and dashboards, and of the runbooks."""
    for group in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    yield from (block.text for block in blocks() if block.language == "promql")
    for path in (CHART / "dashboards").glob("*.json"):
        dashboard = json.loads(path.read_text())
        yield from (target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ()))
        yield from (variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query")


def asked_for(found: Iterable[str]) -> set[str]:
    """The metrics in PromQL expressions: names with an underscore that are not a function, label or variable."""
    names: set[str] = set()
    for expression in found:
        bare = re.sub(r'"[^"]*"', "", expression)
        # A recorded series is computed from others, whose expressions are also checked.
        bare = re.sub(r"[\w:]+:[\w:]+", "", bare)
        bare = re.sub(r"\{[^}]*\}|\b(?:by|without|on|ignoring)\s*\([^)]*\)|\[[^]]*\]", "", bare)
        names |= set(re.findall(r"(?<![$\w])[a-z]\w*_\w+(?!\w|\s*\()", bare))
    return names


def exposed(exposition: str) -> set[str]:
    """The names in an exposition, including the parts of histograms and metrics without a series."""
    names: set[str] = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\w+)", exposition, re.MULTILINE):
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("", "_total")
        names |= {f"{name}{suffix}" for suffix in suffixes}
    return names
