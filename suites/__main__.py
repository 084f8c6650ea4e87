"""The command line.

python -m suites run NAME …          these suites, and what they need built before
python -m suites all | check         everything; what needs no other program running
python -m suites quick [--base REV]  format, lint, types, unit tests of what changed, one worker end to end
python -m suites hunt [--rounds N]   look for tests that chance or load decides
python -m suites list
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path

from suites import catalogue, changed, hunt, report
from suites.load import busy
from suites.run import Interrupted, Run
from suites.steps import ROOT, Step


def main() -> int:
    """Returns the exit code."""
    given = parser().parse_args()
    folder = Path(os.environ.get("PROOFGATE_RESULTS", ROOT / ".state" / "tests"))
    if given.command == "list":
        for step in catalogue.STEPS:
            print(f"{step.name:20} {step.kind:6} needs {', '.join(step.needs) or 'nothing'}")
        return 0
    try:
        if given.command == "hunt":
            return hunt.hunt(given.rounds, given.suites or hunt.SUITES, given.share, given.seed, folder)
        with busy(core=given.stressed, disk=False):
            return go(chosen(given), folder)
    except Interrupted:
        print("stopped", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line's parser."""
    known = sorted(catalogue.BY_NAME)
    top = argparse.ArgumentParser(prog="suites", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every build, check and suite")
    run = commands.add_parser("run", help="some suites, and what they need")
    run.add_argument("names", nargs="+", choices=known, metavar="NAME")
    everything = commands.add_parser("all", help="everything")
    check = commands.add_parser("check", help="format, lint, types, unit tests, generated files")
    quick = commands.add_parser("quick", help="what shows most of a change in five minutes")
    quick.add_argument(
        "--base", metavar="REVISION", help="compare with this (default: what is not committed, or HEAD~1)"
    )
    for one in (run, everything, check, quick):
        one.add_argument("--stressed", action="store_true", help="keep a core busy beside it")
    hunting = commands.add_parser("hunt", help="rounds in a random order, beside a busy machine")
    hunting.add_argument("--rounds", type=int, default=20)
    hunting.add_argument(
        "--share", type=float, default=1.0, help="run this share of the files of each suite in a round"
    )
    hunting.add_argument("--seed", default=secrets.token_hex(4), help="the order of an earlier hunt")
    hunting.add_argument("suites", nargs="*", metavar="NAME", help=f"of {', '.join(hunt.SUITES)} (default: all)")
    return top


def chosen(given: argparse.Namespace) -> list[Step]:
    """The steps that a command names."""
    match given.command:
        case "all":
            return list(catalogue.STEPS)
        case "check":
            return catalogue.with_needed(catalogue.CHECK)
        case "quick":
            files = changed.files(given.base)
            print(f"== {len(files)} changed files: {', '.join(files[:8])}{' …' if len(files) > 8 else ''}")
            return changed.steps(files)
        case _:
            return catalogue.with_needed(given.names)


def go(steps: list[Step], folder: Path) -> int:
    """Runs the steps and reports."""
    print(f"== {', '.join(step.name for step in steps)}", flush=True)
    run = Run(steps, folder)
    run.go()
    return report.finish(run, folder)


if __name__ == "__main__":
    sys.exit(main())
