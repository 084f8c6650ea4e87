"""HAProxy refuses the same requests as the worker."""

from __future__ import annotations

import sys

from e2e.kubernetes import REPOSITORY, Namespace, lab
from e2e.tests.fleet import TENANTS, key_of

KEY = key_of(TENANTS[0])
#: The timeout in seconds for an answer, or for the end of a connection.
PATIENCE = "60"


def test_every_framing_case_is_answered_as_by_the_worker(namespace: Namespace, gateway: str) -> None:
    probe = str(REPOSITORY / "e2e" / "framing" / "probe.py")
    address = namespace.service_address(gateway)
    arguments = ["--host", address, "--port", "80", "--key", KEY, "--timeout", PATIENCE]
    assert " 0 not" in lab("inside", "--", sys.executable, probe, *arguments)
