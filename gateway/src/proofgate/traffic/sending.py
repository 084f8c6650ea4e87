"""Sends planned requests one after the other, and counts the results."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofgate.address import split_address
from proofgate.traffic.plan import NO_TENANT, PlannedRequest

_TIMEOUT_SECONDS = 60.0
_MAX_RESPONSE_BYTES = 16 << 20
#: An API key that belongs to no tenant.
_INVALID_KEY = "not-a-key-of-any-tenant"


class GatewayUnreachableError(Exception):
    """The gateway does not answer."""


@dataclass
class SendCounts:
    """Counts of the requests' results."""

    by_kind: Counter[str] = field(default_factory=Counter)
    #: Number of responses by status and refusal code.
    by_outcome: Counter[str] = field(default_factory=Counter)


class Sender:
    """A client of the gateway at an address, with a key for each tenant."""

    def __init__(self, address: str, keys: Mapping[str, str]) -> None:
        self._host, self._port = split_address(address)
        self._keys = keys
        self.counts = SendCounts()

    def send(self, request: PlannedRequest) -> None:
        """Sends a request and reads its whole response. Raises GatewayUnreachableError."""
        key = _INVALID_KEY if request.tenant == NO_TENANT else self._keys[request.tenant]
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", **request.headers}
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request("POST", request.path, json.dumps(request.body), headers)
            answer = connection.getresponse()
            content = answer.read(_MAX_RESPONSE_BYTES)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise GatewayUnreachableError(
                f"the gateway at {self._host}:{self._port} does not answer: {reason}"
            ) from None
        finally:
            connection.close()
        self.counts.by_kind[request.kind] += 1
        self.counts.by_outcome[_outcome(answer.status, content)] += 1


def _outcome(status: int, content: bytes) -> str:
    if status < http.client.BAD_REQUEST:
        return "answered"
    try:
        return f"{status} {json.loads(content)['error']['code']}"
    except (ValueError, KeyError, TypeError):
        return str(status)
