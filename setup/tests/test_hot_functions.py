"""`setup/hot-functions` and `setup/hot-functions-are-together`, on counts and maps made up for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNTS = """\
  _ZN4busy3run17h0123456789abcdefE:
    Block counts: [3, 250000]
  _ZN4gone3run17h0123456789abcdefE:
    Block counts: [150000]
  _ZN4rare3run17h0123456789abcdefE:
    Block counts: [12]
"""
#: A map in lld's format.
MAP = """\
             VMA              LMA     Size Align Out     In      Symbol
          281600           281600       40    16 .text.hot
{hot}
          2819c0           2819c0       20    16 .text
          2819c0           2819c0       10    16         /lib/core.o:(.text._ZN4rare3run17hfedcba9876543210E)
{cold}
"""
BUSY = "          281600           281600       20    16         /lib/core.o:({section}17hfedcba9876543210E)"


@pytest.fixture
def order(tmp_path: Path) -> Path:
    written = subprocess.run(
        [ROOT / "setup" / "hot-functions"], input=COUNTS, capture_output=True, text=True, check=True
    )
    path = tmp_path / "order.ld"
    path.write_text(written.stdout)
    return path


def check(order: Path, hot: str = "", cold: str = "") -> subprocess.CompletedProcess[str]:
    linked = order.parent / "core.map"
    linked.write_text(MAP.format(hot=hot, cold=cold))
    program = [str(ROOT / "setup" / "hot-functions-are-together"), str(linked), str(order)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("section", [".text._ZN4busy3run", ".text.hot._ZN4busy3run"])
def test_a_hot_function_that_the_linker_moved_is_in_its_place(order: Path, section: str) -> None:
    checked = check(order, hot=BUSY.format(section=section))
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.startswith("1 of 2 hot functions are together")


@pytest.mark.parametrize("section", [".text._ZN4busy3run", ".text.hot._ZN4busy3run"])
def test_a_hot_function_that_stayed_among_the_others_is_named(order: Path, section: str) -> None:
    checked = check(order, cold=BUSY.format(section=section))
    assert checked.returncode == 1
    assert checked.stderr == f"{section}17hfedcba9876543210E is in .text\n"


def test_functions_that_no_longer_exist_are_passed_over(order: Path) -> None:
    checked = check(order)
    assert checked.returncode == 0
    assert checked.stdout.startswith("0 of 2 ")


def test_what_is_left_behind_of_a_function_that_is_in_its_callers_is_counted(order: Path) -> None:
    checked = check(order, cold=BUSY.format(section=".text.unlikely._ZN4busy3run"))
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.startswith("0 of 2 hot functions are together in .text.hot; 1 were partly inlined")
