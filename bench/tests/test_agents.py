"""Tests of agents' requests."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.agents import load, scenarios, session, tools
from bench.agents.session import CHAT, MESSAGES, Dialect
from bench.cell import CellError
from bench.processes import Pinned
from bench.system import System

DIALECTS = pytest.mark.parametrize("dialect", [CHAT, MESSAGES])


@DIALECTS
@pytest.mark.parametrize("kilobytes", [30, 120, 450])
def test_the_last_turn_has_the_size_that_was_asked_for_and_adds_a_twentieth(dialect: Dialect, kilobytes: int) -> None:
    made = session.make(dialect, kilobytes << 10, 20)
    last, before = (len(made.body(turn).encode()) for turn in (20, 19))
    assert last == kilobytes << 10
    assert last - before == last // 20


@DIALECTS
def test_every_turn_is_json_and_has_the_turn_before_it_in_front(dialect: Dialect) -> None:
    made = session.make(dialect, 120 << 10, 20)
    bodies = [json.loads(made.body(turn)) for turn in range(1, 21)]
    for body, before in zip(bodies[1:], bodies, strict=False):
        known = len(before["messages"])
        assert body["messages"][:known] == before["messages"]
        assert len(body["messages"]) == known + 2
        assert {**body, "messages": 0} == {**before, "messages": 0}


@DIALECTS
def test_every_message_and_the_system_prompt_are_numbered_when_they_are_sent(dialect: Dialect) -> None:
    body = json.loads(session.make(dialect, 30 << 10, 20).body(20))
    said = [*body["messages"], *body.get("system", ())]
    assert all(session.MARK in json.dumps(message) for message in said)


def test_a_tool_is_called_in_every_turn_and_answered_in_the_words_of_each_dialect() -> None:
    chat = json.loads(session.make(CHAT, 30 << 10, 20).body(20))["messages"]
    assert chat[-2]["tool_calls"][0]["id"] == chat[-1]["tool_call_id"]
    assert "path" in json.loads(chat[-2]["tool_calls"][0]["function"]["arguments"])
    messages = json.loads(session.make(MESSAGES, 30 << 10, 20).body(20))["messages"]
    assert [block["type"] for block in messages[-2]["content"]] == ["thinking", "text", "tool_use"]
    assert messages[-2]["content"][2]["id"] == messages[-1]["content"][0]["tool_use_id"]


def test_results_are_source_json_and_logs() -> None:
    results = [
        message["content"] for message in json.loads(session.make(CHAT, 450 << 10, 20).body(20))["messages"][3::2]
    ]
    texts = [text.removeprefix(f"[{session.MARK}]\n") for text in results]
    assert any(text.startswith("     1\t") for text in texts)
    assert any(text.startswith("{") for text in texts)
    assert any("INFO  build" in text for text in texts)


def test_larger_requests_have_more_tools_from_15_to_30() -> None:
    counts = [len(json.loads(session.make(CHAT, size << 10, 20).body(1))["tools"]) for size in (30, 120, 450)]
    assert counts == sorted(counts)
    assert counts[0] >= 15
    assert counts[-1] == tools.MOST == 30
    names = [tool["name"] for tool in tools.anthropic(tools.MOST)]
    assert len(set(names)) == tools.MOST


def test_a_session_is_the_same_each_time() -> None:
    assert session.make(CHAT, 30 << 10, 20) == session.make(CHAT, 30 << 10, 20)


def test_turns_without_room_are_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        session.make(CHAT, 15 << 10, 50)


def test_the_file_of_the_generator_has_a_turn_in_each_line() -> None:
    made = session.make(CHAT, 30 << 10, 20)
    begin, *turns = made.file().splitlines()
    assert len(turns) == 20
    assert begin + ",".join(turns) + "]}" == made.body(20)


def test_a_system_is_asked_in_the_words_of_the_dialect() -> None:
    system = System("127.0.0.1:1", Pinned(0, Path()), headers={"Authorization": "Bearer key"})
    asked = scenarios.speaking(system, MESSAGES)
    assert (asked.path, asked.headers["Authorization"]) == ("/v1/messages", "Bearer key")
    assert "anthropic-version" in asked.headers
    assert "anthropic-version" not in scenarios.speaking(system, CHAT).headers


def test_a_quick_run_asks_less_than_a_full_one() -> None:
    for plan in (scenarios.bodies, scenarios.sessions):
        full, quick = (dict(plan(Path(), extent)) for extent in (scenarios.FULL, scenarios.QUICK))
        assert quick
        assert len(quick) <= len(full)
    assert "chat-120KB-20th" in dict(scenarios.bodies(Path(), scenarios.FULL))


def report(**changes: Any) -> str:
    found = {"requests": 100, "bytes": 100 << 20, "failed": 0, "window_us": 2_000_000, "p50_us": 5, "p99_us": 9}
    return json.dumps({**found, "first_failure": "", **changes})


def test_the_gateways_cpu_time_is_divided_by_the_requests_of_the_window() -> None:
    cell = load.parse(report(), 0.1)
    assert cell.figures["requests_per_second"] == pytest.approx(50)
    assert cell.figures["cpu_us_per_request"] == pytest.approx(1_000)
    assert cell.figures["kilobytes"] == pytest.approx(1_024)
    assert not cell.failures


def test_one_agent_that_fails_voids_the_cell() -> None:
    cell = load.parse(report(failed=2, first_failure="status 403 in turn 3", requests=0, window_us=0), 0.1)
    assert cell.reason == "2 agents failed, the first: status 403 in turn 3"
    assert load.parse(report(requests=0), 0.1).failures


@pytest.mark.parametrize("text", ["", "agents: refused", report(window_us=0)])
def test_other_text_is_no_report_of_agents(text: str) -> None:
    with pytest.raises(CellError):
        load.parse(text, 0.1)
