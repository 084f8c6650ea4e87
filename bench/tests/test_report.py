"""The page and its charts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.cell import Cell
from bench.report import data_plane, pages
from bench.report.charts import CHARTS, all_charts
from bench.report.plot import Bar, Row, bars
from bench.summary import Record, Sample, summarise

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"

ABOUT = {
    "machine": {
        "processor": "Test Processor",
        "cores": 2,
        "memory_gb": 8,
        "kernel": "6.1",
        "python": "3.11.7",
        "load_before": 0.1,
    },
    "versions": {"haproxy": "2.6.12", "wrk": "4.1.0"},
    "method": {"turns": 2, "paced_turns": 1, "proofgate": ["authentication"]},
}


@pytest.fixture
def result() -> dict[str, Any]:
    record = Record()
    for system, rate in (
        ("null-server", 200_000),
        ("haproxy", 100_000),
        ("proofgate", 80_000),
        ("envoy", 20_000),
        ("proofgate-no-rules", 90_000),
    ):
        figures = {
            "requests_per_second": rate,
            "p50_us": 1e7 / rate,
            "p99_us": 2e7 / rate,
            "cpu_us_per_request": 1e6 / rate,
            "chunks_per_second": 5_000,
            "cpu_us_per_chunk": 4e5 / rate,
            "late_p50_us": 100,
            "late_p99_us": 900,
            "refused_share": 1,
            "gateway_cpu_us_per_request": 9,
            "attacker_cpu_us_per_request": 18,
            "load_core_busy_share": 0.8,
            "start_mb": 10,
            "after_mb": 12,
            "kilobytes": 120,
        }
        for group, point in (
            ("closed_loop", "c1"),
            ("closed_loop", "c16"),
            ("closed_loop", "c64"),
            ("prompts", "16KB"),
            ("prompts", "128KB"),
            ("open_loop", "at_once"),
            ("attacks", "malformed"),
            ("streams", "s100"),
            ("streams", "s1000"),
            ("memory", "requests"),
            ("agents", "chat-120KB-first"),
            ("agents", "chat-120KB-20th"),
            ("sessions", "20x50"),
            ("tool_streams", "messages-s100"),
        ):
            record.add(Sample(1, group, point, system, Cell(figures)))
    record.void(1, "envoy", "streams/s1000", "3 streams failed | the first: closed")
    record.absent["portkey"] = "npm is not installed"
    return summarise(record, ABOUT)


def test_text_between_the_sections_is_left_alone_and_a_second_time_changes_nothing() -> None:
    page = "before\n<!-- figures: closed -->\nold\n<!-- end of figures -->\nafter\n"
    filled = pages.fill(page, {"closed": "new"})
    assert filled == "before\n<!-- figures: closed -->\n\nnew\n\n<!-- end of figures -->\nafter\n"
    assert pages.fill(filled, {"closed": "new"}) == filled


def test_a_section_that_no_page_has_a_place_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("<!-- figures: closed -->\n<!-- end of figures -->\n")
    with pytest.raises(pages.PageError, match="standing"):
        pages.stale(tmp_path, tmp_path)


def test_a_section_has_one_name_among_all_pages() -> None:
    names = [name for sections in pages.SECTIONS.values() for name in sections]
    assert len(names) == len(set(names))


def test_losses_stand_beside_wins(result: dict[str, Any]) -> None:
    row = next(line for line in data_plane.standing(result).splitlines() if line.startswith("| requests/s, c=64"))
    assert row == "| requests/s, c=64 | 80,000 | haproxy 100,000 | envoy 20,000 |"


def test_agents_requests_stand_beside_plain_haproxys_with_rules_and_without(result: dict[str, Any]) -> None:
    head, _, row, _ = data_plane.SECTIONS["agents"](result).splitlines()
    cells = dict(zip(head.strip("| ").split(" | "), row.strip("| ").split(" | "), strict=True))
    assert (cells["request"], cells["turn"]) == ("chat, 120 KB", "first")
    assert cells["all packs: rate to HAProxy's"] == "0.800 (0.800 to 0.800)"
    assert cells["no rules: rate to HAProxy's"] == "0.900 (0.900 to 0.900)"
    assert cells["all packs: µs/KB above HAProxy"] == "0.02 (0.02 to 0.02)"


def test_sessions_and_streams_of_agents_have_rows(result: dict[str, Any]) -> None:
    assert "| 20 of 50 turns | 120 |" in data_plane.SECTIONS["sessions"](result)
    rows = data_plane.SECTIONS["lateness"](result).splitlines()[2:]
    kinds = [tuple(row.strip("| ").split(" | ")[:2]) for row in rows]
    plain, agents = "text", "messages: thinking, text, a tool's call"
    assert kinds == [(kind, who) for kind in (plain, agents) for who in ("HAProxy", "all packs", "no rules")]


def test_agents_figures_stand_before_those_of_every_other_request() -> None:
    names = [part.split(" ", 2)[1] for part in PAGE.read_text().split("<!-- figures:")[1:]]
    assert names[1:4] == ["agents", "sessions", "lateness"]


def test_what_has_no_figures_is_told_with_its_reason(result: dict[str, Any]) -> None:
    text = data_plane.missing(result)
    assert "| `portkey` | everything | npm is not installed |" in text
    assert "3 streams failed \\| the first: closed" in text


def test_a_result_without_scenarios_still_has_a_page() -> None:
    empty = summarise(Record(), ABOUT)
    assert all_charts(empty) == {}
    assert not any(section(empty) for name, section in data_plane.SECTIONS.items() if name in CHARTS)


def test_every_table_has_as_many_cells_in_each_row(result: dict[str, Any]) -> None:
    for name, section in data_plane.SECTIONS.items():
        rows = [line for line in section(result).splitlines() if line.startswith("|")]
        widths = {line.replace("\\|", "").count("|") for line in rows if line}
        # The table of versions is beside prose and has a different width.
        assert len(widths) <= 1, name


def test_charts_are_well_formed_and_name_their_systems(result: dict[str, Any]) -> None:
    charts = all_charts(result)
    assert charts.keys() == CHARTS.keys()
    for svg in charts.values():
        texts = [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        assert {"haproxy", "proofgate", "envoy"} <= set(texts)


def test_a_bar_without_a_figure_says_so_and_text_is_escaped() -> None:
    svg = bars("a < b", "note", ["one"], [Row("x & y", [None]), Row("z", [Bar(2, 1, 3)])])
    texts = [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "x & y", "no figure", "2"} <= set(texts)


def widths(svg: str) -> list[float]:
    rectangles = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
    return [float(rectangle.attrib["width"]) for rectangle in rectangles]


def test_bars_of_a_linear_chart_are_as_long_as_their_values() -> None:
    short, long = widths(bars("t", "n", ["one"], [Row("a", [Bar(10, 10, 10)]), Row("b", [Bar(40, 40, 40)])]))
    assert long == pytest.approx(4 * short)


def test_every_decade_of_a_logarithmic_chart_is_as_long_as_the_next() -> None:
    rows = [Row(str(value), [Bar(value, value, value)]) for value in (10, 100, 1_000)]
    none, one, two = widths(bars("t", "n", ["one"], rows, logarithmic=True))
    assert none == 1
    assert two == pytest.approx(2 * one)


@pytest.mark.parametrize("logarithmic", [True, False])
def test_a_value_below_zero_has_the_shortest_bar(logarithmic: bool) -> None:
    assert widths(bars("t", "n", ["one"], [Row("a", [Bar(-5, -9, -1)])], logarithmic=logarithmic)) == [1]


def run_report(action: str, results: Path, docs: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.report", action, "--results", str(results), "--docs", str(docs)]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])


def test_pages_that_were_written_pass_the_check_wherever_they_are_until_a_result_changes(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    docs, results = tmp_path / "docs", tmp_path / "results"
    (docs / "deeper").mkdir(parents=True)
    results.mkdir()
    (docs / "deeper" / "all.md").write_text(
        "".join(
            f"<!-- figures: {name} -->\n<!-- end of figures -->\n"
            for sections in pages.SECTIONS.values()
            for name in sections
        )
    )
    file = results / "data-plane.json"
    file.write_text(json.dumps(result))
    assert run_report("--check", results, docs).returncode == 1
    assert run_report("--write", results, docs).returncode == 0
    assert run_report("--check", results, docs).returncode == 0
    text = (docs / "deeper" / "all.md").read_text()
    assert f"(../images/{CHARTS['closed']})" in text and (docs / "images" / CHARTS["closed"]).is_file()
    assert "<!-- figures: operator -->\n\nNo figures.\n" in text
    result["absent"]["litellm"] = "pip failed"
    file.write_text(json.dumps(result))
    assert run_report("--check", results, docs).returncode == 1


def test_a_result_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data-plane.json").write_text('{"cells": {}}')
    done = run_report("--check", tmp_path, tmp_path)
    assert done.returncode == 1
    assert "run make bench" in done.stderr
