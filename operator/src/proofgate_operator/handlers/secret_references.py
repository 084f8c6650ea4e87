"""Tracks which gateways name which Secrets, as of each gateway's last reconcile: a changed Secret requeues
them."""


class SecretReferences:
    """An index of Secrets by gateway, and of gateways by Secret."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], frozenset[str]] = {}
        self._readers: dict[tuple[str, str], set[str]] = {}

    def record(self, namespace: str, gateway: str, secrets: frozenset[str]) -> None:
        """Record the Secrets that a gateway names now."""
        before = self._named.get((namespace, gateway), frozenset())
        if before == secrets:
            return
        self._named[(namespace, gateway)] = secrets
        for name in secrets - before:
            self._readers.setdefault((namespace, name), set()).add(gateway)
        for name in before - secrets:
            readers = self._readers[(namespace, name)]
            readers.discard(gateway)
            if not readers:
                del self._readers[(namespace, name)]

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        self.record(namespace, gateway, frozenset())
        self._named.pop((namespace, gateway), None)

    def secrets_of(self, namespace: str, gateway: str) -> frozenset[str]:
        """Return the Secrets that a gateway named in its last reconcile."""
        return self._named.get((namespace, gateway), frozenset())

    def gateways_of(self, namespace: str, secret: str) -> list[str]:
        """Return the gateways that name a Secret."""
        return sorted(self._readers.get((namespace, secret), ()))
