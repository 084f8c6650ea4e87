"""Static fields that the provider is known to refuse for a model."""

from __future__ import annotations

import json

import pytest
from conftest import ConfigDirectory

from proofgate import _core
from proofgate.config import load


def _knows(monkeypatch: pytest.MonkeyPatch, *constraints: object) -> None:
    rows = [{"constraint": constraint, "source": "the vendor's page"} for constraint in constraints]
    monkeypatch.setattr(_core, "model_constraints", lambda _model: json.dumps(rows))


@pytest.mark.parametrize(
    ("constraint", "fields", "named"),
    [
        ({"EffortLevels": ["low", "high"]}, "bodyFields: {reasoning_effort: max}", ["reasoning_effort"]),
        ({"EffortLevels": ["low", "high"]}, "bodyFields: {reasoning: {effort: max}}", ["reasoning"]),
        ({"EffortLevels": ["low", "high"]}, "bodyFields: {reasoning_effort: high}", []),
        ({"EffortLevels": ["low", "high"]}, "bodyFields: {reasoning_effort: none}", []),
        ("NoThinking", "bodyFields: {thinking: {type: enabled}}", ["thinking"]),
        ("ThinkingBudget", "bodyFields: {output_config: {effort: low}}", ["output_config"]),
        ("DefaultSampling", "bodyFields: {temperature: 0.5, top_p: 1}", ["temperature"]),
        ("OneOfTemperatureAndTopP", "bodyFields: {temperature: 0.5, top_p: 0.5}", ["top_p"]),
        ("OneOfTemperatureAndTopP", "bodyFields: {temperature: 0.5}", []),
        ("NoStop", "bodyFields: {stop: [a]}", ["stop"]),
        ("NoPenalties", "bodyFields: {presence_penalty: 0.5, frequency_penalty: 0}", ["presence_penalty"]),
        ("ResponsesOnly", "responses: Translated", ["responses"]),
        ("ResponsesOnly", "responses: Native", []),
        ("AnotherRule", "bodyFields: {provider: {sort: price}}", []),
    ],
)
def test_a_static_field_that_a_model_of_the_provider_refuses_is_a_warning_that_names_the_rule(
    config_directory: ConfigDirectory,
    monkeypatch: pytest.MonkeyPatch,
    constraint: object,
    fields: str,
    named: list[str],
) -> None:
    _knows(monkeypatch, constraint)
    url = "    baseURL: https://api.openai.com/v1/\n"
    config_directory.replace(url, f"{url}    {fields}\n")
    warnings = load(config_directory.file).warnings
    told = {
        warning.message.split(" refuses ")[1].split()[0].removeprefix("bodyFields.") for warning in warnings
    }
    assert told == set(named)
    rule = next(iter(constraint)) if isinstance(constraint, dict) else str(constraint)
    for warning in warnings:
        assert warning.code == "config_refused_field"
        assert f"({rule};" in warning.message
        assert "the vendor's page" in warning.message
        assert warning.line is not None


def test_a_provider_without_static_fields_is_not_looked_up(
    config_directory: ConfigDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    _knows(monkeypatch, "NoThinking", "DefaultSampling")
    assert load(config_directory.file).warnings == ()
