"""The workflow that publishes a release, as far as it can be checked without running it."""

from __future__ import annotations

import re
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


def needs(job: str) -> list[str]:
    """The jobs that come before this one."""
    named: str | list[str] = JOBS[job].get("needs", [])
    return [named] if isinstance(named, str) else named


SCRIPTS = [step["run"] for step in steps() if "run" in step]


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_every_script_is_bash_without_an_expression_of_the_workflow_in_it(script: str) -> None:
    """What is put into a script's text is run; a variable's content is not."""
    assert "${{" not in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_what_the_scripts_call_is_there() -> None:
    text = "\n".join(SCRIPTS)
    called = re.findall(r"\./(setup/[\w-]+)", text)
    assert {"setup/check-version", "setup/package-chart"} == set(called)
    for path in called:
        assert (ROOT / path).stat().st_mode & 0o100, path
    targets = re.findall(r"^ *make ([\w-]+)", text, re.MULTILINE)
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets and set(targets) <= made
    baked = re.findall(r"buildx bake --builder \w+ ([\w-]+)", text)
    groups = set(re.findall(r'^(?:group|target) "([\w-]+)"', (ROOT / "docker-bake.hcl").read_text(), re.MULTILINE))
    assert baked and set(baked) <= groups


def test_the_chart_names_its_images_by_the_digests_that_were_pushed() -> None:
    (step,) = (step for step in JOBS["chart"]["steps"] if "package-chart" in step.get("run", ""))
    assert '"$WORKER" "$OPERATOR"' in step["run"]
    for name in ("worker", "operator"):
        assert step["env"][name.upper()] == f"${{{{ needs.images.outputs.{name} }}}}"
        assert JOBS["images"]["outputs"][name] == f"${{{{ steps.push.outputs.{name} }}}}"


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
    signing = {"packages", "id-token", "attestations"}
    assert writes == {"version": set(), "images": signing, "chart": signing, "assets": {"contents"}}


def test_there_is_no_secret_but_the_workflows_own_token() -> None:
    assert "secrets." not in TEXT
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_nothing_is_published_before_the_tag_was_compared_with_the_versions() -> None:
    # YAML 1.1 reads the key `on` as true.
    triggers = WORKFLOW.get("on", WORKFLOW.get(True))
    assert triggers == {"push": {"tags": ["v*"]}}
    for name in JOBS:
        before, seen = [name], set[str]()
        while before:
            seen.add(before[-1])
            before += needs(before.pop())
        assert "version" in seen, name
    assert JOBS["version"]["steps"][-1]["run"] == './setup/check-version "$GITHUB_REF_NAME"'


def test_a_step_reads_outputs_of_steps_and_jobs_that_are_there() -> None:
    ids = {(name, step["id"]) for name, job in JOBS.items() for step in job["steps"] if "id" in step}
    for name, job in JOBS.items():
        text = yaml.safe_dump(job)
        assert {(name, found) for found in re.findall(r"steps\.([\w-]+)\.", text)} <= ids
        assert set(re.findall(r"needs\.([\w-]+)\.", text)) <= set(needs(name))
