"""The admin port of a worker: what it tells of itself, and two things it is told: to retire, to stay. And the
ports of an auditor and of the agents beside HAProxy, which are told nothing.

A worker that does not answer in time, or answers nonsense, counts as unreachable: nothing is concluded from
that but that nothing is known.
"""

import json

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from proofgate_operator.build import auditor, haproxy
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.worker_config import ADMIN_PORT
from proofgate_operator.plan.audit_reports import UNREACHABLE_AUDITOR, AuditReport, parse_audit_report
from proofgate_operator.plan.balancers import BalancerReport, parse_balancer_report
from proofgate_operator.plan.reports import UNREACHABLE, WorkerReport, parse_worker_report
from proofgate_operator.plan.request_probes import RequestProbeReport, parse_request_probe

_TIMEOUT = ClientTimeout(total=2)
#: Requests at a time, to the workers of all gateways together.
_CONNECTIONS = 32
_MAX_RESPONSE_BYTES = 256 * 1024
#: Below what a worker's admin port keeps an idle connection for.
_KEEP_ALIVE_SECONDS = 3


def address_of(pod: Manifest) -> str | None:
    """Return a pod's address as a URL spells it; None while it has none, or once it is on its way out."""
    address = (pod.get("status") or {}).get("podIP")
    if not address or pod["metadata"].get("deletionTimestamp"):
        return None
    return f"[{address}]" if ":" in address else str(address)


class AdminPort:
    """The admin ports of all workers, the auditors' and the agents': one pool of connections to them."""

    def __init__(
        self,
        port: int = ADMIN_PORT,
        auditor_port: int = auditor.PORT,
        agent_port: int = haproxy.AGENT_PORT,
    ) -> None:
        self._port = port
        self._auditor_port = auditor_port
        self._agent_port = agent_port
        self._session: ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def fetch_worker_report(self, pod: Manifest) -> WorkerReport:
        """Ask a worker what it tells of itself."""
        try:
            return parse_worker_report(json.loads(await self._call("GET", pod, "/status", None)))
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return UNREACHABLE

    async def fetch_audit_report(self, pod: Manifest) -> AuditReport:
        """Ask an auditor what it tells of itself and of the ledger."""
        try:
            answer = await self._call("GET", pod, "/status", None, self._auditor_port)
            return parse_audit_report(json.loads(answer))
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return UNREACHABLE_AUDITOR

    async def fetch_balancer_report(self, pod: Manifest) -> BalancerReport | None:
        """Ask the agent beside a HAProxy what that says of each worker; None when it does not tell."""
        try:
            answer = await self._call("GET", pod, "/workers", None, self._agent_port)
            return parse_balancer_report(json.loads(answer))
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return None

    async def fetch_request_probe(self, pod: Manifest) -> RequestProbeReport | None:
        """Ask the agent beside a HAProxy whether requests are answered; None when it does not tell."""
        try:
            return parse_request_probe(
                json.loads(await self._call("GET", pod, "/answers", None, self._agent_port))
            )
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return None

    async def retire(self, pod: Manifest, token: str) -> bool:
        """Tell a worker to retire; return whether it does."""
        return await self._set_retirement("PUT", pod, token)

    async def cancel_retirement(self, pod: Manifest, token: str) -> bool:
        """Take a retirement back; return whether the worker stays."""
        return await self._set_retirement("DELETE", pod, token)

    async def _set_retirement(self, method: str, pod: Manifest, token: str) -> bool:
        try:
            await self._call(method, pod, "/retirement", token)
        except (ClientError, OSError, TimeoutError, ValueError):
            return False
        return True

    async def _call(
        self, method: str, pod: Manifest, path: str, token: str | None, port: int | None = None
    ) -> bytes:
        address = address_of(pod)
        if address is None:
            raise ValueError("no address")
        if self._session is None:
            # No cookies, no proxy of the environment, no redirect: the token goes to this pod alone.
            connector = TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS)
            self._session = ClientSession(connector=connector, timeout=_TIMEOUT)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._session.request(
            method, f"http://{address}:{port or self._port}{path}", headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_RESPONSE_BYTES:
                    raise ValueError("too long")
            return bytes(body)
