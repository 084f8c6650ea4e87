"""Writes the prices that come with the gateway, and the page that lists them, from docs/prices.csv
and docs/tool-prices.csv.

    python docs/generate_prices.py           # writes default_prices.json and docs/reference/default-prices.md
    python docs/generate_prices.py --check   # fails when they are not up to date

Each row of the table has US dollars for a million tokens, the page of the vendor that says so (`source`) and the
day on which it was read (`asOf`). A row with `tier` is the price of that tier of service, one with `above` that of
prompts with more tokens than that. docs/tool-prices.csv has dollars for one call of a tool that the provider runs
itself, for a model or, with `*` at the end, all names that begin so.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs/prices.csv"
TOOLS = ROOT / "docs/tool-prices.csv"
PRICES = ROOT / "gateway/src/proofgate/config/default_prices.json"
PAGE = ROOT / "docs/reference/default-prices.md"
#: Prices before this day are not kept: an exchange of this year costs what the table says of its own day.
EFFECTIVE_FROM = "2026-01-01"
AMOUNTS = ("input", "cachedInput", "cacheWrite", "cacheWrite1h", "audioInput", "output", "audioOutput")
LIMITS = ("maxInputTokens", "maxOutputTokens")

HEAD = """# Default prices

This page lists the prices that `defaultPrices: true` applies if [`prices`](worker-configuration.md#prices) has no
match, for providers whose `baseURL` has the host of a section. Amounts are US dollars per million tokens, as of
{day}. [prices.csv](../prices.csv) names the vendor's page for each price. The prices were read from the table of
LiteLLM 1.110.2, which copies these pages.

- A row with a tier is the price of that `service_tier`, or of Anthropic's `speed: fast` and `inference_geo: us`.
- A row with a number applies to all tokens of a request whose prompt has more tokens than that.
- An empty price is that of the row's input or output, and at least that of the standard tier.
- If the prices of text and image tokens differ, the more expensive one is listed for both.
- On Azure, the name of a model is that of its deployment, so a price applies only if both names are equal. It is the
  price of the most expensive deployment type.
- On Bedrock, prices of model ids without a geography are those of us-east-1.
- DeepSeek's prices are those of peak hours.
"""

TOOLS_HEAD = """
## Tools that providers run

Amounts are US dollars per call, by the kind of the tool without its date, or by Gemini's field
([tool-prices.csv](../tool-prices.csv)). A tool that costs only tokens has the price 0. A tool without a fixed price
per call is not listed: containers (`code_interpreter`, `code_execution`), images (`image_generation`), and searches
of Gemini 3 and newer, which Google bills by queries without a limit per request. Set your own price for them
([`prices[].tools`](worker-configuration.md#prices)), or they are refused if a budget in money counts. The price of a
search with gpt-4o-mini and gpt-4.1-mini includes the 8,000 tokens that OpenAI bills for each search.

| host | model | tool | a call |
|---|---|---|---|"""


def rows() -> list[dict[str, str]]:
    """The table. Raises ValueError for a row without an amount, a source or a day of this year."""
    with TABLE.open(newline="") as table:
        found = list(csv.DictReader(table))
    for row in found:
        told = row["input"] and row["output"] and row["source"].startswith("https://")
        if not told or row["asOf"] < EFFECTIVE_FROM:
            raise ValueError(f"{TABLE.name}: {row['host']} {row['model']}: no amount, no source or an old day")
    return found


def tool_rows() -> list[dict[str, str]]:
    """The table of tools. Raises ValueError as `rows` does, and for a row whose model has no price."""
    with TOOLS.open(newline="") as table:
        found = list(csv.DictReader(table))
    known = {(row["host"], row["model"]) for row in rows()}
    for row in found:
        is_told = row["price"] and row["source"].startswith("https://") and row["asOf"] >= EFFECTIVE_FROM
        if not is_told or not any(_holds_for(row, *named) for named in known):
            raise ValueError(f"{TOOLS.name}: {row['host']} {row['model']} {row['tool']}: no source, or no such model")
    return found


def _holds_for(row: dict[str, str], host: str, model: str) -> bool:
    name = row["model"]
    is_named = model.startswith(name[:-1]) if name.endswith("*") else model == name
    return row["host"] == host and is_named


def _tools_of(table: list[dict[str, str]], host: str, model: str) -> dict[str, str]:
    """What calls of tools cost with a model, by kind; a longer name goes before a shorter one."""
    fitting = [row for row in table if _holds_for(row, host, model)]
    return {row["tool"]: row["price"] for row in sorted(fitting, key=lambda row: len(row["model"]))}


def entries() -> Iterator[dict[str, Any]]:
    """The prices as the configuration has them."""
    of_tools = tool_rows()
    for (host, model), group in groupby(rows(), key=lambda row: (row["host"], row["model"])):
        levels = list(group)
        standard = _bands([row for row in levels if not row["tier"]])
        tiers = {}
        for tier in dict.fromkeys(row["tier"] for row in levels if row["tier"]):
            tiers[tier] = _bands([row for row in levels if row["tier"] == tier])
        limits = {name: int(levels[0][name]) for name in LIMITS if levels[0][name]}
        entry = {"host": host, "model": model, "effectiveFrom": EFFECTIVE_FROM, **standard}
        if tools := _tools_of(of_tools, host, model):
            entry["tools"] = tools
        yield {**entry, **({"tiers": tiers} if tiers else {}), **limits}


def _bands(levels: list[dict[str, str]]) -> dict[str, Any]:
    base, *above = levels
    if base["above"] or any(not level["above"] for level in above):
        raise ValueError(f"{TABLE.name}: {base['host']} {base['model']}: the row without above stands first")
    told = _amounts(base)
    if above:
        told["above"] = [{"promptTokens": int(level["above"]), **_amounts(level)} for level in above]
    return told


def _amounts(row: dict[str, str]) -> dict[str, Any]:
    return {name: row[name] for name in AMOUNTS if row[name]}


def document() -> str:
    """default_prices.json: one price a line."""
    lines = ",\n".join(json.dumps(entry) for entry in entries())
    return f'{{"generatedBy": "docs/generate_prices.py", "prices": [\n{lines}\n]}}\n'


def page() -> str:
    """docs/reference/default-prices.md."""
    table = rows()
    parts = [HEAD.format(day=max(row["asOf"] for row in table))]
    for host, group in groupby(table, key=lambda row: row["host"]):
        parts.append(f"\n## {host}\n")
        parts.append("| model | tier, prompts above | input | cached | cache write | for an hour | output |")
        parts.append("|---|---|---|---|---|---|---|")
        for row in group:
            kind = ", ".join(part for part in (row["tier"], row["above"]) if part)
            told = (row["model"], kind, row["input"], row["cachedInput"], row["cacheWrite"], row["cacheWrite1h"])
            parts.append("| " + " | ".join((*told, row["output"])) + " |")
    parts.append(TOOLS_HEAD)
    parts += [f"| {row['host']} | {row['model']} | {row['tool']} | {row['price']} |" for row in tool_rows()]
    return "\n".join(parts) + "\n"


def main() -> int:
    stale = []
    for path, text in ((PRICES, document()), (PAGE, page())):
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
    if stale and "--check" in sys.argv[1:]:
        print(f"{', '.join(stale)}: not up to date: run python docs/generate_prices.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
