"""Circles of files are found, however they are imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "import-circles"


def run(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, content in files.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return subprocess.run([sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "back",
    [
        "import shop.order",
        "from shop import order",
        "from . import order",
        "from .order import TOTAL",
        "def late():\n    from shop.order import TOTAL",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.order import TOTAL",
    ],
)
def test_two_files_that_import_each_other_are_a_circle(tmp_path: Path, back: str) -> None:
    done = run(tmp_path, {"__init__.py": "", "order.py": "from shop import price", "price.py": back})
    assert done.returncode == 1
    assert done.stdout == (
        "2 files import each other:\n  shop.order imports shop.price\n  shop.price imports shop.order\n"
    )


def test_circles_that_share_a_file_are_one(tmp_path: Path) -> None:
    files = {
        "a.py": "from shop import b",
        "b.py": "from shop import a, c",
        "c.py": "from shop import d",
        "d.py": "from shop import b",
        "e.py": "from shop import a",
    }
    done = run(tmp_path, files)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "4 files import each other:"


def test_two_circles_are_both_reported(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        {
            "a.py": "from shop import b",
            "b.py": "from shop import a, c",
            "c.py": "from shop import d",
            "d.py": "from shop import c",
        },
    )
    assert done.stdout.count("2 files import each other:") == 2


def test_a_package_that_collects_its_modules_is_no_circle(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from shop.order import TOTAL",
        "order.py": "from .parts.price import PRICE\nTOTAL = PRICE",
        "parts/__init__.py": "",
        "parts/price.py": "import decimal\nPRICE = 1",
    }
    done = run(tmp_path, files)
    assert (done.returncode, done.stdout) == (0, "")
