"""Claims namespaces for this release of the operator, so that two releases never manage the same gateway.

Each release elects its active replica by a Lease. That Lease does not exclude another release that is
configured to serve the same namespace. So the active replica also holds a Lease, under the name of its
release, in each namespace that has a gateway. The next active replica of the release continues that Lease.
Another release does nothing in the namespace until the Lease has not been renewed for its whole duration.
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
    """The claims of one release, identified by its name. Without a name, nothing is claimed and everything is
    served.

    `clock` returns monotonic seconds.
    """

    def __init__(self, client: Client, release: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._release = release
        self._clock = clock
        self._elections: dict[str, Election] = {}
        self._held_at: dict[str, float] = {}
        self._foreign: dict[str, str] = {}

    async def other_holder(self, namespace: str) -> str | None:
        """Return the release that manages a namespace instead of this one; None if this release manages it.

        Raises `ApiError` if the API server refuses the request.
        """
        if not self._release:
            return None
        held_at = self._held_at.get(namespace)
        if held_at is None or self._clock() - held_at >= _DURATION_SECONDS:
            await self._renew(namespace)
        return self._foreign.get(namespace)

    async def run(self) -> None:
        """Renew the claims on all namespaces with gateways until cancelled."""
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
