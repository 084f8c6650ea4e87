"""Each verified exchange is sent to a collector at least once, and a slow collector blocks nothing."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import auditor_double
import pytest
from certificates import write_identity
from conftest import eventually, refusing_port
from failures import failure
from index_ledger import FIRST, NOON, SECOND, Log, bring_up, own_id, rows
from ocsf.validate import problems
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from signing import VKEY

from proofgate import _core
from proofgate.auditor.metrics import render
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.siem.cursor import EventCursor
from proofgate.siem.events import ExchangeEvent
from proofgate.siem.otlp import log_record
from proofgate.siem.sink import SinkError
from proofgate.siem.sink_address import SinkAddressError, parse
from proofgate.siem.stream import EventStream

pytestmark = pytest.mark.usefixtures("fake_auditor")


class Kept:
    """A sink that stores `takes` batches, and then refuses."""

    name = "kept"

    def __init__(self, takes: int = 1000) -> None:
        self.takes = takes
        self.events: list[ExchangeEvent] = []

    def send(self, events: Sequence[ExchangeEvent]) -> None:
        if self.takes == 0:
            raise SinkError("siem_refused", "it responded with status 503")
        self.takes -= 1
        self.events += events


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    first = Log(tmp_path / "ledger")
    for number in range(1, 7):
        first.exchange(number, NOON + number, tenant="globex" if number % 3 == 0 else "acme")
    first.refuse(9, NOON + 9, tenant=None, code="unauthorized")
    first.admit(20, NOON + 20)
    late = first.admit(10, NOON + 10, model="late")
    for number in range(11, 15):
        first.exchange(number, NOON + number)
    first.complete(10, late, NOON + 500, outcome="client_disconnect")
    first.sign()
    second = Log(
        tmp_path / "ledger",
        SECOND,
        predecessor={"incarnation": FIRST},
    )
    second.add("aborted", NOON + 600, id=own_id(20, NOON + 20), incarnation=FIRST, admission=14)
    second.exchange(21, NOON + 21)
    second.sign()
    return tmp_path / "ledger"


def accepted(ledger: Path) -> dict[str, str]:
    return {str(path.parent): path.read_text() for path in sorted(ledger.glob("0/*/checkpoint"))}


def stream_to(sink: Any, state: Path, **more: Any) -> EventStream:
    state.mkdir(exist_ok=True)
    return EventStream(sink, EventCursor(state, sink.name, VKEY), VKEY, **more)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofgate.siem.stream.BATCH_RECORDS", 3)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofgate.siem.stream._MAX_PAUSE", 0.01)


def test_each_exchange_is_told_once_it_has_ended_with_what_an_index_has_of_it(
    ledger: Path, tmp_path: Path
) -> None:
    sink = Kept()
    stream_to(sink, tmp_path / "state").send(accepted(ledger))
    bring_up(tmp_path / "index", ledger)
    indexed = {
        row["id"]: {name: row[name] for name in row if name != "records"} for row in rows(tmp_path / "index")
    }
    assert len(indexed) == 14
    assert {event.facts["id"]: event.facts for event in sink.events} == indexed
    assert len(sink.events) == len(indexed)
    assert len({(event.origin, event.index) for event in sink.events}) == len(indexed)


def test_every_exchange_of_a_ledger_is_valid_in_other_formats(ledger: Path, tmp_path: Path) -> None:
    with collector() as (url, seen):
        stream_to(parse(f"{url}?format=ocsf", "ledger"), tmp_path / "state").send(accepted(ledger))
    bodies = [
        record.body.string_value
        for request in seen.requests
        for record in request.resource_logs[0].scope_logs[0].log_records
    ]
    assert len(bodies) == 14
    found = list(map(json.loads, bodies))
    assert [problem for event in found for problem in problems(event)] == []
    assert len({event["metadata"]["uid"] for event in found}) == 14
    assert {event["metadata"].get("tenant_uid") for event in found} == {"acme", "globex", None}


@pytest.mark.parametrize("takes", range(8))
def test_whatever_breaks_off_every_exchange_is_told_at_least_once(
    ledger: Path, tmp_path: Path, takes: int
) -> None:
    sink = Kept(takes)
    first = stream_to(sink, tmp_path / "state")
    with suppress(SinkError):
        first.send(accepted(ledger))
    # The process is killed after the sink has accepted a batch and before the cursor is written.
    sink.takes = 1
    first.cursor.advance = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with suppress(SinkError, KeyboardInterrupt):
        first.send(accepted(ledger))
    first.cursor.close()
    sink.takes = 1000
    stream_to(sink, tmp_path / "state").send(accepted(ledger))
    places = [(event.origin, event.index) for event in sink.events]
    assert len(set(places)) == 14
    assert len(places) - 14 <= 3, "at most one batch is sent again"


def test_what_was_sent_is_not_sent_again_by_another_life(ledger: Path, tmp_path: Path) -> None:
    for count in (14, 0):
        sink = Kept()
        stream = stream_to(sink, tmp_path / "state")
        stream.send(accepted(ledger))
        stream.cursor.close()
        assert len(sink.events) == count


def test_of_an_exchange_whose_log_is_gone_its_end_is_told(ledger: Path, tmp_path: Path) -> None:
    sink = Kept()
    only = {path: note for path, note in accepted(ledger).items() if path.endswith(SECOND)}
    stream_to(sink, tmp_path / "state").send(only)
    told = {event.facts["id"]: event.facts for event in sink.events}
    assert told[own_id(20, NOON + 20)] == {"id": own_id(20, NOON + 20), "outcome": "aborted"}


def test_a_log_that_cannot_be_read_does_not_hold_up_the_others(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _core.ExchangeReader

    def reader(directory: str, *more: Any) -> Any:
        if directory.endswith(FIRST):
            raise failure(_core.LedgerError, "it was changed", "corruption")
        return real(directory, *more)

    monkeypatch.setattr(_core, "ExchangeReader", reader)
    sink, left = Kept(), accepted(ledger)
    stream_to(sink, tmp_path / "state").send(left)
    assert {event.facts["id"] for event in sink.events} == {own_id(20, NOON + 20), own_id(21, NOON + 21)}
    assert [path.endswith(FIRST) for path in left] == [True]


def test_numbers_that_nothing_can_have_hold_up_no_stream(ledger: Path, tmp_path: Path) -> None:
    most = (1 << 64) - 1
    log = Log(ledger, "01M89Q0V2S1R6T3Y8B5N7C4D9F")
    absurd = {"usage": {"prompt_tokens": most, "completion_tokens": most}, "cost_nanodollars": most}
    late = log.admit(30, NOON + 30)
    for number in range(31, 35):
        log.exchange(number, NOON + number)
    log.complete(30, late, NOON + 30, **absurd, duration_us=most, bytes=most)
    log.exchange(35, NOON + 35)
    log.sign()
    with collector() as (url, seen):
        stream_to(parse(url, "ledger"), tmp_path / "state").send(accepted(ledger))
    told = {
        found["proofgate.request.id"]: found
        for request in seen.requests
        for record in request.resource_logs[0].scope_logs[0].log_records
        for found in [attributes(record.attributes)]
    }
    assert len(told) == 14 + 6
    clamped = told[own_id(30, NOON + 30)]
    for name in (
        *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "proofgate.cost_nanodollars"),
        *("proofgate.response.bytes", "proofgate.duration_us"),
    ):
        assert clamped[name] == (1 << 63) - 1
    assert own_id(35, NOON + 35) in told


@pytest.mark.parametrize("time", [253_402_300_799_999_999, (1 << 63) - 1])
def test_a_time_that_no_collector_can_hold_stands_at_its_end(time: int) -> None:
    assert log_record(replace(EVENT, time=time)).time_unix_nano == (1 << 64) - 1


def test_an_exchange_that_cannot_be_told_is_named_and_other_logs_go_on(ledger: Path, tmp_path: Path) -> None:
    class Picky(Kept):
        def send(self, events: Sequence[ExchangeEvent]) -> None:
            if any(event.facts["model"] == "late" for event in events):
                raise ValueError("secret: out of range")
            super().send(events)

    sink, left = Picky(), accepted(ledger)
    stream = stream_to(sink, tmp_path / "state", max_lag_seconds=0.0)
    stream.enqueue(list(left.items()))
    stream.send(left)
    assert [path.endswith(FIRST) for path in left] == [True]
    assert own_id(21, NOON + 21) in {event.facts["id"] for event in sink.events}
    [finding] = stream.findings()
    assert (finding["code"], stream.totals.failures) == ("siem_lags", {"siem_event": 1})
    for part in (FIRST, "ValueError", "[siem_event]"):
        assert part in finding["message"]
    assert "secret" not in finding["message"]


def test_whatever_else_breaks_sending_off_is_named(ledger: Path, tmp_path: Path) -> None:
    class Broken(Kept):
        def send(self, _: Sequence[ExchangeEvent]) -> None:
            raise RuntimeError("secret")

    stream = stream_to(Broken(), tmp_path / "state", max_lag_seconds=0.0)
    stream.start()
    stream.enqueue(list(accepted(ledger).items()))
    assert eventually(lambda: stream.totals.failures["siem_failed"] > 0)
    assert eventually(lambda: "(RuntimeError) [siem_failed]" in stream.findings()[0]["message"])
    stream.stop()


def test_the_thread_goes_on_when_the_sink_does_and_says_meanwhile_that_it_does_not(
    ledger: Path, tmp_path: Path
) -> None:
    sink = Kept(0)
    stream = stream_to(sink, tmp_path / "state", max_lag_seconds=0.0)
    stream.start()
    stream.enqueue(list(accepted(ledger).items()))
    assert eventually(lambda: "503" in str(stream.findings()))
    [finding] = stream.findings()
    assert (finding["code"], finding["verdict"]) == ("siem_lags", "incomplete")
    assert "503" in finding["message"]
    sink.takes = 1000
    assert eventually(lambda: stream.lag_seconds() == 0)
    assert (len(sink.events), stream.lag_records) == (14, 0)
    double = auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+x", VKEY, 1, 1, 1, True)
    watch = LedgerWatcher(cast("_core.Auditor", double), 0)
    watch.streams = [stream]
    told = render(watch)
    assert 'proofgate_auditor_siem_events_total{sink="kept"} 14' in told
    assert 'proofgate_auditor_siem_failures_total{sink="kept",code="siem_refused"}' in told
    stream.stop()


class Collector(BaseHTTPRequestHandler):
    status = 200
    answer = b""
    requests: list[ExportLogsServiceRequest]
    authorizations: list[str | None]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/logs" and self.headers["Content-Type"] == "application/x-protobuf":
            self.requests.append(ExportLogsServiceRequest.FromString(body))
            self.authorizations.append(self.headers["Authorization"])
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collector(context: ssl.SSLContext | None = None) -> Iterator[tuple[str, type[Collector]]]:
    handler = type("Own", (Collector,), {"requests": [], "authorizations": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "otlp+http" if context is None else "otlp+https"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def attributes(found: Any) -> dict[str, Any]:
    told = {}
    for pair in found:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        told[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return told


EVENT = ExchangeEvent(
    NOON,
    f"proofgate.dev/ns/demo/0/{FIRST}",
    7,
    {
        "id": "req_1",
        "tenant": "acme",
        "model": "gpt",
        "providers": ["openai"],
        "endpoint": "/v1/chat/completions",
        "verdict": "flagged",
        "rules": ["pii-card"],
        "outcome": "complete",
        "status": 200,
        "prompt_tokens": 3,
        "completion_tokens": 0,
        "cost_nanodollars": None,
    },
)


def test_a_log_record_has_the_names_of_the_conventions_and_no_more_than_the_record_says(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text("Bearer secret\n")
    with collector() as (url, seen):
        parse(f"{url}?authorization={tmp_path / 'token'}", "proofgate.dev/ns/demo").send([EVENT])
    [request] = seen.requests
    [resource] = request.resource_logs
    assert attributes(resource.resource.attributes)["proofgate.ledger"] == "proofgate.dev/ns/demo"
    [record] = resource.scope_logs[0].log_records
    assert (record.time_unix_nano, record.event_name) == (NOON * 1000, "proofgate.exchange")
    assert record.severity_text == "WARN"
    assert attributes(record.attributes) == {
        "proofgate.request.id": "req_1",
        "proofgate.tenant": "acme",
        "gen_ai.request.model": "gpt",
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 0,
        "http.response.status_code": 200,
        "http.route": "/v1/chat/completions",
        "proofgate.providers": ["openai"],
        "proofgate.verdict": "flagged",
        "proofgate.rules": ["pii-card"],
        "proofgate.outcome": "complete",
        "proofgate.record.origin": EVENT.origin,
        "proofgate.record.index": 7,
    }
    assert seen.authorizations == ["Bearer secret"]


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (503, b"", "503"),
        (400, b"", "400"),
        (302, b"", "302"),
        (200, None, "rejects 2"),
    ],
)
def test_a_collector_that_does_not_take_all_is_asked_again(
    status: int, answer: bytes | None, why: str
) -> None:
    rejected = ExportLogsServiceResponse()
    rejected.partial_success.rejected_log_records = 2
    with collector() as (url, seen):
        seen.status = status
        seen.answer = rejected.SerializeToString() if answer is None else answer
        sink = parse(url, "ledger")
        with pytest.raises(SinkError, match=why):
            sink.send([EVENT])


def test_a_collector_that_is_not_there_is_told() -> None:
    with refusing_port() as port, pytest.raises(SinkError, match="not reachable"):
        parse(f"otlp+http://127.0.0.1:{port}", "ledger").send([EVENT])


def test_a_collector_that_says_yes_in_its_own_words_has_taken_all() -> None:
    with collector() as (url, seen):
        seen.answer = b'{"partialSuccess":{}}'
        parse(url, "ledger").send([EVENT])
    assert len(seen.requests) == 1


def test_a_credential_that_cannot_be_used_is_told_without_a_word_of_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("two\nlines")
    for path, why in ((tmp_path / "token", "one line"), (tmp_path / "nowhere", "cannot be read")):
        with pytest.raises(SinkError, match=why) as refused:
            parse(f"otlp+http://127.0.0.1:9?authorization={path}", "ledger").send([EVENT])
        assert "lines" not in str(refused.value)


def test_a_collector_behind_a_private_authority_is_reached_when_that_is_given(tmp_path: Path) -> None:
    certificate, key = write_identity(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with collector(context) as (url, seen):
        parse(f"{url}?ca={certificate}", "ledger").send([EVENT])
        assert len(seen.requests) == 1
        with pytest.raises(SinkError) as refused:
            parse(url, "ledger").send([EVENT])
    assert refused.value.code == "siem_tls"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("https://collector.example", "expected one of"),
        ("otlp+https://", "HOST"),
        ("otlp+https://user@collector.example", "HOST"),
        ("otlp+https://collector.example:99999", "HOST"),
        ("otlp+http://collector.example", "plain=allow"),
        ("otlp+https://collector.example?ca=/nowhere", "is not a file"),
        ("otlp+https://collector.example?token=x", "each at most once"),
        ("syslog+tls://collector.example", "expected one of otlp"),
    ],
)
def test_a_place_that_is_none_is_refused_with_what_to_write(text: str, why: str) -> None:
    with pytest.raises(SinkAddressError, match=why):
        parse(text, "ledger")


def test_a_stream_goes_with_an_auditor_that_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ledger").mkdir()
    base = ["audit", "run", "--ledger", str(tmp_path / "ledger"), "--state", str(tmp_path / "state")]
    base += ["--signing-key", "k", "--ledger-key", VKEY]
    url = "otlp+https://collector.example"
    for more, why in (
        (["--siem", url, "--once"], "cannot be combined with --once"),
        (["--siem", url, "--siem", f"{url}?plain=allow"], "given twice"),
        (["--siem", "x"], "expected one of"),
        (["--siem-patience", "0"], "86400"),
    ):
        assert main([*base, *more]) == 2
        assert why in capsys.readouterr().err
