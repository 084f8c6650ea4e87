"""kopf runs apart: in a thread, with an event loop of its own.

When it ends, it takes every task that was made in its loop since it began for one of its own: it cancels
them, waits for them, and raises what they raised. Ours are none of its: loops of gateways outlast it.
"""

import asyncio
import logging
import threading
from collections.abc import Collection
from typing import Any, cast

import kopf

from proofgate_operator.handlers.operator import Operator

# Of a thread it says that it leaves signals alone, which is what is wanted.
logging.getLogger("kopf._core.reactor.running").addFilter(
    lambda record: "signals are ignored" not in record.getMessage()
)


async def run_kopf_in_thread(operator: Operator, namespaces: Collection[str], over: threading.Event) -> None:
    """Have kopf tell of the gateways in these namespaces, none: in all, until `over` is set.

    Raises what ends it before that. Returns when its thread has ended, whoever cancels.
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
                # Without peers nobody reads it; left out, kopf looks up the user, whom a container may lack.
                identity=cast(Any, "proofgate-operator"),
                clusterwide=not namespaces,
                namespaces=namespaces,
                memo=memo,
                stop_flag=over,
            )
        finally:
            # A thread of kopf waits for it.
            over.set()

    asyncio.run(run())
