"""Changes of Secrets that are not the operator's own: they wake the gateways that name them.

kopf would receive every Secret of the namespaces whole. This watch receives metadata, of which it keeps
nothing; what it misses, the next look at the gateway finds.
"""

import asyncio
import logging

from aiohttp import ClientError

from proofgate_operator.build.naming import MANAGED_BY_LABEL, OPERATOR
from proofgate_operator.handlers.wake import Wakes
from proofgate_operator.kube.client import ApiError, Client

#: Our own Secrets wake their gateway by their label.
_OTHERS = f"{MANAGED_BY_LABEL}!={OPERATOR}"
_PAUSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Readers:
    """Which gateways name which Secrets, as of the last look at each."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], frozenset[str]] = {}

    def note(self, namespace: str, gateway: str, secrets: frozenset[str]) -> None:
        """Note the Secrets that a gateway names now."""
        self._named[(namespace, gateway)] = secrets

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop a gateway that is gone."""
        self._named.pop((namespace, gateway), None)

    def of(self, namespace: str, secret: str) -> list[str]:
        """Return the gateways that name a Secret."""
        return [
            gateway for (home, gateway), named in self._named.items() if home == namespace and secret in named
        ]


async def follow_secrets(client: Client, namespace: str | None, readers: Readers, wakes: Wakes) -> None:
    """Wake gateways for ever; without a namespace, those of all namespaces."""
    while True:
        try:
            async for home, secret in client.changes("Secret", namespace, _OTHERS):
                for gateway in readers.of(home, secret):
                    wakes.wake(home, gateway)
        except (ApiError, ClientError, OSError, TimeoutError, ValueError, KeyError) as error:
            # Without its message: it might quote what it is about.
            _log.warning("the watch of Secrets ended and begins anew: %s", type(error).__name__)
        await asyncio.sleep(_PAUSE_SECONDS)
