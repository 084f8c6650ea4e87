"""The command `completion`: prints the completion script of a shell.

The scripts are generated from the commands (`docs/generate_shell_files.py`), so a shell need not load a
parser.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import resources

_SHELLS = ("bash", "zsh", "fish")
_USAGE = """\
to install the script:
  bash  proofgate completion bash > ~/.local/share/bash-completion/completions/proofgate
  zsh   proofgate completion zsh > ~/.zfunc/_proofgate      (a folder in $fpath, before compinit)
  fish  proofgate completion fish > ~/.config/fish/completions/proofgate.fish
"""


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(run, epilog=_USAGE)
    parser.add_argument("shell", choices=_SHELLS, help="the shell: %(choices)s", metavar="SHELL")


def run(options: argparse.Namespace) -> int:
    """Prints the completion script of a shell."""
    script = resources.files("proofgate.cli") / "shells" / f"proofgate.{options.shell}"
    print(script.read_text(encoding="utf-8"), end="")
    return 0
