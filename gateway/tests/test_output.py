"""`--output`: the same data as a table, as JSON and as YAML."""

from __future__ import annotations

import argparse
import json

import pytest
import yaml
from conftest import ConfigDirectory

from proofgate import output
from proofgate.cli import all_parsers, main
from proofgate.exit_codes import ExitCode

Capture = pytest.CaptureFixture[str]
#: The commands that print data, each in all three formats.
PRINT_DATA = (
    *("validate", "status", "verify", "ledger fsck", "ledger replay", "ledger prune", "ledger erase"),
    *("ledger shred", "ledger retention", "policy rules", "keys show", "gateway prices", "audit run"),
    *("audit exchanges", "audit access-log", "audit verify-export", "audit end-user"),
    *("ledger reveal", "ledger consistency", "policy test", "policy check"),
)


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    output.add_argument(parser, "--json", "--format")
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ([], "table"),
        (["--output", "yaml"], "yaml"),
        (["--output", "text"], "table"),
        (["--json"], "json"),
        (["--format", "json"], "json"),
        (["--format", "text"], "table"),
    ],
)
def test_the_names_of_before_give_the_same_forms(arguments: list[str], form: str) -> None:
    assert parsed(*arguments).output == form


def test_json_and_yaml_are_the_same_document_in_its_order(capsys: Capture) -> None:
    document = {"b": "é: 1", "a": [None, True, ExitCode.INVALID]}
    output.show(parsed("--output", "json"), document)
    assert json.loads(capsys.readouterr().out) == document
    output.show(parsed("--output", "yaml"), document)
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed) == document
    assert printed.startswith("b: ")


def test_every_command_that_prints_data_has_the_three_forms() -> None:
    known = all_parsers()
    for name in PRINT_DATA:
        actions = known[name]._option_string_actions
        assert set(actions["--output"].choices or ()) >= {"table", "json", "yaml"}, name
        former = [actions[option] for option in ("--json", "--format") if option in actions]
        assert all(action.help == argparse.SUPPRESS for action in former), name


def test_a_configuration_is_validated_as_yaml(config_directory: ConfigDirectory, capsys: Capture) -> None:
    assert main(["validate", str(config_directory.file), "--output", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["valid"] is True
    assert main(["policy", "rules", str(config_directory.file), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rules"] == []
    assert main(["keys", "show", str(config_directory.path / "signing-key"), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"][0]["until"] is None


def test_a_verdict_of_a_policy_is_data_too(config_directory: ConfigDirectory, capsys: Capture) -> None:
    with config_directory.file.open("a") as file:
        file.write("policy: {packs: [pii]}\n")
    text = ["policy", "check", str(config_directory.file), "--text", "my card is 4539 5787 6362 1486"]
    assert main([*text, "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(match["rule"], match["text"]) for match in found["matches"]] == [
        ("pii-card", "4539 5787 6362 1486")
    ]
    samples = config_directory.path / "samples.yaml"
    samples.write_text("- {text: nothing, expect: block}\n")
    tested = ["policy", "test", str(config_directory.file), "--samples", str(samples), "--output", "json"]
    assert main(tested) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], report["samples"]) == (False, 1)
    assert report["failures"][0]["got"]["decision"] == "allow"
