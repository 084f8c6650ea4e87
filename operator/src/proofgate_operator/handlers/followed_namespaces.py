"""Which namespaces kopf is to follow: those that hold a gateway, as the store knows them.

It opens a connection for each, and gives up as a whole when one of them is gone. So it gets neither those
without a gateway nor those that cannot be listed. One that held a gateway stays: kopf has yet to tell that
the last of them is gone.
"""

from collections.abc import Sequence

from proofgate_operator.api import KIND
from proofgate_operator.kube.store import Store


class FollowedNamespaces:
    """The namespaces to follow, of those that are `served`; none stands for all of them."""

    def __init__(self, store: Store, served: Sequence[str]) -> None:
        self._store = store
        self._served = served
        self._held: set[str] = set()

    def namespaces(self) -> tuple[str, ...]:
        """Return the namespaces as they are now; where all are served, an empty name, or nothing while they
        cannot be listed."""
        barred = self._store.blocked_namespaces(KIND)
        if not self._served:
            return () if None in barred else ("",)
        self._held |= self._store.gateway_namespaces()
        return tuple(name for name in self._served if name in self._held and name not in barred)
