"""The limits that a namespace's tenants share, in the configuration that the worker gives to the core."""

from __future__ import annotations

import json

from conftest import ConfigDirectory

from proofgate.config import load
from proofgate.limit_kinds import LIMIT_KINDS


def test_what_a_namespace_shares_reaches_the_core(config_directory: ConfigDirectory) -> None:
    shared = "namespaceLimits: {requestsPerMinute: 60, dollarsPerDay: '2.5'}"
    config_directory.append(f"plans: [{{name: gold, {shared}}}, {{name: basic}}]\n")
    gold, basic = json.loads(load(config_directory.file).to_core_json(0))["plans"]
    nothing = dict.fromkeys(kind.alias for kind in LIMIT_KINDS)
    assert gold["namespaceLimits"] == {**nothing, "requestsPerMinute": 60, "dollarsPerDay": "2.5"}
    assert basic["namespaceLimits"] == nothing
