"""Service accounts without permissions: neither workers nor HAProxy use the API server.

Clouds identify the workers by their account and its annotations.
"""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.naming import Manifest, child_manifest, names, worker_account


def service_accounts(gateway: Gateway) -> list[Manifest]:
    """Return one account per component, so that permissions of `default` do not apply; none for workers with
    a user's account."""
    own = names(gateway)
    found = [_account(gateway, own.haproxy, haproxy.COMPONENT)]
    if worker_account(gateway) == own.worker:
        account = _account(gateway, own.worker, statefulset.COMPONENT)
        wanted = gateway.spec.worker.service_account
        if wanted is not None and wanted.annotations:
            account["metadata"]["annotations"] = dict(wanted.annotations)
        found.insert(0, account)
    return found


def _account(gateway: Gateway, name: str, component: str) -> Manifest:
    return {
        **child_manifest(gateway, "v1", "ServiceAccount", name, component),
        "automountServiceAccountToken": False,
    }
