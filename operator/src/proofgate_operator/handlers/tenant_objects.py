"""Reads GatewayTenant objects and writes their status."""

import logging
import time
from collections.abc import Sequence

from pydantic import ValidationError

from proofgate_operator import metrics
from proofgate_operator.api import API_VERSION
from proofgate_operator.api.tenant import TENANT_KIND, GatewayTenant
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.kube.apply import apply
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.api_keys import KeyFault
from proofgate_operator.plan.attachment import tenant_status
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.rfc3339 import time_of

_log = logging.getLogger(__name__)


def read_tenant(manifest: Manifest | None) -> GatewayTenant | None:
    """Return the tenant of a manifest; None if it was deleted, is being deleted, or is invalid."""
    if manifest is None or manifest["metadata"].get("deletionTimestamp"):
        return None
    try:
        return GatewayTenant.from_manifest(manifest)
    except ValidationError:
        # The CRD's schema refuses such objects; one from before that schema is not a tenant.
        return None


async def write_status(
    client: Client,
    tenant: GatewayTenant,
    before: Manifest,
    refused: Problem | None,
    keys: Sequence[KeyDigest] = (),
    faults: Sequence[KeyFault] = (),
    unwritten: Problem | None = None,
) -> None:
    """Write the status of a tenant unless it already has that status. `before` is the current status; the
    other parameters are those of `tenant_status`. Raises `ApiError` if the write may succeed later."""
    status = tenant_status(tenant, refused, keys, faults, unwritten, before, time_of(time.time()))
    if before == status:
        return
    manifest: Manifest = {
        "apiVersion": API_VERSION,
        "kind": TENANT_KIND,
        "metadata": {"name": tenant.name, "namespace": tenant.namespace},
        "status": status,
    }
    try:
        await apply(client, manifest, subresource="status")
    except ApiError as error:
        if error.transient:
            raise
        _log.debug("the status of a tenant was refused: %s", error.reason)
        return
    metrics.WRITES.labels(TENANT_KIND, "status").inc()
