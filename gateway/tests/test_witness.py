"""The witness's command and its port."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import httpx
import pytest
import witness_double
from conftest import HTTP, PATIENCE_SECONDS, serving
from signing import LEDGER

from proofgate import _core
from proofgate.cli import main
from proofgate.witness import service
from proofgate.witness.service import MAX_BODY_BYTES, create_app

KEY, _ = _core.generate_witness_key("witness.example")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def double() -> witness_double.Witness:
    return witness_double.Witness("state", KEY, "logs/v0", True)


@pytest.fixture
def url(double: witness_double.Witness) -> Iterator[str]:
    with serving(create_app(cast("_core.Witness", double))) as url:
        yield url


def post(url: str, body: bytes = b"question") -> httpx.Response:
    return HTTP.post(f"{url}/add-checkpoint", content=body)


def test_a_cosignature_and_each_refusal_is_answered_as_the_protocol_has_it(
    url: str, double: witness_double.Witness
) -> None:
    answer = post(url)
    assert (answer.status_code, answer.text) == (200, witness_double.LINE)
    double.answers = [(409, "conflict", "7"), (422, "not_consistent", "the proof leads to another root")]
    answer = post(url)
    assert (answer.status_code, answer.text, answer.headers["Content-Type"]) == (
        409,
        "7\n",
        "text/x.tlog.size",
    )
    assert post(url).status_code == 422
    assert double.asked == [b"question"] * 3
    assert HTTP.get(f"{url}/add-checkpoint").status_code == 405
    lines = HTTP.get(f"{url}/metrics").text.splitlines()
    for line in (
        'proofgate_witness_requests_total{result="cosigned"} 1',
        'proofgate_witness_requests_total{result="conflict"} 1',
        'proofgate_witness_requests_total{result="not_consistent"} 1',
        'proofgate_witness_cosigned_entries{origin="log.example/\\"a\\""} 7',
    ):
        assert line in lines


def test_what_was_cosigned_is_handed_out(url: str) -> None:
    assert HTTP.get(f"{url}/ab/checkpoint").text == "note"
    assert HTTP.get(f"{url}/cd/checkpoint").json()["error"]["code"] == "no_checkpoint"
    assert HTTP.get(f"{url}/healthz").text == "ok\n"


def test_a_body_that_is_too_large_never_comes_or_is_cut_off_is_not_cosigned(
    url: str, double: witness_double.Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post(url, b"x" * (MAX_BODY_BYTES + 1)).status_code == 413
    monkeypatch.setattr(service, "BODY_TIMEOUT_SECONDS", 0.1)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
    connection.putrequest("POST", "/add-checkpoint")
    connection.putheader("Content-Length", "5")
    connection.endheaders(b"x")
    assert json.loads((answer := connection.getresponse()).read())["error"]["code"] == "timeout"
    assert answer.status == 408
    connection.close()
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS) as cut:
        cut.sendall(b"POST /add-checkpoint HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nx")
    assert post(url).status_code == 200
    assert double.asked == [b"question"]


def test_a_witness_that_cannot_start_says_why(tmp_path: Path, capsys: Capture) -> None:
    key, logs = tmp_path / "key", tmp_path / "logs"
    arguments = ["audit", "witness", "--state", str(tmp_path), "--signing-key", str(key), "--logs", str(logs)]
    assert main(arguments) == 2
    assert "key cannot be read" in capsys.readouterr().err
    key.write_text("something that nobody may see")
    logs.write_text("logs/v0")
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "--signing-key: invalid key text: not a private note key" in told
    assert "nobody may see" not in told
    key.write_text(KEY)
    assert main(arguments) == 1
    assert "[witness_state_missing]" in capsys.readouterr().err
    logs.write_text("logs/v9")
    assert main(arguments) == 2
    assert "[witness_log_list]" in capsys.readouterr().err
    logs.write_bytes(b"\xff")
    assert main(arguments) == 2
    assert "is not text" in capsys.readouterr().err


def test_the_key_of_a_witness_is_another_than_a_ledgers(tmp_path: Path, capsys: Capture) -> None:
    assert main(["keys", "generate", "witness.example", "--witness", "--out", str(tmp_path)]) == 0
    assert "only for a witness" in capsys.readouterr().out
    signing = (tmp_path / "signing-key").read_text()
    assert _core.Witness(str(tmp_path / "state"), signing, "logs/v0", True).verifying_key
    with pytest.raises(ValueError, match="key text"):
        _core.Witness(str(tmp_path / "other"), LEDGER.signing, "logs/v0", True)
