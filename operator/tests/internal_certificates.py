"""A user's certificates for HAProxy and the workers, in Secrets."""

import time
from typing import Any

from proofgate_operator.build.internal_authority import renew_entries
from proofgate_operator.build.internal_tls import haproxy_endpoint, worker_endpoint
from tests.gateways import gateway, secret

Manifest = dict[str, Any]


def user_certificates() -> dict[str, Manifest]:
    """Return the Secrets `worker-tls` and `haproxy-tls`, issued by one authority."""
    named = gateway(internalTLS={"mode": "Operator"})
    made = renew_entries({}, (worker_endpoint(named), haproxy_endpoint(named)), time.time())
    found = {}
    for side in ("worker", "haproxy"):
        entries = {"tls.crt": made[f"{side}.crt"], "tls.key": made[f"{side}.key"], "ca.crt": made["ca.crt"]}
        found[f"{side}-tls"] = secret(f"{side}-tls", **entries)
    return found
