"""Tests of an agent's requests in a session, and of reading them back."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from bench.detection.agent import CHAT, DIALECTS, ROLES, Dialect, Result, in_turns

RESULTS = [Result(f"src/{number}.py", f'print("{number} é")\n') for number in range(7)]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_request_of_a_session_goes_on_where_the_one_before_ended(dialect: Dialect) -> None:
    requests = [json.loads(body) for body in dialect.session(in_turns(RESULTS, 3))]
    assert len(requests) == 4
    for before, after in pairwise(requests):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert {**after, "messages": None} == {**before, "messages": None}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_results_of_a_session_are_read_back_in_their_order(dialect: Dialect) -> None:
    *_, last = dialect.session(in_turns(RESULTS, 3))
    assert list(dialect.results(json.loads(last))) == [result.text for result in RESULTS]


@pytest.mark.parametrize(("count", "turns", "lengths"), [(7, 3, [2, 2, 2, 1]), (2, 10, [1, 1]), (10, 10, [1] * 10)])
def test_results_are_read_in_about_as_many_turns_as_asked_for(count: int, turns: int, lengths: list[int]) -> None:
    assert [len(turn) for turn in in_turns(RESULTS[:1] * count, turns)] == lengths


@pytest.mark.parametrize("role", ROLES)
def test_a_prompt_stands_in_one_message_of_its_role(role: str) -> None:
    messages = json.loads(CHAT.body([json.dumps(message) for message in ROLES[role]("the prompt")]))["messages"]
    assert [message["role"] for message in messages if message["content"] == "the prompt"] == [role]
