"""Runs `proofgate ledger retention` with the clock set one year ahead, and exits right after one step.

`python -m e2e.worker.killed_retention STEP ARGUMENTS…` exits with code 9 if it reaches the step.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from proofgate.cli import main
from proofgate.keeping import arguments, retention_job
from proofgate.keeping.ledger import RetentionLedger

#: The steps: for each, the object that holds its function, and the function.
STEPS: dict[str, tuple[object, Any]] = {
    "open-state": (retention_job, retention_job._open_state),
    "apply-holds": (retention_job, retention_job._apply_hold_changes),
    "prune": (RetentionLedger, RetentionLedger.prune),
    "erase": (RetentionLedger, RetentionLedger.erase),
}


def in_a_year() -> int:
    """Returns the time one year from now, in microseconds since 1970."""
    return time.time_ns() // 1000 + 366 * 86_400_000_000


def kill_after(step: str) -> None:
    """Makes this process exit right after the step, without any cleanup."""
    owner, function = STEPS[step]

    def step_and_exit(*given: Any, **named: Any) -> None:
        function(*given, **named)
        os._exit(9)

    setattr(owner, function.__name__, step_and_exit)


if __name__ == "__main__":
    later = in_a_year()
    arguments.now = lambda: later
    kill_after(sys.argv[1])
    sys.exit(main(["retention", *sys.argv[2:]]))
