"""The worker as `proofgate` starts it, with an additional Python thread that computes without a pause.

It represents any Python load in a worker: a faulty plugin, a slow metrics scrape.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from proofgate.cli import main


def _spin() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    deadline = time.monotonic() + 600
    number = 1
    while time.monotonic() < deadline:
        for _ in range(10_000):
            number = number * 6364136223846793005 % 18446744073709551557


if __name__ == "__main__":
    threading.Thread(target=_spin, daemon=True).start()
    sys.exit(main())
