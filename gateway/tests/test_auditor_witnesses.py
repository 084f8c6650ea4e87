"""Connections to witnesses: the requests, the timeouts, and the rejected answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler as Handler
from pathlib import Path
from typing import cast

import auditor_double
import pytest
from certificates import write_identity
from conftest import PATIENCE_SECONDS, eventually
from loopback import answer, answering

from proofgate import _core
from proofgate.auditor.witnesses import Witnesses, WitnessUrlError, check_urls
from proofgate.timed_request import HttpRequestLimits

pytestmark = pytest.mark.usefixtures("fake_auditor")

KEYS = ("ledger", "state", "PRIVATE+KEY+a+1a2b3c4d+c2VjcmV0", "vkey", 1, 1, 1, True)
BOUNDS = HttpRequestLimits(seconds=PATIENCE_SECONDS, max_response_bytes=1000)


def double_of(*questions: list[str]) -> auditor_double.Auditor:
    names = "\n".join(f"w{number}" for number, _ in enumerate(questions))
    double = auditor_double.Auditor(*KEYS, policy=names.encode())
    double.questions = dict(enumerate(questions))
    return double


def witnesses_of(
    double: auditor_double.Auditor, *urls: str | None, bounds: HttpRequestLimits = BOUNDS
) -> Witnesses:
    return Witnesses(cast("_core.Auditor", double), urls, bounds)


def base(url: str) -> str:
    return url.removesuffix("/jwks?version=1")


def test_a_question_is_one_post_below_the_prefix_and_its_answer_goes_to_the_core() -> None:
    seen: list[tuple[str, str, bytes]] = []

    def respond(handler: Handler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        seen.append((handler.command, handler.path, body))
        handler.send_response(409)
        handler.send_header("Content-Type", "text/x.tlog.size")
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"7\n")

    double = double_of(["old 0\n\nnote — a\n"])
    with answering(respond) as url:
        assert witnesses_of(double, f"{base(url)}/prefix").request_cosignature(0) == "cosigned"
    assert seen == [("POST", "/prefix/add-checkpoint", "old 0\n\nnote — a\n".encode())]
    assert double.answered == [(0, 409, "text/x.tlog.size", b"7\n")]
    assert witnesses_of(double, None).request_cosignature(0) is None, "no further request is due"


def drip(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("respond", "why"),
    [
        (answer(b"x", status=302), "redirect"),
        (answer(b"x" * 1001), "too_large"),
        (answer(b"x", length=2), "bad_answer"),
        (lambda handler: handler.wfile.write(b"SSH-2.0\r\n"), "bad_answer"),
    ],
)
def test_what_is_no_answer_is_told_to_the_core(respond: Callable[[Handler], None], why: str) -> None:
    double = double_of(["question"])
    with answering(respond) as url:
        assert witnesses_of(double, base(url)).request_cosignature(0) == why
    assert (double.failed, double.answered) == ([(0, why)], [])


def test_an_answer_that_drips_without_end_is_given_up() -> None:
    double = double_of(["question"])
    with answering(drip) as url:
        bounds = HttpRequestLimits(seconds=0.1, max_response_bytes=1 << 20)
        assert witnesses_of(double, base(url), bounds=bounds).request_cosignature(0) == "timeout"


def test_nobody_is_waited_for_by_another_and_none_at_the_end() -> None:
    hangs, ends = threading.Event(), threading.Event()

    def hang(_: Handler) -> None:
        hangs.set()
        ends.wait(PATIENCE_SECONDS)

    double = double_of(["question"], ["question"])
    with answering(hang) as slow, answering(answer(b"x")) as url:
        witnesses = witnesses_of(double, base(slow), base(url))
        witnesses.start()
        assert hangs.wait(PATIENCE_SECONDS)
        assert eventually(lambda: [number for number, *_ in double.answered] == [1])
        witnesses.stop()
        ends.set()


def test_proxies_of_the_environment_have_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    double = double_of(["question"])
    with answering(answer(b"x")) as url:
        assert witnesses_of(double, base(url)).request_cosignature(0) == "cosigned"


def test_an_authority_of_its_own_is_trusted_in_place_of_the_systems_as_it_is_just_now(tmp_path: Path) -> None:
    certificate, key = write_identity(tmp_path)
    authorities = tmp_path / "authorities"
    double = double_of(["one", "two", "three"])
    with answering(answer(b"x"), (certificate, key)) as url:
        assert witnesses_of(double, base(url)).request_cosignature(0) == "tls"
        witnesses = Witnesses(cast("_core.Auditor", double), [base(url)], BOUNDS, authorities)
        assert witnesses.request_cosignature(0) == "tls", "the authority's file does not exist"
        authorities.write_bytes(certificate.read_bytes())
        assert witnesses.request_cosignature(0) == "cosigned"


def test_after_a_conflict_it_is_asked_again_at_once_and_how_it_ended_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    double = double_of(["one", "two", "three"])
    double.result = "conflict"
    with answering(answer(b"x")) as url:
        witnesses_of(double, base(url)).request_due()
        assert len(double.answered) == 3
        assert caplog.records == []
        double.result = "fork"
        double.questions = {0: ["one", "two"]}
        witnesses = witnesses_of(double, base(url))
        assert [witnesses.request_cosignature(0), witnesses.request_cosignature(0)] == ["fork", "fork"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "witness w0" in caplog.text
    assert "[fork]" in caplog.text


def test_a_state_that_cannot_be_written_is_told_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    double = double_of(["question"])
    double.failure = "no space left"
    assert witnesses_of(double, "http://127.0.0.1:1").request_cosignature(0) == "state"
    assert "no space left" in caplog.text


def test_plain_http_is_for_this_machine_or_where_it_is_allowed() -> None:
    of = [("a", "http://127.0.0.1:9/"), ("b", None), ("c", "https://c.example/x/")]
    assert check_urls(of, allow_http=False) == ["http://127.0.0.1:9", None, "https://c.example/x"]
    with pytest.raises(WitnessUrlError, match="use https"):
        check_urls([("d", "http://d.example")], allow_http=False)
    assert check_urls([("d", "http://d.example")], allow_http=True) == ["http://d.example"]
