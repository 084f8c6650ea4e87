"""Codex offers a web search by default. The provider runs it, and a plan may allow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.agents.commands import Command
from e2e.agents.gateway import GREETING, Bench, bench
from e2e.agents.stand_ins.script import say


def asks_a_turn(ready: Bench) -> set[str]:
    """Runs one turn of Codex, and returns the types of the tools that reached the provider."""
    ready.providers.begin(say(GREETING))
    assert GREETING in Command("codex", "responses", "gpt-5.5", ready).ask("turn", "Say good evening.").text
    return {tool["type"] for body in ready.providers.asked for tool in body.get("tools", []) if "type" in tool}


@pytest.mark.parametrize("allowed", [[], ["web_search"]])
def test_codex_may_search_the_web_where_its_plan_allows_it(tmp_path: Path, allowed: list[str]) -> None:
    with bench(tmp_path, allowed) as ready:
        assert ("web_search" in asks_a_turn(ready)) == bool(allowed)
