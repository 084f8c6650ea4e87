"""Tests of reading the load generators' output."""

import json
from typing import Any

import pytest

from bench.cell import CellError
from bench.load import open_loop, streams, wrk

WRK = """Running 4s test @ http://127.0.0.1:39001/v1/chat/completions
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   301.22us  601.10us  12.31ms   97.10%
    Req/Sec    69.11k     3.20k   74.00k    70.00%
  Latency Distribution
     50%  201.00us
     75%  240.00us
     90%  310.00us
     99%    3.63ms
  275001 requests in 4.00s, 140.00MB read
{extra}Requests/sec:  68750.25
Transfer/sec:     35.00MB
"""


def test_the_report_of_wrk_is_read_in_microseconds() -> None:
    output = wrk.parse(WRK.format(extra=""))
    assert (output.requests, output.requests_per_second) == (275001, 68750.25)
    assert (output.p50_us, output.p99_us) == (201.0, 3630.0)
    assert (output.not_2xx, output.socket_errors) == (0, 0)


def test_failed_requests_of_wrk_are_counted() -> None:
    extra = "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 17\n"
    output = wrk.parse(WRK.format(extra=extra))
    assert (output.not_2xx, output.socket_errors) == (17, 10)


def test_other_text_is_no_report_of_wrk() -> None:
    with pytest.raises(CellError, match="unable to connect"):
        wrk.parse("unable to connect to 127.0.0.1:1 Connection refused")


def oha_report(**changes: Any) -> str:
    report = {
        "summary": {"requestsPerSec": 999.5},
        "latencyPercentiles": {"p50": 0.000131, "p90": 0.0002, "p99": 0.0005, "p99.9": 0.003},
        "statusCodeDistribution": {"200": 4000},
        "errorDistribution": {},
    }
    return json.dumps({**report, **changes})


def test_the_report_of_oha_is_read_in_microseconds() -> None:
    cell = open_loop.parse(oha_report())
    assert cell.figures == pytest.approx(
        {"requests_per_second": 999.5, "p50_us": 131, "p90_us": 200, "p99_us": 500, "p999_us": 3000}
    )
    assert cell.failures == 0


def test_refusals_and_errors_of_oha_are_failures_with_their_reasons() -> None:
    text = oha_report(statusCodeDistribution={"200": 5, "503": 2}, errorDistribution={"timeout": 1})
    cell = open_loop.parse(text)
    assert cell.failures == 3
    assert cell.reason == "2 x 503, 1 x timeout"


@pytest.mark.parametrize("text", ["", "[]", "{}", oha_report(latencyPercentiles={"p50": None})])
def test_other_text_is_no_report_of_oha(text: str) -> None:
    with pytest.raises(CellError):
        open_loop.parse(text)


def stream_report(**changes: Any) -> str:
    report = {
        "chunks": 20_000,
        "completed": 200,
        "failed": 0,
        "window_us": 4_000_000,
        "late_p50_us": 120,
        "late_p99_us": 900,
        "late_max_us": 2_000,
        "first_failure": "",
    }
    return json.dumps({**report, **changes})


def test_the_gateways_cpu_time_is_divided_by_the_tokens_of_the_window() -> None:
    cell = streams.parse(stream_report(), gateway_cpu_seconds=0.2)
    assert cell.figures["cpu_us_per_chunk"] == pytest.approx(10)
    assert cell.figures["chunks_per_second"] == pytest.approx(5_000)
    assert cell.failures == 0


def test_failed_streams_void_the_cell_with_the_first_reason() -> None:
    cell = streams.parse(stream_report(failed=3, first_failure="status 503"), 0.2)
    assert cell.failures == 3
    assert cell.reason == "3 streams failed, the first: status 503"


def test_a_window_without_tokens_is_void() -> None:
    assert streams.parse(stream_report(chunks=0), 0.2).failures


@pytest.mark.parametrize("text", ["", "client: refused", stream_report(window_us=0)])
def test_other_text_is_no_report_of_streams(text: str) -> None:
    with pytest.raises(CellError):
        streams.parse(text, 0.2)
