"""Exit codes of the commands, and how a command reports why it failed."""

from __future__ import annotations

import sys
from enum import IntEnum

from proofgate.another_key import has_key_mismatch_code, with_explanation
from proofgate.terminal import Colour, show


class ExitCode(IntEnum):
    """The exit codes of all commands. Help and the reference print the meanings."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Creates a code with its meaning."""
        made = int.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    OK = 0, "done"
    FAILED = 1, "failed, not ready, or a salt or key that should be destroyed remains"
    USAGE = 2, "wrong usage: arguments, configuration, a file that cannot be read, a folder without a log"
    NOTHING_REPLAYED = 3, "no verdict could be replayed"
    INCOMPLETE = 10, "incomplete: all present evidence verifies, but some is missing or cannot be read"
    DIVERGED = 30, "diverged: a log contradicts a checkpoint that was signed before"
    INVALID = 40, "invalid: evidence does not verify, or was changed after it was written"
    ANOTHER_KEY = (
        41,
        (
            "another key: none of the signatures is by the given key, so the command cannot determine whether "
            "anything was changed"
        ),
    )
    INTERRUPTED = 130, "interrupted"


EXIT_OK = ExitCode.OK
EXIT_FAILED = ExitCode.FAILED
EXIT_USAGE = ExitCode.USAGE
EXIT_INCOMPLETE = ExitCode.INCOMPLETE
EXIT_INVALID_EVIDENCE = ExitCode.INVALID


def fail(message: str, code: int) -> int:
    """Prints to standard error why a command failed, and returns its exit code.

    The code is ANOTHER_KEY if no signature is by the given key: the evidence is then neither valid nor
    invalid.
    """
    first, newline, rest = with_explanation(message).partition("\n")
    show(f"proofgate: {first}", Colour.BAD, stream=sys.stderr)
    if newline:
        print(rest, file=sys.stderr)
    if has_key_mismatch_code(message) and code in (ExitCode.USAGE, ExitCode.INVALID):
        return ExitCode.ANOTHER_KEY
    return code
