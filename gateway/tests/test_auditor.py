"""The auditor's command, its polls, its port and its metrics."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import auditor_double
import pytest
from conftest import HTTP, PATIENCE_SECONDS, eventually, serving
from signing import AUDITOR, VKEY

from proofgate import _core
from proofgate.auditor.metrics import render
from proofgate.auditor.served_ledger import ServedLedger
from proofgate.auditor.service import create_app
from proofgate.auditor.summary import summary
from proofgate.auditor.watch import MAX_POLL_BYTES, LedgerWatcher
from proofgate.cli import main
from proofgate.http_server import ServerLimits
from proofgate.times import SteadyClock

pytestmark = pytest.mark.usefixtures("fake_auditor")

SIGNING_KEY = AUDITOR.signing
FORK = {"code": "fork", "origin": "a/0/X", "shard": "0", "since": 1, "message": "two", "verdict": "diverged"}

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def double() -> auditor_double.Auditor:
    return auditor_double.Auditor("ledger", "state", SIGNING_KEY, VKEY, 1, 1, 1, True)


@pytest.fixture
def watch(double: auditor_double.Auditor) -> LedgerWatcher:
    return LedgerWatcher(cast("_core.Auditor", double), 1 << 20)


@pytest.fixture
def url(watch: LedgerWatcher) -> Iterator[str]:
    with serving(create_app(watch)) as url:
        yield url


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "signing-key").write_text(f"{SIGNING_KEY}\n")
    return [
        *("audit", "run", "--ledger", str(tmp_path / "ledger"), "--state", str(tmp_path / "state")),
        *("--signing-key", str(tmp_path / "signing-key"), "--ledger-key", VKEY),
    ]


def get(url: str, method: str = "GET") -> tuple[int, str]:
    answer = HTTP.request(method, url)
    return answer.status_code, answer.text


def code_of(answer: tuple[int, str]) -> tuple[int, str]:
    return answer[0], json.loads(answer[1])["error"]["code"]


def test_the_port_serves_the_aggregate_log_and_nothing_but_what_is_read(url: str) -> None:
    assert get(f"{url}/checkpoint") == (200, auditor_double.NOTE)
    assert get(f"{url}/tile/0/000.p/2") == (200, "hashes")
    assert json.loads(get(f"{url}/inclusion?index=1&size=2")[1]) == {
        "index": 1,
        "size": 2,
        "hashes": ["aGFzaA=="],
    }
    assert json.loads(get(f"{url}/consistency?old=2&new=2")[1]) == {"old": 2, "new": 2, "hashes": []}
    assert json.loads(get(f"{url}/heads")[1])["shards"][0]["size"] == 7
    assert json.loads(get(f"{url}/findings")[1]) == {"findings": [], "left_out": 0}
    assert code_of(get(f"{url}/tile/0/001")) == (404, "no_such_tile")
    assert code_of(get(f"{url}/inclusion?index=2&size=2")) == (400, "out_of_range")
    assert code_of(get(f"{url}/inclusion?index=-1&size=2")) == (400, "invalid_request")
    assert code_of(get(f"{url}/consistency?old=1")) == (400, "invalid_request")
    assert code_of(get(f"{url}/checkpoint", "POST")) == (405, "method_not_allowed")
    assert code_of(get(f"{url}/signed")) == (404, "not_found")


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS)


def test_whoever_reaches_the_port_fills_no_memory_with_a_head_and_holds_no_connection_in_silence(
    url: str, watch: LedgerWatcher
) -> None:
    with connected(url) as client:
        client.sendall(b"GET /checkpoint HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (1 << 20))
        assert b"".join(iter(lambda: client.recv(4096), b"")).startswith(b"HTTP/1.1 431 ")
    with (
        serving(create_app(watch), ServerLimits(head_seconds=0.05)) as impatient,
        connected(impatient) as client,
    ):
        assert client.recv(1) == b""


@pytest.mark.parametrize(("hours", "told"), [(-2, "back by 7200.0"), (87_600, "ahead by 315360000.0")])
def test_a_step_of_the_auditors_clock_is_a_finding_and_counted(
    hours: int, told: str, watch: LedgerWatcher
) -> None:
    wall = [2 * 10**18]
    watch.clock = SteadyClock(lambda: wall[0])
    watch.poll()
    assert watch.findings() == []
    wall[0] += hours * 3600 * 10**9
    watch.poll()
    (found,) = watch.findings()
    assert (found["code"], found["verdict"], found["since"] // 10**6) == (
        "clock_step",
        "incomplete",
        wall[0] // 10**9,
    )
    assert told in found["message"]
    direction = "back" if hours < 0 else "ahead"
    assert f'proofgate_auditor_clock_steps_total{{direction="{direction}"}} 1' in render(watch).splitlines()


def test_its_status_has_messages_of_one_line(watch: LedgerWatcher, double: auditor_double.Auditor) -> None:
    named = {"code": "key_succession_refused", "origin": "a", "verdict": "invalid", "since": 1}
    double.found = [{**named, "message": "x.note\nresolved\x1b[2J: it is no note"}]
    [told] = summary(watch)["findings"]["newest"]
    assert told["message"] == "x.note\\nresolved\\x1b[2J: it is no note"


def test_its_status_counts_all_findings_and_tells_the_newest_of_them(
    url: str, watch: LedgerWatcher, double: auditor_double.Auditor
) -> None:
    double.found = [FORK | {"since": since, "message": "x" * 600} for since in range(60)]
    double.polls = [{"records": 5}]
    watch.poll()
    told = json.loads(get(f"{url}/status")[1])
    assert told["checkpoint"] == auditor_double.NOTE
    assert (told["lag_seconds"], told["records_behind"], told["poll_failures"]) == (1.5, 0, 0)
    assert told["records_verified"] == 5
    assert told["last_poll"] == watch.last_poll > 0
    assert told["poll_age_seconds"] < 300
    assert told["newest_head"] == 1
    assert told["findings"]["by_code"] == {"fork": 60}
    assert [finding["since"] for finding in told["findings"]["newest"]] == list(range(10, 60))
    assert {len(finding["message"]) for finding in told["findings"]["newest"]} == {512}


def test_the_port_hands_out_nothing_that_the_quorum_has_not_cosigned(
    url: str, double: auditor_double.Auditor
) -> None:
    assert get(f"{url}/proof?index=1") == (200, f"c2sp.org/tlog-proof@v1\nindex 1\n\n{auditor_double.NOTE}")
    assert code_of(get(f"{url}/proof?index=2")) == (400, "out_of_range")
    double.published = None
    assert code_of(get(f"{url}/checkpoint")) == (503, "not_cosigned")
    assert code_of(get(f"{url}/proof?index=1")) == (503, "not_cosigned")
    assert "proofgate_auditor_published_heads 0" in get(f"{url}/metrics")[1].splitlines()


def test_the_port_tells_how_the_witnesses_stand(url: str, double: auditor_double.Auditor) -> None:
    assert "proofgate_auditor_witness" not in get(f"{url}/metrics")[1]
    assert json.loads(get(f"{url}/status")[1])["witnesses"] == []
    double.urls = [('a"b', "https://a.example")]
    standing = {"name": 'a"b', "last": "cosigned", "size": 2, "time": 9}
    assert json.loads(get(f"{url}/status")[1])["witnesses"] == [standing]
    assert json.loads(get(f"{url}/witnesses")[1])["witnesses"][0]["size"] == 2
    lines = get(f"{url}/metrics")[1].splitlines()
    for line in (
        'proofgate_auditor_witness_cosigned_heads{witness="a\\"b"} 2',
        'proofgate_auditor_witness_cosignature_timestamp_seconds{witness="a\\"b"} 9',
        'proofgate_auditor_witness_requests_total{witness="a\\"b",result="cosigned"} 3',
    ):
        assert line in lines


def test_it_is_ready_once_it_has_looked_and_not_healthy_when_it_does_so_no_more(
    url: str, watch: LedgerWatcher
) -> None:
    assert get(f"{url}/readyz")[0] == 503
    assert get(f"{url}/healthz")[0] == 200
    watch.poll()
    assert get(f"{url}/readyz")[0] == 200
    watch._polled_at = time.monotonic() - 301
    assert get(f"{url}/healthz")[0] == 503


def test_a_ledger_that_cannot_be_read_is_told_by_readiness_and_is_no_reason_to_start_anew(
    url: str, watch: LedgerWatcher, double: auditor_double.Auditor
) -> None:
    log = FORK | {"code": "unreadable", "message": "permission denied", "verdict": "incomplete"}
    double.found = [log]
    watch.poll()
    assert get(f"{url}/readyz")[0] == 200, "the other logs can be read"
    double.found = [log, log | {"origin": "a", "shard": ""}]
    watch.poll()
    assert get(f"{url}/readyz") == (503, "the ledger cannot be read: permission denied\n")
    assert get(f"{url}/healthz")[0] == 200
    double.found = []
    watch.poll()
    assert get(f"{url}/readyz")[0] == 200


def test_how_long_heads_wait_for_a_quorum_is_told_until_it_has_cosigned_those_that_waited(
    watch: LedgerWatcher, double: auditor_double.Auditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0

    def after(seconds: float, entries: int, published: int) -> float:
        nonlocal now
        now += seconds
        double.polls = [{"entries": entries}]
        double.published = (published, auditor_double.NOTE) if published else None
        watch.poll()
        told: float = summary(watch)["cosigning_lag_seconds"]
        assert f"proofgate_auditor_cosigning_lag_seconds {told:.3f}" in render(watch).splitlines()
        return told

    monkeypatch.setattr("proofgate.auditor.watch.time.monotonic", lambda: now)
    assert after(1, entries=0, published=0) == 0, "no head waits for a quorum"
    assert after(1, entries=2, published=0) == 0
    assert after(400, entries=9, published=0) == 400
    assert after(1, entries=9, published=3) == 0, "the wait of newer heads starts now"
    assert after(5, entries=20, published=3) == 5
    assert after(5, entries=20, published=20) == 0


def test_metrics_tell_what_was_verified_and_found(
    url: str, watch: LedgerWatcher, double: auditor_double.Auditor
) -> None:
    double.polls = [
        {"records": 5, "bytes": 900, "unread_records": 3},
        {"records": 3, "bytes": 500, "scrubbed_records": 2, "removed": 4},
    ]
    double.found = [FORK, FORK | {"origin": "a/0/Y"}]
    watch.poll()
    watch.poll()
    lines = get(f"{url}/metrics")[1].splitlines()
    for line in (
        "proofgate_auditor_records_verified_total 8",
        "proofgate_auditor_bytes_verified_total 1400",
        "proofgate_auditor_records_scrubbed_total 2",
        "proofgate_auditor_records_behind 0",
        "proofgate_auditor_removed_logs 4",
        "proofgate_auditor_heads 2",
        'proofgate_auditor_findings{code="fork",verdict="diverged"} 2',
        "proofgate_auditor_cosigning_lag_seconds 0.000",
        'proofgate_auditor_lag_seconds{shard="0"} 1.500',
    ):
        assert line in lines


def test_each_finding_is_logged_once_and_so_is_its_end(
    watch: LedgerWatcher, double: auditor_double.Auditor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    double.found = [FORK]
    watch.poll()
    watch.poll()
    double.found = []
    watch.poll()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "[fork]" in caplog.text


def test_an_error_that_lasts_is_logged_once_a_minute(
    watch: LedgerWatcher,
    double: auditor_double.Auditor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("proofgate.auditor.watch.POLL_SECONDS", 0)

    async def follow_until(failures: int) -> None:
        following = asyncio.create_task(watch.follow())
        assert await asyncio.to_thread(eventually, lambda: watch.totals.failures >= failures)
        following.cancel()

    double.failure = "no space left"
    asyncio.run(follow_until(5))
    assert [record.message for record in caplog.records] == [
        "the poll failed and will be retried: no space left [auditor_state_io]"
    ]
    monkeypatch.setattr("proofgate.auditor.watch.FAILURE_LOG_SECONDS", 0)
    asyncio.run(follow_until(watch.totals.failures + 2))
    assert len(caplog.records) >= 3


def test_a_poll_that_fails_is_counted_and_tried_again(
    watch: LedgerWatcher, double: auditor_double.Auditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofgate.auditor.watch.POLL_SECONDS", 0.01)
    double.failure = "no space left"

    async def follow_until_two_polls() -> None:
        following = asyncio.create_task(watch.follow())
        assert await asyncio.to_thread(eventually, lambda: watch.totals.failures >= 1)
        double.failure = None
        double.polls = [{"unread_records": 9, "bytes": MAX_POLL_BYTES}]
        # A poll that leaves records unread is followed by the next immediately.
        assert await asyncio.to_thread(eventually, lambda: len(double.asked) >= 3)
        following.cancel()

    asyncio.run(follow_until_two_polls())
    assert watch.last_poll > 0


def test_a_state_in_the_ledger_a_wrong_key_and_a_lost_state_are_told(
    arguments: list[str], tmp_path: Path, capsys: Capture
) -> None:
    inside = [*arguments, "--state", str(tmp_path / "ledger" / "state")]
    assert main([*inside, "--once"]) == 2
    assert "--state is inside the ledger" in capsys.readouterr().err
    assert main([*arguments, "--once"]) == 1
    assert "[auditor_state_missing]" in capsys.readouterr().err
    (tmp_path / "signing-key").write_text("something else that nobody may see")
    assert main([*arguments, "--once", "--new-aggregate"]) == 2
    told = capsys.readouterr().err
    assert "not a private note key" in told
    assert "nobody may see" not in told
    (tmp_path / "signing-key").unlink()
    assert main([*arguments, "--once", "--new-aggregate"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_without_a_held_checkpoint_it_begins_and_with_one_the_core_is_told(
    arguments: list[str], tmp_path: Path, capsys: Capture
) -> None:
    held = [*arguments, "--held", str(tmp_path / "held"), "--once"]
    assert main(held) == 0
    (tmp_path / "held").write_text("a note")
    assert main(held) == 1
    assert "held: a note [auditor_state_lost]" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*held, "--new-aggregate"])


def test_a_retention_key_is_one_or_a_file_that_holds_one(arguments: list[str], capsys: Capture) -> None:
    assert main([*arguments, "--once", "--new-aggregate", "--keeping-key", VKEY]) == 0
    assert main([*arguments, "--once", "--new-aggregate", "--keeping-key", "nowhere"]) == 2
    assert "nowhere cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("a http://witness.example", "use https"),
        ("a ftp://witness.example", "write an http or https URL"),
        ("a https://witness.example/?x=1", "remove '?' or '#'"),
        ("a https://u:p@witness.example", "remove the user name"),
    ],
)
def test_a_url_of_a_witness_that_cannot_be_used_is_told(
    arguments: list[str], tmp_path: Path, capsys: Capture, policy: str, told: str
) -> None:
    (tmp_path / "policy").write_text(policy)
    more = ["--once", "--new-aggregate", "--witness-policy", str(tmp_path / "policy")]
    assert main([*arguments, *more]) == 2
    answer = capsys.readouterr().err
    assert "--witness-policy: the URL of the witness a" in answer
    assert told in answer
    assert answer.endswith(" [auditor_policy]\n")
    assert "u:p" not in answer
    (tmp_path / "policy").unlink()
    assert main([*arguments, *more]) == 2
    assert "policy cannot be read" in capsys.readouterr().err


def test_certificates_of_witnesses_that_cannot_be_read_are_told(
    arguments: list[str], tmp_path: Path, capsys: Capture
) -> None:
    authorities = tmp_path / "ca.crt"
    more = ["--once", "--new-aggregate", "--witness-ca", str(authorities)]
    assert main([*arguments, *more]) == 2
    assert "ca.crt: No such file or directory [auditor_witness_ca]" in capsys.readouterr().err
    authorities.write_text("no certificate")
    assert main([*arguments, *more]) == 2
    assert "ca.crt: it contains no readable certificate [auditor_witness_ca]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--worker", "0=http://w", "--index", "i"], "--index needs --ledger"),
        (["--worker", "0=http://w", "--mirror", "m"], "--mirror needs --ledger, or --replica"),
        (["--worker", "0=http://w", "--siem", "https://s"], "--siem needs --ledger, or --replica"),
        (["--worker", "0=http://w", "--replica", "r", "--once"], "--replica cannot be combined with --once"),
        (["--worker", "0=http://w", "--replica", "r", "--index", "r/i"], "--index is inside --replica"),
        (["--worker", "0=http://w", "--readers", "f"], "--readers needs --index"),
        (["--worker", "http://w"], "is not a shard number"),
        (["--worker", "0=w"], "is not an http(s) URL"),
        (["--worker", "0=http://w", "--worker", "0=http://x"], "two workers are given for one shard"),
        (["--workers", "no-such-file"], "no-such-file cannot be read: No such file"),
    ],
)
def test_workers_that_cannot_be_asked_are_told(
    arguments: list[str], more: list[str], sentence: str, capsys: Capture
) -> None:
    assert main([*without_a_ledger(arguments), *more]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--ledger", "x", "--worker", "0=http://w"]])
def test_a_ledger_is_mounted_or_served(arguments: list[str], more: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*without_a_ledger(arguments), *more])
    assert ended.value.code == 2


def without_a_ledger(arguments: list[str]) -> list[str]:
    at = arguments.index("--ledger")
    return arguments[:at] + arguments[at + 2 :]


class NobodyAnswers(ServedLedger):
    """A ledger with one worker that does not answer."""

    def __init__(self) -> None:
        self.bytes_read = 7

    def start_pass(self) -> str:
        return '{"0": {"answers": false, "failing": null}}'

    def reachable_by_shard(self) -> dict[str, bool]:
        return {"0": False}


def test_an_auditor_that_no_worker_answers_looks_and_is_not_ready(
    watch: LedgerWatcher, double: auditor_double.Auditor
) -> None:
    watch.served_ledger = NobodyAnswers()
    watch.poll()
    assert double.reach == [{"0": {"answers": False, "failing": None}}]
    with serving(create_app(watch)) as url:
        assert get(f"{url}/readyz") == (503, "the ledger cannot be read: no worker answers\n")
        assert get(f"{url}/healthz")[0] == 200
    metrics = render(watch)
    assert 'proofgate_auditor_worker_up{shard="0"} 0\n' in metrics
    assert "proofgate_auditor_worker_bytes_total 7\n" in metrics


def test_a_look_that_finds_nothing_ends_with_0_and_says_what_was_read(
    arguments: list[str], capsys: Capture
) -> None:
    assert main([*arguments, "--once", "--new-aggregate"]) == 0
    assert "2 tree heads in the aggregate log\nverified" in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "code"), [("incomplete", 10), ("diverged", 30), ("invalid", 40)])
def test_a_look_ends_with_the_code_of_the_worst_finding(
    arguments: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    found: list[dict[str, Any]] = [
        FORK | {"verdict": "incomplete"},
        FORK | {"code": "other", "verdict": verdict},
    ]
    monkeypatch.setattr(auditor_double.Auditor, "findings", lambda _: json.dumps({"findings": found}))
    assert main([*arguments, "--once", "--new-aggregate", "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["exit_code"] == code
    assert len(report["findings"]) == 2
