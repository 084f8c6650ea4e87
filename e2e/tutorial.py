"""The commands of a documentation page for a shell; by default, of the tutorial of a cluster."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_DOCS = Path(__file__).resolve().parents[1] / "docs"
CLUSTER = _DOCS / "tutorial" / "on-your-cluster.md"
FIRST_PROOF = _DOCS / "tutorial" / "first-proof.md"
CUT_THE_TAIL = _DOCS / "tutorial" / "cut-the-tail.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The mark for lines, or the rest of a line, that the page leaves out.
_LEFT_OUT = "…"
_END_OF_STEP = "end of a step of the page:"


@dataclass
class Step:
    """A command of a page, and the output that the page shows for it."""

    command: str
    shown: list[str]


def steps(heading: str, page: str | None = None) -> list[Step]:
    """The commands of the console blocks under a heading, with the output that the page shows.

    A command starts with `$ ` and continues as long as its lines end in a backslash. Raises LookupError.
    """
    page = CLUSTER.read_text() if page is None else page
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    found = [step for block in _BLOCK.findall(section[1] if section else "") for step in _steps(block)]
    if not found:
        raise LookupError(f"the page shows no commands under {heading!r}")
    return found


def script(heading: str, page: str | None = None) -> str:
    """The commands under a heading, one after the other, without their output. Raises LookupError."""
    return "".join(f"{step.command}\n" for step in steps(heading, page))


def run(
    steps: list[Step], folder: Path, environment: dict[str, str], seconds: float, prefix: Sequence[str] = ()
) -> list[tuple[int, str]]:
    """Runs the commands in one shell after `prefix`; returns the exit code and output of each.

    Raises subprocess.TimeoutExpired.
    """
    text = "".join(f'{step.command}\necho "{_END_OF_STEP}$?"\n' for step in steps)
    done = subprocess.run(
        [*prefix, "bash", "-u", "-o", "pipefail"], input=text, text=True, timeout=seconds, cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    *parts, _ = re.split(rf"{_END_OF_STEP}(\d+)\n", done.stdout)
    return [(int(code), printed) for printed, code in zip(parts[::2], parts[1::2], strict=True)]


def follow(
    steps: list[Step],
    folder: Path,
    environment: dict[str, str],
    seconds: float,
    codes: Mapping[int, Collection[int]] | None = None,
    prefix: Sequence[str] = (),
) -> str:
    """Runs the steps and returns their output, which must match the page. A step ends with 0 or one of its `codes`.

    Raises AssertionError.
    """
    ran = run(steps, folder, environment, seconds, prefix)
    assert len(ran) == len(steps), ran
    for place, (step, (code, printed)) in enumerate(zip(steps, ran, strict=True)):
        assert code in (codes or {}).get(place, {0}), f"{step.command}\n{printed}"
        assert missing(step.shown, printed) == [], f"{step.command}\n{printed}"
    return "".join(printed for _, printed in ran)


def changed(steps: list[Step], changes: Mapping[str, str]) -> list[Step]:
    """The steps with texts such as ports replaced in their commands and output."""
    for old, new in changes.items():
        steps = [
            replace(step, command=step.command.replace(old, new), shown=[line.replace(old, new) for line in step.shown])
            for step in steps
        ]
    return steps


def exchange_of(printed: str) -> str:
    """The id of the exchange whose answer was printed. Raises AssertionError."""
    found = re.search(r"^x-request-id: (req_\w+)", printed, re.MULTILINE | re.IGNORECASE)
    assert found, printed
    return found[1]


def missing(shown: list[str], printed: str, varying: str = r"req_\w+") -> list[str]:
    """The shown lines that were not printed in this order. Texts that `varying` matches may differ."""
    lines = iter(printed.replace("\r", "").splitlines())

    def is_printed(line: str) -> bool:
        parts = (re.sub(varying, lambda _: varying, re.escape(part)) for part in line.split(_LEFT_OUT))
        pattern = re.compile(".*".join(parts))
        return any(pattern.fullmatch(one) for one in lines)

    return [line for line in shown if line != _LEFT_OUT and not is_printed(line)]


def replaced(commands: str, changes: dict[str, str]) -> str:
    """The commands with texts replaced, each of which must occur once. Raises LookupError."""
    for old, new in changes.items():
        if commands.count(old) != 1:
            raise LookupError(f"{old!r} occurs {commands.count(old)} times in the commands")
        commands = commands.replace(old, new)
    return commands


def _steps(block: str) -> list[Step]:
    found: list[Step] = []
    open_ended = False
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ "), []))
        elif open_ended:
            found[-1].command += f"\n{line}"
        else:
            if found:
                found[-1].shown.append(line)
            continue
        open_ended = line.endswith("\\")
    return found
