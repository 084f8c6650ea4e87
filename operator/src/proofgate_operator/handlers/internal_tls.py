"""Creates and renews the certificates of HAProxy and the workers."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.internal_authority import renew_entries
from proofgate_operator.build.internal_tls import haproxy_endpoint, secret, worker_endpoint
from proofgate_operator.kube.apply import apply, create
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.internal_tls import CertificateRenewal


async def make_internal_tls(
    client: Client, gateway: Gateway, renewal: CertificateRenewal, now: float
) -> None:
    """Write the desired state of the certificate Secret; `now` is in seconds since 1970.

    The Secret is written only if it still has the observed version: if another process renewed it, it is
    observed again first.
    """
    sides = worker_endpoint(gateway), haproxy_endpoint(gateway)
    manifest = secret(gateway, renew_entries(renewal.entries, sides, now, renewal.settled))
    if renewal.version is None:
        await create(client, manifest)
        return
    manifest["metadata"]["resourceVersion"] = renewal.version
    try:
        await apply(client, manifest)
    except ApiError as error:
        if error.status != 409:
            raise
