"""Which namespaces this release of the operator looks after, so that two of them never fight over a gateway.

Each release has a Lease of its own by which its replicas elect one that acts. That says nothing of another
release that was told to serve the same namespace. So whoever acts holds a Lease in each namespace that has a
gateway, under the name of its release: a replica that follows goes on with it, and another release does
nothing there until it has not been renewed for its whole duration.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from proofgate_operator import metrics
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.lease import RETRYABLE_ERRORS, Election

LEASE = "proofgate-served-by"
_DURATION_SECONDS = 60
_RENEW_SECONDS = 15.0

_log = logging.getLogger(__name__)


class NamespaceClaims:
    """The claims of one release, by its name; without a name it claims nothing and serves everything.

    `clock` is monotonic seconds.
    """

    def __init__(self, client: Client, release: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._release = release
        self._clock = clock
        self._elections: dict[str, Election] = {}
        self._held_at: dict[str, float] = {}
        self._foreign: dict[str, str] = {}

    async def other_holder(self, namespace: str) -> str | None:
        """Return the release that looks after a namespace in place of this one; None if this one does.

        Raises what the API server's refusal raises.
        """
        if not self._release:
            return None
        held_at = self._held_at.get(namespace)
        if held_at is None or self._clock() - held_at >= _DURATION_SECONDS:
            await self._renew(namespace)
        return self._foreign.get(namespace)

    async def run(self) -> None:
        """Renew the claims on all namespaces with gateways, for ever."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            served = {namespace for namespace, _ in self._client.store.gateways().values()}
            for namespace in sorted(served & self._held_at.keys()):
                try:
                    await self._renew(namespace)
                except RETRYABLE_ERRORS as error:
                    _log.warning("cannot renew the claim on namespace %s: %s", namespace, error)

    async def _renew(self, namespace: str) -> None:
        election = self._elections.setdefault(
            namespace,
            Election(
                self._client, namespace, LEASE, self._release, duration=_DURATION_SECONDS, clock=self._clock
            ),
        )
        began = self._clock()
        if await election.try_acquire_or_renew():
            self._held_at[namespace] = began
            self._foreign.pop(namespace, None)
        else:
            self._held_at.pop(namespace, None)
            if self._foreign.get(namespace) != election.last_holder:
                self._foreign[namespace] = election.last_holder
                _log.warning(
                    "namespace %s is served by release %s, so this release ignores it",
                    namespace,
                    election.last_holder,
                )
        metrics.FOREIGN_NAMESPACES.set(len(self._foreign))
