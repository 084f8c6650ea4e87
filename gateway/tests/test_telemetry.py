"""Telemetry in the configuration, and the export thread's behavior on errors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import pytest
from conftest import PATIENCE_SECONDS, ConfigDirectory, eventually, started

from proofgate.config import load
from proofgate.telemetry import exporter
from proofgate.telemetry.exporter import TelemetryExporter
from proofgate.telemetry.names import NAMES, OPERATIONS

if TYPE_CHECKING:
    from proofgate import _core


def test_the_core_is_told_of_the_access_log_and_of_traces(config_directory: ConfigDirectory) -> None:
    config_directory.append(
        "telemetry: {accessLog: Errors, endpoint: 'http://127.0.0.1:1',"
        " traces: {ratio: 0.5, propagate: false}}\n"
    )
    told = {"accessLog": "Errors", "traces": {"ratio": 0.5, "propagate": False}}
    assert config_directory.core()["telemetry"] == told


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ("{traces: {}}", "config_telemetry"),
        ("{metrics: true}", "config_telemetry"),
        ("{endpoint: 'http://h', caFile: ca}", "config_telemetry"),
        ("{endpoint: 'http://h', headers: [{name: A, valueFile: a}]}", "config_telemetry"),
        (
            "{endpoint: 'https://h', headers: [{name: A, valueFile: a}, {name: a, valueFile: b}]}",
            "config_duplicate_name",
        ),
        ("{endpoint: 'https://h', headers: [{name: 'A:', valueFile: a}]}", "config_invalid_value"),
        ("{endpoint: 'https://h', headers: [{name: Content-Length, valueFile: a}]}", "config_invalid_value"),
        ("{endpoint: 'https://user:pass@h'}", "config_invalid_value"),
        ("{endpoint: 'https://h', traces: {ratio: 1.5}}", "config_invalid_value"),
        ("{accessLog: Some}", "config_invalid_value"),
        ("{resourceAttributes: [{name: A b, value: c}]}", "config_invalid_value"),
        (
            "{resourceAttributes: [{name: a, value: b}, {name: a, value: c}]}",
            "config_duplicate_name",
        ),
    ],
)
def test_telemetry_that_cannot_be_meant_is_refused(
    config_directory: ConfigDirectory, section: str, code: str
) -> None:
    config_directory.append(f"telemetry: {section}\n")
    assert set(config_directory.codes()) == {code}


def test_the_two_versions_of_the_conventions_differ_in_what_they_renamed() -> None:
    assert NAMES["Latest"].cache_write_tokens == "gen_ai.usage.cache_write.input_tokens"
    assert NAMES["V1_41"].cache_write_tokens == "gen_ai.usage.cache_creation.input_tokens"


@pytest.mark.parametrize(
    ("endpoint", "operation"),
    [
        ("/v1/audio/transcriptions", "transcription"),
        ("/v1/audio/translations", "translation"),
        ("/v1/images/edits", "image_edit"),
        ("/v1/images/variations", "image_variation"),
    ],
)
def test_an_exchange_with_a_form_is_no_chat(endpoint: str, operation: str) -> None:
    assert OPERATIONS[endpoint] == operation


def test_spans_name_the_session_the_agent_and_the_pseudonym_of_the_end_user() -> None:
    resources = pytest.importorskip("opentelemetry.sdk.resources")
    from proofgate.telemetry.spans import ExchangeSpans

    told: dict[str, object] = {
        "ts": 1,
        "duration_us": 9,
        "sent_us": 2,
        "status": 200,
        "attempts": 1,
        "stream": False,
    }
    told |= {"id": "req_1", "tenant": "acme", "outcome": "complete", "provider": "vendor"}
    told |= {"request_bytes": 1, "response_bytes": 1, "endpoint": "/v1/messages"}
    told |= {"trace_id": "7a" * 16, "span_id": "1d" * 8, "client_span_id": "2e" * 8}
    said = {"session": "5f1d", "agent": "reviewer", "parent_agent": "lead", "end_user": "1d" * 16}
    spans = ExchangeSpans(resources.Resource.get_empty(), NAMES["Latest"], {})
    expected = {
        "gen_ai.conversation.id": "5f1d",
        "gen_ai.agent.id": "reviewer",
        "proofgate.parent_agent": "lead",
        "enduser.pseudo.id": "1d" * 16,
    }
    both = spans.build([told | said])
    assert len(both) == 2
    assert all(expected.items() <= dict(span.attributes or {}).items() for span in both)
    assert not any(expected.keys() & dict(span.attributes or {}).keys() for span in spans.build([told]))


def test_without_opentelemetry_nothing_is_exported_and_that_is_said_and_counted(
    config_directory: ConfigDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "TRACES_INTERVAL_SECONDS", 0.01)
    monkeypatch.delitem(sys.modules, "proofgate.telemetry.collector", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.")]:
        monkeypatch.setitem(sys.modules, name, None)
    config_directory.append("telemetry: {endpoint: 'http://127.0.0.1:1', metrics: true}\n")
    config = load(config_directory.file)
    with started(config) as worker:
        thread = TelemetryExporter(cast("_core.Worker", worker))
        thread.apply_config(config)
        assert eventually(lambda: "metrics" in worker.lost)
        thread.close(PATIENCE_SECONDS)
    assert thread.status() == {"exporting": True, "error": "ModuleNotFoundError"}
    assert worker.lost["metrics"] >= 1


def test_a_configuration_that_asks_for_nothing_has_no_thread(config_directory: ConfigDirectory) -> None:
    config = load(config_directory.file)
    with started(config) as worker:
        thread = TelemetryExporter(cast("_core.Worker", worker))
        thread.apply_config(config)
        thread.close()
    assert thread.status() == {"exporting": False, "error": None}
