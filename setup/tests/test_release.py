"""The workflow that publishes a release, as far as it can be checked without running it."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / ".github" / "workflows" / "release.yaml").read_text()
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def steps() -> Iterator[dict[str, Any]]:
    for job in JOBS.values():
        yield from job["steps"]


SCRIPTS = [step["run"] for step in steps() if "run" in step]


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_every_script_is_bash_without_an_expression_of_the_workflow_in_it(script: str) -> None:
    """An expression in a script's text would be run; the content of a variable is not."""
    assert "${{" not in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_it_logs_in_and_calls_make_release_and_nothing_more() -> None:
    (log_in, release) = SCRIPTS
    assert log_in.startswith("docker login ghcr.io") and len(log_in.splitlines()) == 1
    words = shlex.split(release)
    assert words[:2] == ["make", "release"]
    assert all(re.fullmatch(r"[A-Z]+=\S+", word) for word in words[2:] if word.strip())
    given = dict(word.split("=", 1) for word in words[2:] if word.strip())
    assert given["VERSION"] == "${GITHUB_REF_NAME#v}"
    assert set(given["PLATFORMS"].split(",")) == {"linux/amd64", "linux/arm64"}
    assert (given["SIGN"], given["PUBLISH"], given["BUILDER"]) == ("keyless", "yes", "docker")


def test_what_is_given_to_make_release_is_what_it_takes() -> None:
    recipe = re.search(r"^release:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    taken = set(re.findall(r"\$\(([A-Z]+)\)", recipe[1]))
    assert set(re.findall(r"\b([A-Z]+)=", SCRIPTS[-1])) <= taken


def test_every_action_is_pinned_by_a_commit_and_names_its_version() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) == sum("uses" in step for step in steps())
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_nothing_is_permitted_but_what_a_job_asks_for() -> None:
    assert WORKFLOW["permissions"] == {}
    writes = {
        name: {scope for scope, right in job["permissions"].items() if right == "write"} for name, job in JOBS.items()
    }
    assert writes == {"release": {"contents", "packages", "id-token"}}


def test_there_is_no_secret_but_the_workflows_own_token() -> None:
    assert "secrets." not in TEXT
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_a_tag_and_nothing_else_publishes() -> None:
    # YAML 1.1 reads the key `on` as true.
    triggers = WORKFLOW.get("on", WORKFLOW.get(True))
    assert triggers == {"push": {"tags": ["v*"]}}
