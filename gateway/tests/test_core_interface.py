"""Stand-ins for the core, its hand-written stub and the extension have the same interface."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import auditor_double
import mirror_core_double
import payloads_double
import policy_queue_double
import pytest
import replay_double
import retention_double
import witness_double

STUB = Path(__file__).parents[1] / "src" / "proofgate" / "_core.pyi"
SCHEMA = Path(__file__).parents[2] / "schema" / "src"


def stub_signatures(body: list[ast.stmt], prefix: str = "") -> dict[str, list[str]]:
    """The parameter names of every function of the stub."""
    found: dict[str, list[str]] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            names = [argument.arg for argument in statement.args.args]
            # An extension class receives its arguments in __new__, a Python class in __init__.
            if statement.name == "__new__":
                found[f"{prefix}__init__"] = ["self", *names[1:]]
            else:
                found[f"{prefix}{statement.name}"] = names
        elif isinstance(statement, ast.ClassDef):
            found |= stub_signatures(statement.body, f"{prefix}{statement.name}.")
    return found


def parameters(fake: object, dotted: str) -> list[str]:
    target = fake
    for name in dotted.split(".")[1:]:
        target = inspect.getattr_static(target, name)
    if isinstance(target, property):
        target = target.fget
    assert callable(target)
    return list(inspect.signature(target).parameters)


@pytest.mark.parametrize(
    "fake",
    [
        *(auditor_double.Auditor, retention_double.RetentionState, witness_double.Witness),
        *(policy_queue_double.PolicyItem, policy_queue_double.PolicyQueue),
        *(payloads_double.StoredExchange, payloads_double.StoredPayloads, payloads_double.stored_payload),
        *(replay_double.RecordedExchanges, replay_double.Replayer, mirror_core_double.fsck_pinned),
    ],
)
def test_a_fake_has_the_interface_of_the_stub(fake: Callable[..., object]) -> None:
    signatures = {
        name: named
        for name, named in stub_signatures(ast.parse(STUB.read_text()).body).items()
        if name.split(".")[0] == fake.__name__
    }
    assert signatures
    assert {name: parameters(fake, name) for name in signatures} == signatures


def test_the_extension_has_the_interface_of_the_stub(tmp_path: Path) -> None:
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
