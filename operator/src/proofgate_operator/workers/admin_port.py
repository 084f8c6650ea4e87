"""Client of the workers' admin port (status, retire, cancel retirement), and of the status ports of auditors
and of the agents next to HAProxy.

A worker that does not answer in time, or answers invalid data, counts as unreachable: its state is unknown.
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
#: Concurrent requests to the workers of all gateways.
_CONNECTIONS = 32
_MAX_RESPONSE_BYTES = 256 * 1024
#: Seconds for which an idle connection is kept: less than a worker's admin port keeps it.
_KEEP_ALIVE_SECONDS = 3


def address_of(pod: Manifest) -> str | None:
    """Return a pod's address in URL notation; None if it has none or is being deleted."""
    address = (pod.get("status") or {}).get("podIP")
    if not address or pod["metadata"].get("deletionTimestamp"):
        return None
    return f"[{address}]" if ":" in address else str(address)


class AdminPort:
    """A client of all workers, auditors and agents, with one connection pool."""

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
        """Request a worker's status report."""
        try:
            return parse_worker_report(json.loads(await self._call("GET", pod, "/status", None)))
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return UNREACHABLE

    async def fetch_audit_report(self, pod: Manifest) -> AuditReport:
        """Request an auditor's status report."""
        try:
            answer = await self._call("GET", pod, "/status", None, self._auditor_port)
            return parse_audit_report(json.loads(answer))
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return UNREACHABLE_AUDITOR

    async def fetch_balancer_report(self, pod: Manifest) -> BalancerReport | None:
        """Request the state of each worker from the agent next to a HAProxy; None without a valid answer."""
        try:
            answer = await self._call("GET", pod, "/workers", None, self._agent_port)
            return parse_balancer_report(json.loads(answer))
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return None

    async def fetch_request_probe(self, pod: Manifest) -> RequestProbeReport | None:
        """Request from the agent next to a HAProxy whether requests are answered; None without a valid
        answer."""
        try:
            return parse_request_probe(
                json.loads(await self._call("GET", pod, "/answers", None, self._agent_port))
            )
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return None

    async def retire(self, pod: Manifest, token: str) -> bool:
        """Ask a worker to retire; return whether it confirmed."""
        return await self._set_retirement("PUT", pod, token)

    async def cancel_retirement(self, pod: Manifest, token: str) -> bool:
        """Cancel a worker's retirement; return whether the worker confirmed."""
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
            # No cookies, no environment proxy, no redirects: the token is only sent to this pod.
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
