"""The core double, the hand-written stub and the real extension have one interface."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import core_double
import pytest

STUB = Path(__file__).parents[1] / "src" / "proofgate" / "_core.pyi"
SCHEMA = Path(__file__).parents[2] / "schema" / "src"


def stub_signatures(body: list[ast.stmt], prefix: str = "") -> dict[str, list[str]]:
    """Every function of the stub with its parameter names."""
    found: dict[str, list[str]] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            names = [argument.arg for argument in statement.args.args]
            # An extension class takes its arguments in __new__, a Python class in __init__.
            if statement.name == "__new__":
                found[f"{prefix}__init__"] = ["self", *names[1:]]
            else:
                found[f"{prefix}{statement.name}"] = names
        elif isinstance(statement, ast.ClassDef):
            found |= stub_signatures(statement.body, f"{prefix}{statement.name}.")
    return found


def stub_exceptions() -> list[str]:
    classes = [
        statement for statement in ast.parse(STUB.read_text()).body if isinstance(statement, ast.ClassDef)
    ]
    return [entry.name for entry in classes if entry.name.endswith("Error")]


def parameters(module: ModuleType, dotted: str) -> list[str]:
    target: object = module
    for name in dotted.split("."):
        target = inspect.getattr_static(target, name)
    if isinstance(target, property):
        target = target.fget
    assert callable(target)
    return list(inspect.signature(target).parameters)


def test_the_double_has_the_interface_of_the_stub() -> None:
    signatures = stub_signatures(ast.parse(STUB.read_text()).body)
    assert {name: parameters(core_double, name) for name in signatures} == signatures
    for name in stub_exceptions():
        assert issubclass(getattr(core_double, name), core_double.ProofgateError)


@pytest.mark.core
def test_the_extension_has_the_interface_of_the_stub(tmp_path: Path) -> None:
    # In a process of its own: this one has the double in the place of the extension.
    source = os.pathsep.join((str(STUB.parents[1]), str(SCHEMA)))
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "proofgate._core"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source, "MYPYPATH": source},
    )
    assert result.returncode == 0, result.stdout + result.stderr
