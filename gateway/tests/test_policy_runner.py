"""A policy's thread returns one verdict for each request, whatever the policy does."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest
from conftest import PATIENCE_SECONDS, eventually
from policies_under_test import Answers, Exits, Waits, Words, broken
from policy_queue_double import PolicyItem, PolicyQueue

from proofgate.policy import Allow, Deny, Flag, Policy, Replace, Replacement
from proofgate.policy.runner import PolicyRunner

if TYPE_CHECKING:
    from proofgate import _core

ALLOWED: tuple[Any, ...] = ("allow", "", "", 0, [])


def failed(reason: str) -> tuple[Any, ...]:
    return ("failed", reason, "", 0, [])


@contextlib.contextmanager
def running(load: Callable[[], Policy]) -> Iterator[tuple[PolicyRunner, PolicyQueue]]:
    runner, queue = PolicyRunner("p", 8, load), PolicyQueue()
    assert runner.wait_for_first_load(PATIENCE_SECONDS)
    runner.start_serving(cast("_core.PolicyQueue", queue))
    try:
        yield runner, queue
    finally:
        runner.retire(0)
        queue.batches.put(None)
        assert runner.join(PATIENCE_SECONDS)
        assert queue.closed


def test_a_batch_is_evaluated_at_once_and_each_request_gets_its_own_verdict() -> None:
    policy = Words()
    with running(lambda: policy) as (_, queue):
        verdicts = queue.ask("hello", "bluebird")
    assert verdicts == {"hello": ALLOWED, "bluebird": ("deny", "word", "It has a word.", 0, [])}
    assert policy.calls == [2]


def test_a_request_that_makes_the_policy_raise_fails_alone() -> None:
    with running(Words) as (_, queue):
        verdicts = queue.ask("hello", "raise", "bluebird")
    assert [verdict[0] for verdict in verdicts.values()] == ["allow", "failed", "deny"]
    assert verdicts["raise"] == failed("exception")


def test_a_batch_that_raised_is_not_tried_again_for_requests_that_nobody_waits_for() -> None:
    policy = Words()
    gone, there = PolicyItem("gone"), PolicyItem("raise")
    gone.awaited = False
    with running(lambda: policy) as (_, queue):
        queue.batches.put([gone, there])
        assert queue.returned.get(timeout=PATIENCE_SECONDS) == {
            "gone": failed("exception"),
            "raise": failed("exception"),
        }
    assert policy.calls == [2, 1]


def test_a_policy_that_ends_its_thread_fails_the_request_and_serves_on() -> None:
    with running(Exits) as (runner, queue):
        assert queue.ask("one") == {"one": failed("exception")}
        assert queue.ask("two") == {"two": failed("exception")}
        assert runner.status() == {"name": "p", "state": "running", "error": "SystemExit"}


@pytest.mark.parametrize(
    "answer",
    [None, [], [Allow()], [Allow()] * 3, "ok", {"a": Allow()}, iter([Allow()] * 2)],
    ids=["nothing", "none", "too few", "too many", "a string", "a mapping", "an iterator"],
)
def test_what_is_not_one_verdict_for_each_request_is_none_for_all(answer: object) -> None:
    with running(lambda: Answers(answer)) as (_, queue):
        assert queue.ask("one", "two") == {"one": failed("bad_verdict"), "two": failed("bad_verdict")}


@pytest.mark.parametrize("answer", [None, "allow", Allow, Replace("r", [cast("Replacement", 3)])], ids=repr)
def test_what_is_no_verdict_fails_its_request_alone(answer: object) -> None:
    with running(lambda: Answers([Allow(), answer])) as (_, queue):
        assert queue.ask("one", "two") == {"one": ALLOWED, "two": failed("bad_verdict")}


def test_every_verdict_crosses_with_all_that_it_says() -> None:
    verdicts = [Deny("c", "R."), Flag("r", 7), Replace("r", (Replacement(0, 1, 2, "x"),))]
    verdicts.append(Replace("r", [Replacement(0, 1, 2, "x")], reversible=True))
    with running(lambda: Answers(verdicts)) as (_, queue):
        said = queue.ask("one", "two", "three", "four")
    assert list(said.values()) == [
        ("deny", "c", "R.", 0, []),
        ("flag", "r", "", 7, []),
        ("replace", "r", "", 0, [(0, 1, 2, "x")]),
        ("replace_reversibly", "r", "", 0, [(0, 1, 2, "x")]),
    ]


def test_a_policy_that_cannot_be_loaded_fails_its_requests_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), running(broken) as (runner, queue):
        assert queue.ask("one") == {"one": failed("not_loaded")}
        assert runner.status() == {"name": "p", "state": "not_loaded", "error": "RuntimeError"}
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_what_an_exception_says_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), running(Words) as (_, queue):
        queue.ask("raise my-secret")
    assert "ValueError" in caplog.text
    assert "policies_under_test.py" in caplog.text
    assert "my-secret" not in caplog.text


def test_a_policy_is_started_by_its_owner_and_closed_when_it_goes() -> None:
    policy = Words()
    with running(lambda: policy) as (_, queue):
        queue.ask("one")
    assert policy.life == ["close"]


def test_a_policy_that_does_not_return_keeps_nothing_but_its_own_thread() -> None:
    policy = Waits()
    with running(lambda: policy) as (_, stuck), running(Words) as (_, other):
        stuck.batches.put([])
        assert other.ask("hello") == {"hello": ALLOWED}
        policy.end.set()


def test_a_runner_ends_when_its_policy_is_out_of_service() -> None:
    queue, runner = PolicyQueue(), PolicyRunner("p", 8, Words)
    runner.start_serving(cast("_core.PolicyQueue", queue))
    queue.batches.put(None)
    assert eventually(lambda: runner.status()["state"] == "ended")
    assert queue.closed
