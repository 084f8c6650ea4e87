"""Warnings about static fields and settings of a provider that one of its models is known to refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proofgate import _core
from proofgate.config.core_json import targets_of
from proofgate.config.document import FieldPath
from proofgate.config.problems import Findings, Problem, with_line
from proofgate.config.settings import Provider, Settings

REFUSED_FIELD = "config_refused_field"

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class _Constraint:
    """A constraint in the table of models: its name, its values if any, and its source."""

    name: str
    values: tuple[str, ...]
    source: str


def check_refused_fields(settings: Settings, findings: Findings) -> None:
    """Warns about each field of a provider that one of its models refuses, according to the table of
    models."""
    for position, provider in enumerate(settings.providers):
        if not provider.body_fields and provider.responses != "Translated":
            continue
        for model in sorted(_upstream_models_of(provider.name, settings)):
            for field, known in _refused_fields(provider, model):
                message = (
                    f"{model} refuses {field} ({known.name}; source: {known.source}). Remove the "
                    "field, or configure a separate provider for this model"
                )
                path: FieldPath = ("providers", position, *field.split("."))
                findings.warnings.append(with_line(findings.document, Problem(REFUSED_FIELD, path, message)))


def _upstream_models_of(provider: str, settings: Settings) -> set[str]:
    targets = (target for model in settings.models for target in targets_of(model))
    return {name for at, name in targets if at == provider}


def _refused_fields(provider: Provider, model: str) -> Iterator[tuple[str, _Constraint]]:
    """The fields of a provider that a model refuses: their paths, with the first reason for each."""
    seen: set[str] = set()
    for known in _constraints_for(model):
        fields = [f"bodyFields.{name}" for name in _fields_refused_by(known, provider.body_fields or {})]
        if known.name == "ResponsesOnly" and provider.responses == "Translated":
            fields.append("responses")
        # The first of two constraints on the same field applies.
        for field in fields:
            if field not in seen:
                seen.add(field)
                yield field, known


def _constraints_for(model: str) -> list[_Constraint]:
    found = []
    for row in json.loads(_core.model_constraints(model)):
        constraint = row["constraint"]
        name, values = next(iter(constraint.items())) if isinstance(constraint, dict) else (constraint, [])
        found.append(_Constraint(name, tuple(values), row["source"]))
    return found


def _fields_refused_by(known: _Constraint, fields: Fields) -> list[str]:
    """The names of the fields that a constraint refuses."""
    match known.name:
        case "NoThinking":
            return [name for name in (*_effort_fields(fields), "thinking") if name in fields]
        case "ThinkingBudget":
            return list(_effort_fields(fields))
        case "EffortLevels":
            efforts = _effort_fields(fields).items()
            return [name for name, effort in efforts if effort not in (*known.values, "none")]
        case "DefaultSampling":
            return [name for name in ("temperature", "top_p") if fields.get(name, 1) != 1]
        case "OneOfTemperatureAndTopP":
            return ["top_p"] if {"temperature", "top_p"} <= fields.keys() else []
        case "NoStop":
            return ["stop"] if fields.get("stop") else []
        case "NoPenalties":
            return [name for name in ("frequency_penalty", "presence_penalty") if fields.get(name)]
    return []


def _effort_fields(fields: Fields) -> dict[str, Any]:
    """The fields that set an effort, with their values: two of OpenAI and one of Anthropic."""
    found = {"reasoning_effort": fields["reasoning_effort"]} if "reasoning_effort" in fields else {}
    for name in ("reasoning", "output_config"):
        value = fields.get(name)
        if isinstance(value, Mapping) and "effort" in value:
            found[name] = value["effort"]
    return found
