"""Accessibility faults of a page, found by axe-core (https://github.com/dequelabs/axe-core, a tool of tests only)."""

from __future__ import annotations

from functools import cache

from e2e.browser import Browser
from e2e.node_packages import node_packages

_RUN = """const done = arguments[arguments.length - 1];
window.axe.run(document, { resultTypes: ['violations'] }).then((found) => done(found.violations.map((one) =>
    `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join('; ')}`)), (error) => done([String(error)]));"""


@cache
def _axe() -> str:
    """The source of the pinned version of axe-core."""
    return (node_packages("axe") / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Browser) -> list[str]:
    """The rules that the page violates, with the elements."""
    # The driver evaluates the script, so that the page's content security policy is not changed.
    page.run(f"if (!window.axe) {{ {_axe()} }}")
    found: list[str] = page.run_async(_RUN)
    return found
