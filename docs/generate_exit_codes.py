"""Writes the table of exit codes in docs/reference/command-line.md from `proofgate.exit_codes`.

python docs/generate_exit_codes.py           # writes it where it stands
python docs/generate_exit_codes.py --check   # exits with 1 when it is stale
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from proofgate.exit_codes import ExitCode

PAGE = Path(__file__).resolve().parent / "reference" / "command-line.md"
_TABLE = re.compile(r"(?<=\n\| code \| meaning for every command \|\n\|---\|---\|\n)(?:\|.*\n)+")


def main() -> int:
    """Writes or checks the table; returns the exit code."""
    before = PAGE.read_text()
    rows = "".join(f"| {code.value} | {code.meaning} |\n" for code in ExitCode)
    after, found = _TABLE.subn(lambda _: rows, before)
    if found != 1:
        raise SystemExit(f"{PAGE.name} has {found} tables of exit codes")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(after)
    elif after != before:
        print(f"{PAGE.name} is stale: run python docs/generate_exit_codes.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
