"""Runs kopf in a thread with a separate event loop.

When kopf ends, it treats every task created in its event loop since its start as its own: it cancels the
tasks, waits for them, and raises their exceptions. The loops of the gateways must outlast kopf, so they run
in another event loop.
"""

import asyncio
import logging
import threading
from collections.abc import Collection
from typing import Any, cast

import kopf

from proofgate_operator.handlers.operator import Operator

# In a thread, kopf logs that it ignores signals, which is intended here.
logging.getLogger("kopf._core.reactor.running").addFilter(
    lambda record: "signals are ignored" not in record.getMessage()
)


async def run_kopf_in_thread(operator: Operator, namespaces: Collection[str], over: threading.Event) -> None:
    """Run kopf, which reports the gateways in these namespaces (empty: all namespaces), until `over` is set.

    Raises the exception that ends kopf earlier. Returns only after kopf's thread has ended, even if
    cancelled.
    """
    memo = kopf.Memo(operator=operator, home=asyncio.get_running_loop())
    following = asyncio.ensure_future(asyncio.to_thread(_run, memo, namespaces, over))
    try:
        await asyncio.shield(following)
    finally:
        over.set()
        await asyncio.wait([following])


def _run(memo: kopf.Memo, namespaces: Collection[str], over: threading.Event) -> None:
    async def run() -> None:
        try:
            await kopf.operator(
                standalone=True,
                # Without peering the identity is unused; if it is omitted, kopf looks up the user, whom a
                # container may lack.
                identity=cast(Any, "proofgate-operator"),
                clusterwide=not namespaces,
                namespaces=namespaces,
                memo=memo,
                stop_flag=over,
            )
        finally:
            # A thread of kopf waits for this flag.
            over.set()

    asyncio.run(run())
