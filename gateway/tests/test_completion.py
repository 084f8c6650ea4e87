"""Shell completion: the suggestions of the generated bash script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from proofgate.cli import main
from proofgate.cli.catalogue import BY_PATH

ROOT = Path(__file__).parents[2]
OFFERED = """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_proofgate
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["le"], ["ledger"]),
        (["ledger", "f"], ["fsck"]),
        (["ledger", "fsck", "--ag"], ["--against"]),
        (["ledger", "fsck", "--output", ""], ["table", "json", "yaml"]),
        (["ledger", "hold", "add", "--sin"], ["--since"]),
        (["ledger", "fsck", "folder", "--key", "--ag"], []),
        (["completion", "z"], ["zsh"]),
        (["fs"], []),
    ],
)
def test_bash_completes_commands_options_and_choices(
    words: list[str], offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    program = script("bash", capsys) + OFFERED
    command = [bash, "-c", program, "bash", "proofgate", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.split() == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_every_command_and_no_name_of_before(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    assert all(f'"{path}"' in text for path in BY_PATH)
    assert "mirror-fetch" not in text
    assert "--format json" not in text


def test_scripts_and_man_pages_are_those_of_the_commands() -> None:
    folder = ROOT / "gateway" / "data" / "data" / "share" / "man" / "man1"
    pages = "".join(page.read_text() for page in folder.iterdir()).replace("\\-", "-")
    assert all(f".SS proofgate {path}" in pages for path in BY_PATH)
