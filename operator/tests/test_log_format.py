"""The format of the log lines of a gateway's processes."""

import json
import logging
import sys
from typing import Any

import pytest

from proofgate_operator.logs import JsonFormatter
from tests.auditing import AUDITOR
from tests.test_manifests import manifests

NAMES = {"worker", "auditor", "haproxy-sidecar"}


def variables(**changes: Any) -> dict[str, str]:
    """Return the log format by container, for containers with the variable."""
    pods = [
        found["spec"]["template"]["spec"]
        for found in manifests(auditor=AUDITOR, **changes)
        if "template" in found.get("spec", {})
    ]
    containers = [container for pod in pods for container in pod["containers"]]
    assert {container["name"] for container in containers} >= NAMES
    return {
        container["name"]: variable["value"]
        for container in containers
        for variable in container.get("env", ())
        if variable["name"] == "PROOFGATE_LOG_FORMAT"
    }


def test_every_process_of_a_gateway_logs_json_where_its_manifest_says_so() -> None:
    assert variables(logFormat="json") == dict.fromkeys(NAMES, "json")


@pytest.mark.parametrize("changes", [{}, {"logFormat": "text"}], ids=["absent", "text"])
def test_text_needs_no_variable_so_no_pod_is_replaced_for_it(changes: dict[str, str]) -> None:
    assert variables(**changes) == {}


def test_the_operators_json_has_the_fields_of_the_other_processes() -> None:
    record = logging.LogRecord("kopf.objects", logging.WARNING, __file__, 1, "reads of %s", ("a\nkey",), None)
    record.created, record.msecs = 1_795_824_000.007, 7
    record.k8s_ref = {"kind": "GovernanceGateway", "namespace": "team", "name": "llm"}
    assert json.loads(JsonFormatter().format(record)) == {
        "time": "2026-11-28T00:00:00.007Z",
        "level": "warning",
        "logger": "kopf.objects",
        "message": "reads of a\nkey",
        "context": {"component": "operator", "object": record.k8s_ref},
    }


def test_a_failure_is_in_the_line_that_reports_it() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, __file__, 1, "it failed", (), sys.exc_info())
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["exception"].endswith("ValueError: why")


def test_what_others_wrote_steers_no_terminal_that_shows_the_log() -> None:
    record = logging.LogRecord("a", logging.ERROR, __file__, 1, "Größe \x9b2J\u202e\u2028", (), None)
    line = JsonFormatter().format(record)
    assert line.isprintable()
    assert "Größe" in line
    assert json.loads(line)["message"] == "Größe \x9b2J\u202e\u2028"
