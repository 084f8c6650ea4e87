"""The runbooks' commands and queries, filled with the labels of an alert.

Nothing is sent to a cluster here; the test checks that every block is a valid command or query.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from proofgate import cli

from e2e.cluster import toolchain
from e2e.runbooks import NOT_MADE, ROOT, Block, alerts, blocks, labels_of, variable

BLOCKS = list(blocks())
SHELL = [block for block in BLOCKS if block.language == "sh"]


def filled(block: Block) -> str:
    return block.filled({variable(label): f"a-{label}" for label in labels_of(alerts()[block.alert])})


def test_every_page_has_a_check_that_can_be_run_and_every_block_a_language() -> None:
    assert {block.alert for block in BLOCKS} == set(alerts())
    assert {block.language for block in BLOCKS} == {"sh", "promql"}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.alert}-{block.language}")
def test_a_block_needs_nothing_but_the_labels_of_its_alert(block: Block) -> None:
    known = {variable(label) for label in labels_of(alerts()[block.alert])}
    earlier = {name for other in SHELL if other.alert == block.alert for name in assigned(other)}
    assert block.variables - known - earlier == set()


def assigned(block: Block) -> set[str]:
    return set(re.findall(r"^([A-Z]\w*)=", block.text, re.MULTILINE))


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.alert)
def test_a_shell_understands_every_block_of_commands(block: Block) -> None:
    done = subprocess.run(["bash", "-n"], input=filled(block), text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(r"<\w+>", block.text), "a placeholder is for people, and no command"


def carried_out_in_their_failure() -> set[str]:
    """The alerts whose pages a test runs during their failure: those that such a test names."""
    tests = [path for folder in ("tests", "worker") for path in (ROOT / "e2e" / folder).glob("test_*.py")]
    texts = [path.read_text() for path in tests if path != Path(__file__).resolve()]
    carry_out = [ast.parse(text) for text in texts if re.search(r"\b(looked_into|answers)\(", text)]
    constants = {node.value for tree in carry_out for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {alert for alert in alerts() if alert in constants}


def test_every_page_is_carried_out_in_the_failure_that_it_is_for_or_says_why_not() -> None:
    made = carried_out_in_their_failure()
    assert made & set(NOT_MADE) == set(), "they are made: take them from the list"
    assert set(alerts()) - made == set(NOT_MADE)


def test_every_command_of_proofgate_exists_with_its_options() -> None:
    commands = [
        line for block in SHELL for line in filled(block).splitlines() if re.match(r"(kubectl )?proofgate ", line)
    ]
    assert commands
    for line in commands:
        arguments = shlex.split(line.removeprefix("kubectl "))[1:]
        parsed = cli.parse(arguments)
        assert isinstance(parsed, argparse.Namespace)


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    queries = [query for block in BLOCKS if block.language == "promql" for query in filled(block).splitlines()]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "runbooks", "rules": rules}]}))
    toolchain.ensure([toolchain.PROMTOOL])
    command: list[str | Path] = [toolchain.binary("promtool"), "check", "rules", tmp_path / "rules.yaml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(queries)} rules found" in done.stdout
