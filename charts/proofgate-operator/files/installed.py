"""Checks from inside the cluster that the operator is ready and its CRD is served; `helm test` runs it.

It changes nothing. OPERATOR is the URL of the operator's port, NAMESPACE is a namespace that it serves.
"""

import os
import ssl
from pathlib import Path
from urllib.request import Request, urlopen

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
GATEWAYS = "https://kubernetes.default.svc/apis/proofgate.dev/v1alpha1/namespaces/{}/governancegateways?limit=1"

# A response without success raises an error, which fails the test.
with urlopen(f"{os.environ['OPERATOR']}/readyz", timeout=10) as answer:
    print("the operator says:", answer.read().decode().strip())
bearer = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
authority = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
asked = Request(GATEWAYS.format(os.environ["NAMESPACE"]), headers=bearer)
with urlopen(asked, timeout=10, context=authority) as answer:
    print("gateways can be listed:", answer.status)
