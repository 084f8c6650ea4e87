"""Exit codes of the commands, and how a command reports why it failed."""

from __future__ import annotations

import sys

from proofgate.another_key import explained

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
#: What is there was done, and something of it cannot be read.
EXIT_INCOMPLETE = 10
EXIT_INVALID_EVIDENCE = 40


def fail(message: str, code: int) -> int:
    """Prints on standard error why a command failed, and returns its exit code."""
    print(f"proofgate: {explained(message)}", file=sys.stderr)
    return code
