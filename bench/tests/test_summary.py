"""Tests of the result that is computed from cells."""

import pytest

from bench.cell import Cell
from bench.summary import Record, Sample, paired, spread, summarise


def closed(rate: float, p50: float = 100, cpu: float = 10) -> Cell:
    figures = {"requests_per_second": rate, "p50_us": p50, "p99_us": 2 * p50, "cpu_us_per_request": cpu}
    return Cell({**figures, "load_core_busy_share": 0.5})


@pytest.fixture
def record() -> Record:
    record = Record()
    # The machine is half as fast in the second turn.
    for number, pace in ((1, 1.0), (2, 0.5), (3, 1.0)):
        for point in ("c1", "c16", "c64"):
            for system, rate, p50 in (
                ("null-server", 200_000, 50),
                ("haproxy", 100_000, 120),
                ("proofgate", 80_000, 130),
                ("proofgate-spinning", 78_000, 130),
            ):
                cell = closed(rate * pace, p50 / pace)
                record.add(Sample(number, "closed_loop", point, system, cell))
                if point == "c1":
                    record.add(Sample(number, "open_loop", "at_once", system, cell))
        record.add(Sample(number, "closed_loop", "c16", "litellm", closed(100 * pace, 9_000)))
        record.add(Sample(number, "closed_loop", "c1", "litellm", closed(90 * pace, 9_000)))
    return record


def test_a_spread_has_median_and_extremes() -> None:
    assert spread([3, 1, 2]) == {"median": 2, "min": 1, "max": 3}


def test_pairs_are_of_one_turn_and_void_turns_have_none() -> None:
    assert paired({1: 10, 2: 5, 3: 9}, {1: 20, 2: 10}, ratio=True) == {"median": 0.5, "min": 0.5, "max": 0.5}
    assert paired({1: 10}, {2: 10}, ratio=False) is None


def test_ratios_do_not_feel_a_slow_round(record: Record) -> None:
    result = summarise(record, {})
    assert result["ratio_to"]["haproxy"]["c64"] == {"median": 0.8, "min": 0.8, "max": 0.8}
    assert result["spinning_python_ratio"]["c16"]["min"] == 0.975


def test_headline_figures_are_those_of_the_best_number_of_connections(record: Record) -> None:
    result = summarise(record, {})
    assert result["null_server_rps"] == 200_000
    assert result["rps_per_core"]["proofgate"] == 80_000
    assert result["rps_per_core"]["litellm"] == 100
    assert result["rps_per_core_spread"]["litellm"]["at"] == "c16"
    assert "null-server" not in result["rps_per_core"]


def test_added_latency_tells_where_it_was_measured(record: Record) -> None:
    added = summarise(record, {})["added_latency_us"]
    assert added["proofgate"] == {"p50": 80, "p99": 160, "at": "open_loop/at_once"}
    assert added["litellm"]["at"] == "closed_loop/c1"


def test_the_open_loop_is_compared_with_the_null_server_and_with_haproxy(record: Record) -> None:
    row = summarise(record, {})["scenarios"]["open_loop"]["at_once"]["proofgate"]
    assert row["added_p50_us"]["median"] == 80
    assert row["above_haproxy_p50_us"]["median"] == 10


def test_a_cell_with_failures_has_a_reason_and_no_figures() -> None:
    record = Record()
    record.add(Sample(1, "closed_loop", "c16", "haproxy", Cell({"requests_per_second": 1.0}, 12, "12 x 503")))
    result = summarise(record, {})
    assert result["rps_per_core"] == {}
    assert result["voided"] == [{"turn": 1, "system": "haproxy", "scenario": "closed_loop/c16", "reason": "12 x 503"}]


def test_a_system_that_could_not_be_had_is_named(record: Record) -> None:
    record.absent["portkey"] = "npm is not installed"
    assert summarise(record, {})["absent"] == {"portkey": "npm is not installed"}


def test_agents_requests_are_compared_with_plain_haproxy_turn_by_turn() -> None:
    record = Record()
    for number, pace in ((1, 1.0), (2, 0.5)):
        for system, rate, cpu in (("haproxy", 10_000, 70.0), ("proofgate", 4_000, 190.0)):
            figures = {"requests_per_second": rate * pace, "cpu_us_per_request": cpu, "kilobytes": 120.0}
            record.add(Sample(number, "agents", "chat-120KB-first", system, Cell(figures)))
    rows = summarise(record, {})["scenarios"]["agents"]["chat-120KB-first"]
    assert rows["proofgate"]["rate_to_haproxy"] == {"median": 0.4, "min": 0.4, "max": 0.4}
    assert rows["proofgate"]["cpu_above_haproxy_us_per_kb"]["median"] == 1
    assert "rate_to_haproxy" not in rows["haproxy"]


def test_lateness_is_compared_with_plain_haproxys_of_the_same_turn() -> None:
    record = Record()
    for number, drift in ((1, 0), (2, 900)):
        for system, late in (("haproxy", 300.0), ("proofgate-no-rules", 1_300.0)):
            figures = {"late_p50_us": late + drift, "late_p99_us": 2.0 * late + drift}
            record.add(Sample(number, "tool_streams", "chat-s100", system, Cell(figures)))
    row = summarise(record, {})["scenarios"]["tool_streams"]["chat-s100"]["proofgate-no-rules"]
    assert row["late_above_haproxy_p50_us"] == {"median": 1_000, "min": 1_000, "max": 1_000}
    assert row["late_above_haproxy_p99_us"]["median"] == 2_000
