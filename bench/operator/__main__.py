"""Measures the costs of the operator, and its effects on a load.

python -m bench.operator

writes bench/results/operator.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import machine
from bench.operator import lab
from e2e.unkind import PROFILES

RESULTS = Path(__file__).resolve().parents[1] / "results" / "operator.json"
#: The names in the simulation, with the names in the report.
NAMES = {
    "reconcile_p50_s": "reconcile_p50_s_1000",
    "reconcile_p99_s": "reconcile_p99_s_1000",
    "operator_rss_mb": "operator_rss_mb_1000",
    "operator_idle_cpu_percent": "operator_idle_cpu",
    "takeover_after_kill_s": "operator_takeover_s",
}


def say(text: str) -> None:
    """Prints the current step."""
    print(f"== {text}", flush=True)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, default=1000, help="of the simulation without nodes (default 1000)")
    parser.add_argument(
        "--only",
        choices=["lab", "revocation", "profiles", "thousand", "spaces"],
        help="one part; the rest of the result stays",
    )
    parser.add_argument("--profiles", default=",".join(PROFILES), help=f"default: {','.join(PROFILES)}")
    options = parser.parse_args()
    described = machine.describe()
    figures: dict[str, Any] = {}
    if options.only in {None, "lab"}:
        figures |= lab.run(say)
    if options.only == "revocation":
        figures |= lab.run_revocations(say)
    if options.only in {None, "profiles"}:
        figures["profiles"] = {name: lab.run_profile(name, say) for name in options.profiles.split(",")}
    if options.only in {None, "thousand"}:
        command = [sys.executable, "-m", "bench.operator.thousand", "--gateways", str(options.gateways)]
        simulated = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        figures |= {NAMES.get(name, name): value for name, value in simulated.items() if name != "machine"}
    if options.only in {None, "spaces"}:
        for prefix, arguments in (("spaces", ()), ("all_spaces", ("--cluster-wide",))):
            command = [sys.executable, "-m", "bench.operator.spaces", *arguments]
            counted = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            figures |= {f"{prefix}_{name}": value for name, value in counted.items() if name != "machine"}
    print(json.dumps(figures, indent=2))
    before = json.loads(RESULTS.read_text()) if options.only and RESULTS.exists() else {}
    if "spread" in figures:
        figures["spread"] = {**before.get("spread", {}), **figures["spread"]}
    if "profiles" in figures:
        figures["profiles"] = {**before.get("profiles", {}), **figures["profiles"]}
    name = f"machine_{options.only}" if options.only else "machine"
    RESULTS.write_text(json.dumps({**before, name: described, **figures}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
