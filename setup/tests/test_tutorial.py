"""The commands of README and tutorial can be run unchanged: files exist, and varying values are filled in."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from proofgate.quickstart import QuickstartSetup, instructions
from proofgate_operator.api.gateway import Gateway

from e2e import tutorial
from e2e.tests.test_first_hour import changes, exploring, verifying

ROOT = Path(__file__).resolve().parents[2]
FIRST_HOUR = tutorial.script("Install and ask")
README = (ROOT / "README.md").read_text()


def test_the_readme_is_one_page_and_its_commands_end_in_a_verified_answer() -> None:
    assert len(README.encode()) <= 8_000
    assert "`make demo`" in README and "`make test`" in README
    laptop = tutorial.script("Try it on a laptop", README).splitlines()
    assert laptop[0].startswith("make run") and laptop[-1].startswith("proofgate verify receipt.json")
    assert tutorial.script("Try it on Kubernetes", README).startswith("make demo\n")
    assert README.count("\nverified\n") == 1 and README.count("\n  verified\n") == 1


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/first-proof.md", "docs/tutorial/on-your-cluster.md"])
def test_the_commands_are_what_a_shell_can_read(page: str) -> None:
    text = (ROOT / page).read_text()
    for heading in re.findall(r"^## (.*)$", text, re.MULTILINE):
        if f"## {heading}\n" in text and "```console" in text.split(f"## {heading}\n")[1].split("\n## ")[0]:
            done = subprocess.run(["bash", "-n", "-c", tutorial.script(heading, text)], capture_output=True, text=True)
            assert done.returncode == 0, f"{heading}: {done.stderr}"


def test_the_receipt_is_verified_as_quickstart_says() -> None:
    shown = tutorial.script("3. Get a receipt and verify it", (ROOT / "docs/tutorial/first-proof.md").read_text())
    said = instructions(Path("proofgate"), QuickstartSetup(), "proofgate").replace(" \\\n    ", " ")
    commands = re.findall(r"^  (proofgate (?:receipt|verify proofgate/receipt).*)$", said, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        # The page uses a different folder, and writes the receipt into the current one.
        expected = command.replace("proofgate/receipt.json", "receipt.json").replace("proofgate/", ".state/run/")
        assert expected.replace(" ID ", " $ID ") in shown


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
    filled = tutorial.replaced(FIRST_HOUR, changes(18080))
    assert "ghcr.io" not in filled
    assert len(filled.splitlines()) == len(FIRST_HOUR.splitlines())


def test_the_answer_on_the_local_cluster_is_verified_by_the_commands_of_the_page() -> None:
    shown = tutorial.script("Verify the answer")
    filled = tutorial.replaced(shown, verifying(18080, Path("/a folder")))
    assert filled.splitlines()[1:3] == shown.splitlines()[1:3]
    assert "cd '/a folder'" in filled and "http://127.0.0.1:18080" in filled
    done = subprocess.run(["bash", "-n", "-c", filled], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_explorer_of_the_page_is_a_change_of_the_quickstart_that_a_gateway_takes() -> None:
    gateway = yaml.safe_load((ROOT / "examples" / "quickstart.yaml").read_text())
    gateway["metadata"] |= {"namespace": "llm", "uid": "u"}
    shown = tutorial.script("See the exchanges")
    [path] = re.findall(r"--patch-file (\S+)", shown)
    change = json.loads((ROOT / path).read_text())
    read = Gateway.from_manifest({**gateway, "spec": {**gateway["spec"], **change["spec"]}})
    assert read.enabled_auditor is not None and read.enabled_auditor.enabled_index is not None
    assert set(read.enabled_auditor.secrets()) == set(re.findall(r"kubectl create secret generic (\S+)", shown))
    filled = tutorial.replaced(shown, exploring(19091, Path("/a folder")))
    done = subprocess.run(["bash", "-n", "-c", filled], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_command_goes_on_over_lines_and_what_it_prints_is_left_out() -> None:
    page = (
        "## One\n\n```console\n$ a \\\n    b\nprinted\n$ c\n```\n\n```yaml\n$ no\n```\n## Two\n```console\n$ d\n```\n"
    )
    assert tutorial.script("One", page) == "a \\\n    b\nc\n"
    assert tutorial.script("Two", page) == "d\n"


def test_a_heading_that_is_gone_and_a_text_that_is_not_there_once_are_told() -> None:
    with pytest.raises(LookupError, match="no commands under 'Three'"):
        tutorial.script("Three", "## One\n")
    with pytest.raises(LookupError, match="occurs 2 times"):
        tutorial.replaced("a a", {"a": "b"})


def test_make_run_says_in_one_line_how_to_use_a_key_of_a_provider() -> None:
    done = subprocess.run(["make", "--dry-run", "run"], cwd=ROOT, capture_output=True, text=True, check=True)
    [line] = [line for line in done.stdout.splitlines() if "export OPENAI_API_KEY" in line]
    assert line.startswith("echo ") and "quickstart --start" in line
