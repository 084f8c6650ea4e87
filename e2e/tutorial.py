"""The commands that a page shows, as a shell would run them; by default those of the tutorial of a cluster."""

from __future__ import annotations

import re
from pathlib import Path

CLUSTER = Path(__file__).resolve().parents[1] / "docs" / "tutorial" / "on-your-cluster.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script(heading: str, page: str | None = None) -> str:
    """The commands of the console blocks under a heading, one after the other, without what they print.

    A command begins with `$ ` and goes on while its lines end in a backslash. Raises LookupError.
    """
    page = CLUSTER.read_text() if page is None else page
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    found = [command for block in _BLOCK.findall(section[1] if section else "") for command in _commands(block)]
    if not found:
        raise LookupError(f"the page shows no commands under {heading!r}")
    return "".join(f"{command}\n" for command in found)


def replaced(commands: str, changes: dict[str, str]) -> str:
    """The commands with texts replaced, each of which has to stand in them once. Raises LookupError."""
    for old, new in changes.items():
        if commands.count(old) != 1:
            raise LookupError(f"{old!r} occurs {commands.count(old)} times in the commands")
        commands = commands.replace(old, new)
    return commands


def _commands(block: str) -> list[str]:
    found: list[str] = []
    open_ended = False
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(line.removeprefix("$ "))
        elif open_ended:
            found[-1] += f"\n{line}"
        else:
            continue
        open_ended = line.endswith("\\")
    return found
