"""Manifests that cannot be parsed: `messages.txt` contains the gateway condition for each of them.

PROOFGATE_UPDATE_GOLDEN=1 pytest tests/test_messages.py      # writes the file
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.handlers.reconcile import unreadable_fields
from tests.gateways import manifest

GOLDEN = Path(__file__).parent / "messages.txt"
SPECS: tuple[dict[str, Any], ...] = (
    {"replicas": "two"},
    {"replicas": -1},
    {"replicas": 1.5},
    {"providers": "openai"},
    {"providers": [{"name": "a", "type": "openai"}]},
    {"providers": [{"name": "a b", "type": "OpenAI"}]},
    {"models": [{"provider": "a"}]},
    {"models": {"name": "a"}},
    {"tenants": [{"name": 7}]},
    {"tenants": [{"name": "a", "limits": {"requestsPerMinute": 0}}]},
    {"timeouts": {"drainSeconds": "20s"}},
    {"ledger": None},
    {"providers": []},
)


def messages(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Gateway.from_manifest(manifest(**changes))
    return unreadable_fields(caught.value)


def test_a_manifest_that_cannot_be_read_names_the_field_and_what_it_has_to_be() -> None:
    found = [
        f"{json.dumps(changes)}\n" + "".join(f"  {line}\n" for line in messages(changes)) for changes in SPECS
    ]
    if os.environ.get("PROOFGATE_UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(found))
    assert "\n".join(found) == GOLDEN.read_text()
    assert "Input should" not in GOLDEN.read_text()
