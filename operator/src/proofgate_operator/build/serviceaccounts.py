"""Service accounts without permissions: neither workers nor HAProxy talk to the API server."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.naming import Manifest, child, names


def service_accounts(gateway: Gateway) -> list[Manifest]:
    """Return one account per component, so that nothing granted to `default` reaches them."""
    own = names(gateway)
    return [
        {**child(gateway, "v1", "ServiceAccount", name, component), "automountServiceAccountToken": False}
        for name, component in ((own.worker, statefulset.COMPONENT), (own.haproxy, haproxy.COMPONENT))
    ]
