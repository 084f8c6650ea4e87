"""Defines which objects are watched and which gateways an event requeues. The loop itself finds out what
changed."""

import asyncio
from collections.abc import Sequence

from proofgate_operator.api import KIND
from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.build.naming import MANAGED_BY_LABEL, OPERATOR
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.informer import Informer

#: Label selector of the operator's own objects: pods of others never reach this process.
_OWN_OBJECTS = f"{MANAGED_BY_LABEL}={OPERATOR}"
#: The watched kinds: the objects of a gateway, the gateways, and Secrets. Users create Secrets too, so the
#: operator receives only their metadata and keeps only their versions.
SELECTORS = {
    KIND: "",
    TENANT_KIND: "",
    "ConfigMap": _OWN_OBJECTS,
    "CronJob": _OWN_OBJECTS,
    "Deployment": _OWN_OBJECTS,
    "NetworkPolicy": _OWN_OBJECTS,
    "PersistentVolumeClaim": _OWN_OBJECTS,
    "Pod": _OWN_OBJECTS,
    "PodDisruptionBudget": _OWN_OBJECTS,
    "Secret": "",
    "Service": _OWN_OBJECTS,
    "ServiceAccount": _OWN_OBJECTS,
    "StatefulSet": _OWN_OBJECTS,
}
#: The watched kinds of a namespace in which only tenants are served.
TENANT_KINDS = (TENANT_KIND, "Secret")


class Watches:
    """The informers of one process. They run from `start` until `stop`.

    Without `namespaces` they follow all namespaces. In `tenant_namespaces` they follow only tenants and
    Secrets.
    """

    def __init__(
        self,
        client: Client,
        namespaces: Sequence[str],
        readers: SecretReferences,
        requeues: Requeues,
        tenant_namespaces: Sequence[str] = (),
    ) -> None:
        self._readers = readers
        self._requeues = requeues
        homes: tuple[str | None, ...] = tuple(namespaces) or (None,)
        client.store.expect(SELECTORS, homes)
        client.store.expect(TENANT_KINDS, tenant_namespaces)
        self._store = client.store
        followed = [(kind, home) for home in homes for kind in SELECTORS]
        followed += [(kind, home) for home in tenant_namespaces for kind in TENANT_KINDS]
        self._informers = [
            Informer(client, kind, home, SELECTORS[kind], self._notify) for kind, home in followed
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all informers."""
        self._tasks = [
            asyncio.create_task(informer.run(), name=informer.name) for informer in self._informers
        ]

    async def synced(self) -> None:
        """Return once all kinds have been listed."""
        while not self._store.synced:
            await asyncio.sleep(0.05)

    def stale_watches(self, seconds: float) -> list[str]:
        """Return the names of the watches that received nothing for `seconds`, and of those whose informer
        has ended."""
        ended = {task.get_name() for task in self._tasks if task.done()}
        return [
            informer.name
            for informer in self._informers
            if informer.name in ended or informer.clock() - informer.heard > seconds
        ]

    async def stop(self) -> None:
        """Stop all informers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _notify(self, kind: str, namespace: str, name: str, gateway: str) -> None:
        if gateway:
            self._requeues.requeue(namespace, gateway)
        if kind == "Secret":
            for reader in self._readers.gateways_of(namespace, name):
                self._requeues.requeue(namespace, reader)
            for home, reader in self._store.attached.gateways_using_secret((namespace, name)):
                self._requeues.requeue(home, reader)
        if kind == TENANT_KIND:
            for home, reader in self._store.attached.changed_gateways():
                self._requeues.requeue(home, reader)
