"""What the README shows first can be run as it stands: files are there, and whatever differs elsewhere is filled in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from e2e import readme
from e2e.tests.test_first_hour import changes

ROOT = Path(__file__).resolve().parents[2]
FIRST_HOUR = readme.script("On your cluster, with your key")


def test_the_first_thing_to_run_is_for_whoever_has_a_cluster() -> None:
    page = readme.README.read_text()
    assert page.index("$ helm install") == page.index("$ ")


def test_the_commands_are_what_a_shell_can_read() -> None:
    done = subprocess.run(["bash", "-n", "-c", FIRST_HOUR], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_file_that_they_name_is_there() -> None:
    named = set(re.findall(r"(?:-f |install proofgate )([a-z][\w./-]+)", FIRST_HOUR))
    assert {"charts/proofgate-operator", "examples/quickstart.yaml", "examples/ask.yaml"} == named
    assert all((ROOT / path).exists() for path in named)


def test_the_secrets_are_made_as_the_examples_say() -> None:
    told = [line.removeprefix("#").strip() for line in (ROOT / "examples" / "quickstart.yaml").read_text().splitlines()]
    shown = [line for line in FIRST_HOUR.splitlines() if "kubectl create secret" in line]
    assert shown == [line for line in told if "kubectl create secret" in line]


def test_no_key_stands_on_a_command_line() -> None:
    # printf is the shell's own.
    assert "--from-literal" not in FIRST_HOUR
    assert re.findall(r"\S+ %s \"\$OPENAI_API_KEY\"", FIRST_HOUR) == ['printf %s "$OPENAI_API_KEY"']
    assert FIRST_HOUR.count("$OPENAI_API_KEY") == 1


def test_the_run_on_the_local_cluster_fills_in_what_is_there() -> None:
    filled = readme.replaced(FIRST_HOUR, changes(18080))
    assert "ghcr.io" not in filled
    assert len(filled.splitlines()) == len(FIRST_HOUR.splitlines())


def test_a_command_goes_on_over_lines_and_what_it_prints_is_left_out() -> None:
    page = (
        "## One\n\n```console\n$ a \\\n    b\nprinted\n$ c\n```\n\n```yaml\n$ no\n```\n## Two\n```console\n$ d\n```\n"
    )
    assert readme.script("One", page) == "a \\\n    b\nc\n"
    assert readme.script("Two", page) == "d\n"


def test_a_heading_that_is_gone_and_a_text_that_is_not_there_once_are_told() -> None:
    with pytest.raises(LookupError, match="no commands under 'Three'"):
        readme.script("Three", "## One\n")
    with pytest.raises(LookupError, match="stands 2 times"):
        readme.replaced("a a", {"a": "b"})
