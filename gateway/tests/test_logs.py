"""A process's log lines, as text and as JSON."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys

import pytest

from proofgate.logs import JsonFormatter, TextFormatter

SCRIPT = """
import logging, sys
from proofgate import logs
logs.configure("worker")
log = logging.getLogger("proofgate.test")
log.info("a line of %s", "two\\nlines", extra={"context": {"provider": "openai"}})
try:
    raise ValueError("why")
except ValueError:
    log.exception("it failed")
"""


def lines(log_format: str) -> list[str]:
    command = [sys.executable, "-c", SCRIPT]
    environment = {**os.environ, "PROOFGATE_LOG_FORMAT": log_format}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_json_is_one_object_a_line_whatever_the_message_and_the_exception() -> None:
    first, second = (json.loads(line) for line in lines("json"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "level": "info",
        "logger": "proofgate.test",
        "message": "a line of two\nlines",
        "context": {"component": "worker", "provider": "openai"},
    }
    assert (second["level"], second["message"]) == ("error", "it failed")
    assert second["exception"].endswith("ValueError: why")


def test_text_begins_with_the_time_in_utc_the_level_and_the_logger() -> None:
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO proofgate\.test a line of two\\nlines"
    assert re.fullmatch(pattern, lines("text")[0])


def test_what_others_wrote_forges_no_line_and_steers_no_terminal() -> None:
    forged = "x\n2026-11-28T00:00:00.000Z WARNING a resolved: all\x1b[2J\x9b2J\u202e\u2028"
    record = logging.LogRecord("a", logging.ERROR, __file__, 1, "refused: %s", (forged,), None)
    record.exc_info = (ValueError, ValueError("\x1b[2J"), None)
    text = TextFormatter().format(record)
    assert text.split("\n")[0].endswith(
        "refused: x\\n2026-11-28T00:00:00.000Z WARNING a resolved: all\\x1b[2J\\x9b2J\\u202e\\u2028"
    )
    assert all(line.isprintable() for line in text.split("\n"))
    line = JsonFormatter({}).format(record)
    assert line.isprintable()
    assert json.loads(line)["message"] == f"refused: {forged}"


def test_letters_of_all_languages_stay_as_they_are() -> None:
    record = logging.LogRecord("a", logging.ERROR, __file__, 1, "Größe 大 é", (), None)
    assert "Größe 大 é" in TextFormatter().format(record)
    assert "Größe 大 é" in JsonFormatter({}).format(record)


def test_both_forms_have_the_same_time() -> None:
    record = logging.LogRecord("a", logging.INFO, __file__, 1, "text", (), None)
    record.created, record.msecs = 1_795_824_000.007, 7
    assert TextFormatter().format(record) == "2026-11-28T00:00:00.007Z INFO a text"
    assert json.loads(JsonFormatter({}).format(record))["time"] == "2026-11-28T00:00:00.007Z"


@pytest.mark.parametrize("command", [["serve", "--config", "none.yaml"], ["audit", "index", "--help"]])
def test_a_format_that_there_is_not_is_refused_where_a_log_begins(command: list[str]) -> None:
    environment = {**os.environ, "PROOFGATE_LOG_FORMAT": "xml"}
    run = [sys.executable, "-m", "proofgate", *command]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    expected = "proofgate: $PROOFGATE_LOG_FORMAT is 'xml': set it to json or text\n"
    assert (done.returncode, done.stderr) == ((2, expected) if command[0] == "serve" else (0, ""))
