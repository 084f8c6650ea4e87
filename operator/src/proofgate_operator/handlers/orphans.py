"""Tenants that name a gateway which is not there: nobody reconciles it, so they are told here.

Once it is there, its own reconciles tell them. Of a gateway in a namespace that is not served nothing is
known, and nothing is told.
"""

import asyncio
import logging

from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.tenant_objects import read_tenant, write_status
from proofgate_operator.kube.attached_tenants import NamespacedName
from proofgate_operator.kube.client import Client
from proofgate_operator.plan.problems import Problem

_PAUSE_SECONDS = 1.0

_log = logging.getLogger(__name__)


class OrphanedTenantReconciler:
    """Tells tenants that their gateway is not there."""

    def __init__(self, client: Client, requeues: Requeues) -> None:
        self._client = client
        self._requeues = requeues

    async def run(self) -> None:
        """Tell those that there are, for ever."""
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            await self.reconcile()

    async def reconcile(self) -> None:
        """Tell those of which anything changed since the last time."""
        attached = self._client.store.attached
        for gateway in sorted(filter(self._client.store.lacks_gateway, attached.changed_gateways())):
            waiting = attached.take_changed(gateway)
            try:
                for tenant in sorted(waiting):
                    await self._report_orphan(gateway, tenant)
                    waiting.discard(tenant)
            except Exception as error:
                # Whatever it is, the next time may find the world better.
                _log.warning("cannot report a missing gateway to its tenants: %s", type(error).__name__)
            finally:
                attached.restore_changed(gateway, waiting)
                # If it was made meanwhile, it has the last word.
                self._requeues.requeue(*gateway)

    async def _report_orphan(self, gateway: NamespacedName, name: NamespacedName) -> None:
        store = self._client.store
        live = store.get(TENANT_KIND, *name)
        tenant = read_tenant(live)
        if (
            live is None
            or tenant is None
            or tenant.gateway_key != gateway
            or not store.lacks_gateway(gateway)
        ):
            return
        # Nothing is made of its keys.
        store.attached.set_secrets(name, frozenset())
        missing = Problem("GatewayNotFound", f"there is no GovernanceGateway {'/'.join(gateway)}")
        await write_status(self._client, tenant, live.get("status") or {}, missing)
