"""`proofgate ledger retention` when everything is a year old, in a process that ends right after one step.

`python -m e2e.worker.killed_retention STEP ARGUMENTS…` exits with 9 if the step is reached.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from proofgate.cli import main
from proofgate.keeping import arguments, retention_job
from proofgate.keeping.ledger import RetentionLedger

#: A step: the object that has its function, and the function.
STEPS: dict[str, tuple[object, Any]] = {
    "open-state": (retention_job, retention_job._open_state),
    "apply-holds": (retention_job, retention_job._apply_hold_changes),
    "prune": (RetentionLedger, RetentionLedger.prune),
    "erase": (RetentionLedger, RetentionLedger.erase),
}


def in_a_year() -> int:
    """The time in a year, in microseconds."""
    return time.time_ns() // 1000 + 366 * 86_400_000_000


def kill_after(step: str) -> None:
    """Lets this process end, as if killed, right after the step."""
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
