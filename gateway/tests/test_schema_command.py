"""`proofgate gateway schema`: the schema with which an editor completes and checks a configuration file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from proofgate.cli import main
from proofgate.config.document import parse_document

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def example() -> dict[str, Any]:
    """The README's configuration."""
    text = README.read_text().partition("## The configuration")[2]
    data: dict[str, Any] = parse_document(text.partition("```yaml\n")[2].partition("```")[0]).data
    return data


def test_the_schema_takes_the_example_and_refuses_a_field_that_is_not_there(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", "schema"]) == 0
    validator = jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out))
    validator.validate(example)
    example["limits"]["bodybytes"] = 1
    assert not validator.is_valid(example)
