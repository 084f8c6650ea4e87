"""The chart's generated schema and defaults. `controlplane/test_chart_templates.py` tests them with helm."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts import generate_values
from jsonschema import Draft7Validator

from proofgate_operator.settings import read_settings

CHART = Path(__file__).parents[2] / "charts" / "proofgate-operator"


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    return found


def complaints(values: dict[str, Any]) -> list[str]:
    return [error.message for error in Draft7Validator(schema()).iter_errors(values)]


def test_the_defaults_are_what_the_schema_allows() -> None:
    Draft7Validator.check_schema(schema())
    assert complaints(yaml.safe_load((CHART / "values.yaml").read_text())) == []


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"replica": 2}, "'replica' was unexpected"),
        ({"metrics": {"dashboards": {"enable": True}}}, "'enable' was unexpected"),
        ({"replicas": "2"}, "'2' is not of type 'integer'"),
        ({"replicas": 6}, "6 is greater than the maximum of 5"),
        ({"resyncSeconds": 0.5}, "0.5 is less than the minimum of 1"),
        ({"logLevel": "loud"}, "'loud' is not one of ['debug', 'info', 'warning', 'error']"),
        ({"haproxyImage": ""}, "'' should be non-empty"),
        ({"watchNamespaces": ["a", "a"]}, "has non-unique elements"),
        ({"clusterWide": True, "tenantNamespaces": ["a"]}, "['a'] is expected to be empty"),
        ({"extraEnv": [{"value": "x"}]}, "'name' is a required property"),
        ({"extraEnv": [{"name": "x", "value": None}]}, "None is not of type 'string'"),
    ],
)
def test_a_wrong_value_is_refused(values: dict[str, Any], complaint: str) -> None:
    (found,) = complaints(values)
    assert complaint in found


@pytest.mark.parametrize(
    ("value", "variable"),
    [("podSecurity", "POD_SECURITY"), ("logLevel", "LOG_LEVEL"), ("logFormat", "LOG_FORMAT")],
)
def test_the_operator_takes_every_choice_that_the_chart_offers(value: str, variable: str) -> None:
    for choice in schema()["properties"][value]["enum"]:
        read_settings([], {"WORKER_IMAGE": "w", "HAPROXY_IMAGE": "h", variable: choice})


def test_a_value_without_a_text_is_not_generated() -> None:
    with pytest.raises(generate_values.UndocumentedValue, match=r"metrics\.interval has no text"):
        generate_values.meaning("metrics.interval", {"type": "string"})


def test_a_text_ends_with_what_the_value_can_be_unless_it_explains_that() -> None:
    choices = {"description": "How.", "enum": ["json", "text"]}
    assert generate_values.meaning("a", choices) == "How. Values: json, text."
    explained = {"description": "json: for machines. text: for people.", "enum": ["json", "text"]}
    assert generate_values.meaning("a", explained) == explained["description"]
    assert generate_values.meaning("a", {"description": "So many.", "minimum": 1}) == "So many. Minimum: 1."
    both = {"description": "So many.", "minimum": 1, "maximum": 5}
    assert generate_values.meaning("a", both) == "So many. Range: 1 to 5."
