"""Policies in the configuration: refusals, the core's settings, and loaded code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from conftest import PATIENCE_SECONDS, ConfigDirectory, started_as
from faulty_worker import Worker
from policy_queue_double import PolicyQueue

from proofgate.config import load
from proofgate.policy.runners import PolicyRunners

if TYPE_CHECKING:
    from proofgate import _core

WORDS = "policies: [{name: words, factory: 'policies_under_test:words', parameters: {word: gold}}]\n"


class AskedWorker(Worker):
    """A worker whose policies receive the test's requests: see `PolicyQueue.ask`."""

    def __init__(self, config_json: str) -> None:
        super().__init__(config_json)
        self.asked: dict[str, PolicyQueue] = {}

    def policy_queue(self, policy: str) -> Any:
        self.core.policy_queue(policy)
        self.asked[policy] = PolicyQueue()
        return self.asked[policy]


def with_policies(directory: ConfigDirectory, text: str, asks: str = "words") -> ConfigDirectory:
    directory.append(text)
    directory.replace("    models: [gpt-4o-mini]\n", f"    models: [gpt-4o-mini]\n    policies: [{asks}]\n")
    return directory


def test_the_core_is_told_names_deadlines_and_who_asks(config_directory: ConfigDirectory) -> None:
    core = with_policies(config_directory, WORDS).core()
    [policy] = core["policies"]
    assert (policy["name"], policy["deadlineMilliseconds"], policy["onFailure"]) == ("words", 100, "Deny")
    assert [tenant["policies"] for tenant in core["tenants"]] == [["words"], []]


def test_whatever_a_policy_is_made_of_makes_another_revision(config_directory: ConfigDirectory) -> None:
    with_policies(config_directory, WORDS)
    before, digest = config_directory.core()["policies"][0], load(config_directory.file).digest()
    config_directory.replace("word: gold", "word: silver")
    after = config_directory.core()["policies"][0]
    assert before["revision"] != after["revision"]
    assert load(config_directory.file).digest() != digest


def test_a_name_that_no_policy_has_is_refused_with_what_was_meant(config_directory: ConfigDirectory) -> None:
    error = with_policies(config_directory, WORDS, "word").problems()
    [problem] = error.problems
    assert problem.code == "config_unknown_policy"
    assert "did you mean words?" in problem.message


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{name: a}", "config_policy_source"),
        ("{name: a, factory: 'm:f', url: 'https://h/'}", "config_policy_source"),
        ("{name: a, url: 'https://h/', parameters: {x: 1}}", "config_policy_source"),
        ("{name: a, url: 'http://h/', caFile: ca}", "config_policy_source"),
        ("{name: a, url: 'http://h/', tokenFile: token}", "config_policy_source"),
        ("{name: a, factory: 'm:f'}, {name: a, factory: 'm:f'}", "config_duplicate_name"),
        ("{name: A, factory: 'm:f'}", "config_invalid_value"),
        ("{name: a, factory: 'm'}", "config_invalid_value"),
        ("{name: a, factory: 'm:f()'}", "config_invalid_value"),
        ("{name: a, factory: 'm:f', deadlineMilliseconds: 0}", "config_invalid_value"),
        ("{name: a, factory: 'm:f', batch: 0}", "config_invalid_value"),
        ("{name: a, factory: 'm:f', onFailure: Ignore}", "config_invalid_value"),
        ("{name: a, factory: 'm:f', parameters: {x: .nan}}", "config_invalid_value"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(
    config_directory: ConfigDirectory, entry: str, code: str
) -> None:
    config_directory.append(f"policies: [{entry}]\n")
    assert set(config_directory.codes()) == {code}


def test_a_token_for_a_service_on_loopback_needs_no_tls(config_directory: ConfigDirectory) -> None:
    config_directory.append("policies: [{name: a, url: 'http://127.0.0.1:1/', tokenFile: token}]\n")
    assert load(config_directory.file).settings.policies[0].token_file == "token"


def test_a_reload_loads_what_is_new_and_keeps_what_stays(config_directory: ConfigDirectory) -> None:
    text = WORDS.replace("]\n", ", {name: other, factory: 'policies_under_test:words'}]\n")
    with_policies(config_directory, text)
    config = load(config_directory.file)
    with started_as(AskedWorker, config) as worker:
        policies = PolicyRunners(cast("_core.Worker", worker))
        policies.prepare(config)
        policies.apply_config(config)
        before = dict(worker.asked)
        config_directory.replace("word: gold", "word: silver")
        changed = load(config_directory.file)
        policies.prepare(changed)
        worker.reload(changed.to_core_json(0))
        policies.apply_config(changed)
        after = worker.asked
        assert after["other"] is before["other"]
        assert after["words"] is not before["words"]
        assert after["words"].ask("silver")["silver"][0] == "deny"
        # Exchanges that started earlier still use the earlier policy.
        assert before["words"].ask("gold")["gold"][0] == "deny"
        assert sorted(entry["state"] for entry in policies.status()) == ["running", "running"]
        policies.close(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "factory", ["policies_under_test:broken", "no_such_module:f", "policies_under_test:no_policy"]
)
def test_a_policy_that_cannot_be_loaded_is_told_and_keeps_nobody_from_starting(
    config_directory: ConfigDirectory, factory: str
) -> None:
    with_policies(config_directory, WORDS.replace("policies_under_test:words", factory))
    config = load(config_directory.file)
    with started_as(AskedWorker, config) as worker:
        policies = PolicyRunners(cast("_core.Worker", worker))
        policies.prepare(config)
        policies.apply_config(config)
        [status] = policies.status()
        assert status["state"] == "not_loaded"
        assert worker.asked["words"].ask("x")["x"][:2] == ("failed", "not_loaded")
        policies.close(PATIENCE_SECONDS)
