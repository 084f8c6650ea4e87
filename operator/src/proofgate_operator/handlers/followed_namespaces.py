"""Selects the namespaces that kopf follows: those that hold a gateway according to the store.

kopf opens a connection per namespace, and stops completely when one of them is deleted. So namespaces without
a gateway, and namespaces that cannot be listed, are left out. A namespace that once held a gateway stays
selected: kopf still has to report that its last gateway was deleted.
"""

from collections.abc import Sequence

from proofgate_operator.api import KIND
from proofgate_operator.kube.store import Store


class FollowedNamespaces:
    """The namespaces that kopf follows, a subset of `served`. If `served` is empty, all namespaces are
    served."""

    def __init__(self, store: Store, served: Sequence[str]) -> None:
        self._store = store
        self._served = served
        self._held: set[str] = set()

    def namespaces(self) -> tuple[str, ...]:
        """Return the namespaces to follow now. If all namespaces are served, return one empty name, or
        nothing while they cannot be listed."""
        barred = self._store.blocked_namespaces(KIND)
        if not self._served:
            return () if None in barred else ("",)
        self._held |= self._store.gateway_namespaces()
        return tuple(name for name in self._served if name in self._held and name not in barred)
