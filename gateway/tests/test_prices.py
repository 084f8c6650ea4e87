"""Prices: valid configurations, and the list of `proofgate gateway prices`."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import resources
from typing import Any

import pytest
from conftest import ConfigDirectory

from proofgate import config
from proofgate.cli import main
from proofgate.config.prices import DefaultPrice, default_prices_for, nanodollars

Capture = pytest.CaptureFixture[str]

PRICES = """
prices:
  - model: gpt-4o-mini
    effectiveFrom: 2025-01-01
    input: '0.2'
    output: '0.8'
    tools: {web_search: '0.01', web_fetch: '0'}
  - model: gpt-4*
    provider: openai
    effectiveFrom: '2026-06-01'
    input: '0.25'
    cachedInput: '0.000001'
    output: '1'
    perRequest: '0.01'
"""


def problems(directory: ConfigDirectory, section: str) -> list[tuple[str, str]]:
    directory.append(section)
    with pytest.raises(config.InvalidConfigError) as caught:
        config.load(directory.file)
    return [(problem.code, problem.message) for problem in caught.value.problems]


def listed(directory: ConfigDirectory, capsys: Capture, *arguments: str) -> Any:
    assert main(["gateway", "prices", str(directory.file), "--output", "json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_what_is_listed_is_what_holds_on_the_day(config_directory: ConfigDirectory, capsys: Capture) -> None:
    config_directory.append(PRICES)
    (config_directory.path / "openai-key").unlink()
    first, same_upstream = listed(config_directory, capsys, "--at", "2025-01-01")
    assert first == {
        "model": "gpt-4o-mini",
        "provider": "openai",
        "upstream_model": "gpt-4o-mini",
        "price": {
            "source": "configuration",
            "effective_from": "2025-01-01",
            **dict.fromkeys(("input", "cached_input", "cache_write", "audio_input"), "0.2"),
            "cache_write_1h": "0.4",
            **dict.fromkeys(("output", "audio_output"), "0.8"),
            "per_request": "0",
            "tools": {"web_fetch": "0", "web_search": "0.01"},
            "above": [],
            "tiers": {},
            "max_input_tokens": None,
            "max_output_tokens": None,
        },
        "next_change": "2026-06-01",
    }
    assert same_upstream["price"] == first["price"]
    earlier, _ = listed(config_directory, capsys, "--at", "2024-12-31")
    assert earlier["price"] is None


def test_the_listing_is_a_table_for_people(config_directory: ConfigDirectory, capsys: Capture) -> None:
    config_directory.append(PRICES)
    assert main(["gateway", "prices", str(config_directory.file), "--at", "2025-06-01"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["model", "provider"]
    assert first.split()[:5] == ["gpt-4o-mini", "openai", "gpt-4o-mini", "2025-01-01", "0.2"]
    assert main(["gateway", "prices", str(config_directory.file), "--at", "yesterday"]) == 2


def test_what_a_call_of_a_tool_costs_is_listed(config_directory: ConfigDirectory, capsys: Capture) -> None:
    config_directory.append(PRICES)
    assert main(["gateway", "prices", str(config_directory.file), "--at", "2025-06-01"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["each", "web_search", "0.01"] in lines


def test_default_prices_of_tools_are_those_of_the_model_whose_name_they_begin() -> None:
    def tools(host: str, model: str) -> dict[str, str]:
        (price,) = default_prices_for([(host, model)])
        return price.tools

    assert tools("api.anthropic.com", "claude-opus-5-5") == {"web_search": "0.01", "web_fetch": "0"}
    assert tools("api.openai.com", "gpt-4.1")["web_search"] == "0.01"
    assert tools("api.openai.com", "gpt-4.1-mini")["web_search"] == "0.0132"
    assert "code_interpreter" not in tools("api.openai.com", "gpt-5.5")
    assert tools("generativelanguage.googleapis.com", "gemini-2.5-pro")["googleSearch"] == "0.035"
    assert "googleSearch" not in tools("generativelanguage.googleapis.com", "gemini-4-argon")


def test_every_price_that_comes_along_can_be_read_and_holds_for_a_named_host() -> None:
    entries = json.loads(resources.files("proofgate.config").joinpath("default_prices.json").read_text())[
        "prices"
    ]
    prices = [DefaultPrice.model_validate(entry) for entry in entries]
    named = [(price.host, price.model) for price in prices]
    assert len(set(named)) == len(named) > 500
    assert {"claude-opus-5-5", "gpt-5.5", "gemini-4-argon"} <= {price.model for price in prices}


def test_only_the_default_prices_of_a_configurations_models_reach_the_core(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.append("\ndefaultPrices: true\n")
    core = json.loads(config.load(config_directory.file).to_core_json(0))
    assert [(price["host"], price["model"], price["default"]) for price in core["prices"]] == [
        ("api.openai.com", "gpt-4o-mini", True)
    ]


@pytest.mark.parametrize(
    ("host", "model", "found"),
    [
        ("api.anthropic.com", "claude-opus-5-5", True),
        ("api.anthropic.com", "claude-*", True),
        ("api.anthropic.com", "*", True),
        ("api.anthropic.com", "gpt-5.5", False),
        ("llm.example.com", "claude-opus-5-5", False),
        ("bedrock-runtime.eu-west-1.amazonaws.com", "global.anthropic.claude-opus-5-5", True),
        ("bedrock-runtime.eu-west-1.evil.example", "global.anthropic.claude-opus-5-5", False),
        ("europe-west1-aiplatform.googleapis.com", "claude-opus-5-5", True),
    ],
)
def test_a_default_price_is_for_its_vendors_own_hosts(host: str, model: str, found: bool) -> None:
    assert bool(default_prices_for([(host, model)])) is found


def test_prices_by_tier_duration_and_length_are_listed(
    config_directory: ConfigDirectory, capsys: Capture
) -> None:
    config_directory.append(
        """
prices:
  - model: gpt-4o-mini
    effectiveFrom: 2025-01-01
    input: '1'
    cacheWrite1h: '2.5'
    output: '4'
    maxOutputTokens: 16384
    above: [{promptTokens: 272000, input: '2', output: '6'}]
    tiers: {priority: {input: '2', output: '8', above: [{promptTokens: 272000, input: '4', output: '12'}]}}
"""
    )
    price = listed(config_directory, capsys, "--at", "2025-01-01")[0]["price"]
    assert (price["cache_write_1h"], price["max_output_tokens"]) == ("2.5", 16384)
    assert [(level["prompt_tokens"], level["input"]) for level in price["above"]] == [(272000, "2")]
    assert price["tiers"]["priority"]["output"] == "8"
    assert price["tiers"]["priority"]["above"][0]["output"] == "12"
    assert main(["gateway", "prices", str(config_directory.file), "--at", "2025-06-01"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table[2:5]] == ["standard,", "priority", "priority,"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input", "0.2"),
        ("input", "'-1'"),
        ("input", "'1e3'"),
        ("input", "'0.0000001'"),
        ("input", "'1000000.1'"),
        ("perRequest", "'1000.5'"),
        ("tools", "{web_search: 0.01}"),
        ("tools", "{web_search: '-1'}"),
        ("tools", "{a tool: '0.01'}"),
        ("effectiveFrom", "2026-02-30"),
        ("effectiveFrom", "'2026-01-01T00:00:00Z'"),
        ("currency", "EUR"),
        ("model", "a*b"),
        ("model", "''"),
        ("cacheWrite1h", "'-1'"),
        ("above", "[{input: '1', output: '1'}]"),
        ("above", "[{promptTokens: 5, input: '1', output: '1'}, {promptTokens: 5, input: '1', output: '1'}]"),
        ("tiers", "{Fast Mode: {input: '1', output: '1'}}"),
        ("tiers", "{fast: {input: '1'}}"),
        ("maxOutputTokens", "0"),
    ],
)
def test_a_price_that_cannot_be_exact_is_refused(
    config_directory: ConfigDirectory, field: str, value: str
) -> None:
    entry = {"model": "m", "effectiveFrom": "2026-01-01", "input": "'1'", "output": "'1'", field: value}
    section = "\nprices:\n  - {" + ", ".join(f"{name}: {said}" for name, said in entry.items()) + "}\n"
    config_directory.append(section)
    with pytest.raises(config.InvalidConfigError):
        config.load(config_directory.file)


def test_a_price_names_a_provider_that_exists_and_stands_once(config_directory: ConfigDirectory) -> None:
    entry = "{model: m, effectiveFrom: 2026-01-01, input: '1', output: '1'}"
    other = entry.replace("{", "{provider: opena1, ")
    found = problems(config_directory, f"\nprices: [{entry}, {entry}, {other}]\n")
    assert [code for code, _ in found] == ["config_duplicate_price", "config_unknown_provider"]


@pytest.mark.parametrize("text", ["0.000000001", "1", "25.50", "999999999.999999999", "007.10"])
def test_dollars_are_exact_in_nanodollars(text: str) -> None:
    assert nanodollars(text) == Decimal(text) * 10**9


def test_budgets_of_tenants_keys_and_models_reach_the_core_as_they_are_written(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.replace(
        "    models: [gpt-4o-mini]\n",
        "    limits: {dollarsPerDay: '0.000000001', dollarsPerMonth: '999999999.999999999'}\n"
        "    keyLimits: {dollarsPerDay: '25.50'}\n"
        "    modelBudgets: [{model: fast, dollarsPerMonth: '3'}]\n",
    )
    acme = config_directory.core()["tenants"][0]
    assert acme["limits"]["dollarsPerDay"] == "0.000000001"
    assert acme["limits"]["dollarsPerMonth"] == "999999999.999999999"
    assert acme["keyLimits"]["dollarsPerDay"] == "25.50"
    assert acme["modelBudgets"] == [{"model": "fast", "dollarsPerDay": None, "dollarsPerMonth": "3"}]


@pytest.mark.parametrize("amount", ["'0'", "'0.0'", "25", "'-1'", "'1000000000'", "'0.0000000001'", "'1e3'"])
def test_a_budget_that_is_none_is_refused(config_directory: ConfigDirectory, amount: str) -> None:
    config_directory.replace("    models: [gpt-4o-mini]\n", f"    limits: {{dollarsPerDay: {amount}}}\n")
    with pytest.raises(config.InvalidConfigError, match="dollarsPerDay"):
        config.load(config_directory.file)


def test_a_budget_is_for_a_model_that_exists_and_stands_once(config_directory: ConfigDirectory) -> None:
    budgets = ", ".join(f"{{model: {model}, dollarsPerDay: '1'}}" for model in ("fast", "fast", "fsat"))
    config_directory.replace("    models: [gpt-4o-mini]\n", f"    modelBudgets: [{budgets}]\n")
    with pytest.raises(config.InvalidConfigError) as caught:
        config.load(config_directory.file)
    codes = [problem.code for problem in caught.value.problems]
    assert codes == ["config_duplicate_name", "config_unknown_model"]


BUDGET = "    limits: {dollarsPerDay: '5'}\n"
PRICE_OF_ALL = "{model: gpt-4o-mini, effectiveFrom: 2026-01-01, input: '1', output: '1'}"


@pytest.mark.parametrize(
    ("terms", "section", "warned"),
    [
        (BUDGET, "", ["fast", "gpt-4o-mini"]),
        (BUDGET, f"prices: [{PRICE_OF_ALL}]", []),
        (BUDGET, f"prices: [{PRICE_OF_ALL.replace('gpt-4o-mini', 'gpt-4*')}]", []),
        (BUDGET, f"prices: [{PRICE_OF_ALL.replace('gpt-4o-mini', 'gpt-5*')}]", ["fast", "gpt-4o-mini"]),
        (BUDGET, "defaultPrices: true", []),
        ("    keyLimits: {dollarsPerMonth: '5'}\n    models: [fast]\n", "", ["fast"]),
        ("    modelBudgets: [{model: fast, dollarsPerDay: '1'}]\n", "", ["fast"]),
        ("    limits: {tokensPerDay: 5}\n", "", []),
    ],
)
def test_a_budget_in_money_whose_models_have_no_price_is_told_and_fails_a_validation(
    config_directory: ConfigDirectory, capsys: Capture, terms: str, section: str, warned: list[str]
) -> None:
    config_directory.replace("    models: [gpt-4o-mini]\n", terms)
    config_directory.append(f"\n{section}\n")
    warnings = config.load(config_directory.file).warnings
    assert {warning.code for warning in warnings} <= {"config_budget_without_price"}
    assert [warning.message.split(", but the model ")[1].split()[0] for warning in warnings] == warned
    assert all("acme has a budget in money" in warning.message for warning in warnings)
    assert main(["validate", str(config_directory.file)]) == (2 if warned else 0)
    told = capsys.readouterr()
    assert ("price_unknown" in told.err) is bool(warned)
