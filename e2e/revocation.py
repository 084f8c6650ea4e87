"""Measures how long a removed key is still accepted."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.load import steady_load
from e2e.tests.traffic import ask

#: Seconds between two requests of a client, which is the precision of the result.
_PAUSE = 0.05


def seconds_to_the_last_accepted_request(
    namespace: Namespace, gateway: str, folder: Path, key: str, revoke: Callable[[], object]
) -> float:
    """Seconds from the start of `revoke`, which removes the key from its Secret, to the last accepted request.

    Two clients use the key during this time: one on an open connection, the other on a new connection for each request.
    """
    with ExitStack() as stack:
        loads = []
        for name, fresh in (("kept", False), ("fresh", True)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            started = steady_load(
                namespace, gateway, folder / name, [key], clients=1, fresh=fresh, streams=False, pause=_PAUSE
            )
            loads.append(stack.enter_context(started))
        written = time.time()
        revoke()
        wait_until(lambda: ask(namespace, gateway, key) == 401, PATIENCE, "the key is refused")
        for load in loads:
            load.goes_on(20)
    accepted = [max(one.began for one in load.report.whole) for load in loads]
    # Each load ended with refusals, so the measured time is not the end of the load.
    assert all(load.report.attempts[-1].error for load in loads), [load.report.attempts[-1] for load in loads]
    return max(0.0, max(accepted) - written)
