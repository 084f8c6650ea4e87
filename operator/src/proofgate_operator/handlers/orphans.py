"""Reports to tenants that the gateway they name does not exist. No gateway's reconcile does it.

Once the gateway exists, its own reconciles report to the tenants. If the gateway's namespace is not served,
the gateway is unknown, and nothing is reported.
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
    """Writes the status of tenants whose gateway does not exist."""

    def __init__(self, client: Client, requeues: Requeues) -> None:
        self._client = client
        self._requeues = requeues

    async def run(self) -> None:
        """Report to orphaned tenants until cancelled."""
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            await self.reconcile()

    async def reconcile(self) -> None:
        """Report to the orphaned tenants that changed since the last call."""
        attached = self._client.store.attached
        for gateway in sorted(filter(self._client.store.lacks_gateway, attached.changed_gateways())):
            waiting = attached.take_changed(gateway)
            try:
                for tenant in sorted(waiting):
                    await self._report_orphan(gateway, tenant)
                    waiting.discard(tenant)
            except Exception as error:
                # Any exception: the next call may succeed.
                _log.warning("cannot report a missing gateway to its tenants: %s", type(error).__name__)
            finally:
                attached.restore_changed(gateway, waiting)
                # If the gateway was created meanwhile, its own status write comes last.
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
        # The keys of an orphaned tenant are not used.
        store.attached.set_secrets(name, frozenset())
        missing = Problem("GatewayNotFound", f"there is no GovernanceGateway {'/'.join(gateway)}")
        await write_status(self._client, tenant, live.get("status") or {}, missing)
