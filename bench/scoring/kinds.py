"""Measures the cost of the rules on ten kinds of text, and finds the slowest rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from proofgate_schema.policy import Policy

from bench.scoring.engine import EngineError

MOST_US_PER_KB = 20
"""Maximum processor microseconds of all packs together for a kilobyte of any kind of text."""

BUDGET_US_PER_KIB: int = Policy.model_fields["budget_microseconds_per_kibibyte"].default
"""Default maximum of a policy's processor microseconds for a KiB."""


def measure(binary: Path) -> dict[str, Any]:
    """For each kind: `all` rules together, `none`, and the `slowest` rules, each alone. Raises EngineError."""
    run = subprocess.run([str(binary), "--json"], capture_output=True, text=True, check=False)
    if run.returncode:
        raise EngineError(f"{binary.name} ended with {run.returncode}: {run.stderr.strip()}")
    measured: dict[str, Any] = json.loads(run.stdout)
    return measured


def show(measured: dict[str, Any]) -> None:
    """Prints what `measure` found."""
    print("\n".join(lines(measured)))


def lines(measured: dict[str, Any]) -> list[str]:
    """A Markdown table that names the slowest rules."""
    rows = ["| text | all packs, us/KB | without rules | slowest rules alone, us/KB |", "|---|---|---|---|"]
    for kind, figures in sorted(measured.items()):
        slowest = ", ".join(f"`{rule}` {cost:.1f}" for rule, cost in figures["slowest"][:3])
        rows.append(f"| {kind} | {figures['all']:.1f} | {figures['none']:.1f} | {slowest} |")
    return rows
