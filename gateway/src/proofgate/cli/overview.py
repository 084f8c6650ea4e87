"""The output of `proofgate --help` and `proofgate GROUP --help`. No command is imported for this output."""

from __future__ import annotations

import textwrap

from proofgate.cli.catalogue import GROUPS, Command, commands_in_group
from proofgate.exit_codes import ExitCode

#: Width of a description, in columns.
WIDTH = 98


def render_overview() -> str:
    """Lists the commands without a group, and the names of the commands in each group."""
    groups = []
    for group, purpose in GROUPS.items():
        names = ", ".join(command.name for command in commands_in_group(group))
        indent = " " * 12
        listed = textwrap.fill(
            names, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )
        groups.append(f"  {group:<8}  {purpose}:\n{listed}")
    return (
        "usage: proofgate [GROUP] COMMAND [ARGUMENT]…\n\n"
        "Run an LLM gateway worker that keeps provable records, and verify its evidence.\n\n"
        f"common commands:\n{_rows(commands_in_group(''))}\n\n"
        "groups:\n" + "\n".join(groups) + "\n\n"
        "options:\n  --help      also after a group or a command\n  --version   print the version\n\n"
        f"exit codes:\n{_exit_codes()}\n"
    )


def render_group(group: str) -> str:
    """Lists the commands of a group."""
    purpose = GROUPS[group]
    return (
        f"usage: proofgate {group} COMMAND [ARGUMENT]…\n\n{purpose[0].upper()}{purpose[1:]}.\n\n"
        f"commands:\n{_rows(commands_in_group(group))}\n\n"
        f"For help: proofgate {group} COMMAND --help\n"
    )


def _rows(commands: list[Command]) -> str:
    wide = max(len(command.name) for command in commands) + 2
    indent = " " * (wide + 2)
    return "\n".join(
        textwrap.fill(
            command.summary,
            WIDTH,
            initial_indent=f"  {command.name:<{wide}}",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        for command in commands
    )


def _exit_codes() -> str:
    return "\n".join(f"  {code.value:<5} {code.meaning}" for code in ExitCode)
