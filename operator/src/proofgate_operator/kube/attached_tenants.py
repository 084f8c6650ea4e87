"""Index of the tenants of each gateway, the Secrets that they name, and the tenants with unprocessed changes.

A change of a tenant, or of a Secret that it names, is recorded for its gateway until a reconcile has
processed it.
"""

from collections.abc import Set

#: Namespace and name.
NamespacedName = tuple[str, str]


class AttachedTenants:
    """Tenants by gateway, and the tenants that have to be reconciled again."""

    def __init__(self) -> None:
        self._gateway: dict[NamespacedName, NamespacedName] = {}
        self._members: dict[NamespacedName, set[NamespacedName]] = {}
        self._reads: dict[NamespacedName, frozenset[NamespacedName]] = {}
        self._readers: dict[NamespacedName, set[NamespacedName]] = {}
        self._changed: dict[NamespacedName, set[NamespacedName]] = {}
        self._epoch: dict[NamespacedName, int] = {}

    def update(self, tenant: NamespacedName, gateway: NamespacedName | None) -> None:
        """Record that a tenant was created or changed. `gateway`: None if the tenant was deleted or names no
        gateway."""
        before = self._gateway.get(tenant)
        if before is not None and before != gateway:
            self._members[before].discard(tenant)
            self._mark_changed(before, tenant)
        if gateway is None:
            self._gateway.pop(tenant, None)
            self.set_secrets(tenant, frozenset())
            return
        self._gateway[tenant] = gateway
        self._members.setdefault(gateway, set()).add(tenant)
        self._mark_changed(gateway, tenant)

    def set_secrets(self, tenant: NamespacedName, secrets: frozenset[NamespacedName]) -> None:
        """Record the Secrets that a tenant names now."""
        before = self._reads.get(tenant, frozenset())
        for secret in before - secrets:
            readers = self._readers[secret]
            readers.discard(tenant)
            if not readers:
                del self._readers[secret]
        for secret in secrets - before:
            self._readers.setdefault(secret, set()).add(tenant)
        if secrets:
            self._reads[tenant] = secrets
        else:
            self._reads.pop(tenant, None)

    def invalidate_secret(self, secret: NamespacedName) -> None:
        """Mark the tenants that name a Secret as changed, because the Secret was changed or deleted."""
        for tenant in self._readers.get(secret, ()):
            if gateway := self._gateway.get(tenant):
                self._mark_changed(gateway, tenant)

    def invalidate_namespace(self, namespace: str | None) -> None:
        """Mark all tenants of a namespace as changed; None: all tenants."""
        for tenant, gateway in self._gateway.items():
            if namespace in (None, tenant[0]):
                self._mark_changed(gateway, tenant)

    def remove_gateway(self, gateway: NamespacedName) -> None:
        """Mark the tenants of a deleted gateway as changed, so that their status reports the deletion."""
        for tenant in self._members.get(gateway, ()):
            self._mark_changed(gateway, tenant)

    def gateways_using_secret(self, secret: NamespacedName) -> set[NamespacedName]:
        """Return the gateways whose tenants name a Secret."""
        tenants = self._readers.get(secret, ())
        return {gateway for tenant in tenants if (gateway := self._gateway.get(tenant))}

    def members(self, gateway: NamespacedName) -> Set[NamespacedName]:
        """Return the tenants that name a gateway."""
        return frozenset(self._members.get(gateway, ()))

    def generation(self, gateway: NamespacedName) -> int:
        """Return a number that grows with every change of a gateway's tenants."""
        return self._epoch.get(gateway, 0)

    def changed_gateways(self) -> set[NamespacedName]:
        """Return the gateways with changed tenants that no reconcile has taken yet."""
        return set(self._changed)

    def take_changed(self, gateway: NamespacedName) -> set[NamespacedName]:
        """Return and clear the tenants that changed since the last call, including deleted ones."""
        return self._changed.pop(gateway, set())

    def restore_changed(self, gateway: NamespacedName, tenants: Set[NamespacedName]) -> None:
        """Mark tenants as changed again, because they could not be processed."""
        if tenants:
            self._changed.setdefault(gateway, set()).update(tenants)

    def _mark_changed(self, gateway: NamespacedName, tenant: NamespacedName) -> None:
        self._changed.setdefault(gateway, set()).add(tenant)
        self._epoch[gateway] = self._epoch.get(gateway, 0) + 1
