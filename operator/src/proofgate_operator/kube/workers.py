"""The admin port of workers: what they tell of themselves, and two things they are told: to retire, to stay.

Asking is cheap and rare. A worker's answer is kept until its pod's readiness or configuration changes, or it
grows old; only one that is on its way out is asked at every look. One that does not answer in time, or
answers nonsense, counts as unreachable: nothing is concluded from that but that nothing is known.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from proofgate_operator.build.naming import CONFIG_ANNOTATION, Manifest
from proofgate_operator.build.worker_config import ADMIN_PORT
from proofgate_operator.plan.pods import ordinal, pod_conditions
from proofgate_operator.plan.reports import UNREACHABLE, WorkerReport

_TIMEOUT = ClientTimeout(total=2)
#: Requests at a time, to the workers of all gateways together.
_CONNECTIONS = 32
_MAX_ANSWER_BYTES = 256 * 1024
#: Below what a worker's admin port keeps an idle connection for.
_KEEP_ALIVE_SECONDS = 3
#: A worker's answer is good for so long; an unreachable one's silence for less.
_KEPT_SECONDS = 300.0
_SILENCE_KEPT_SECONDS = 10.0
#: The kubelet needs a while to bring a new configuration to a worker, and the worker to refuse it.
_DELIVERY_SECONDS = 20.0
_DELIVERY_POLL_SECONDS = 3.0
#: One period of the CPU's limit in so many is forgiven.
_THROTTLED_SHARE = 20


@dataclass
class _Kept:
    """A worker's last answer, and when and in which state of its pod it was given."""

    report: WorkerReport
    asked: float
    ready: object
    mark: object
    marked: float


def _number(status: Mapping[str, Any], name: str) -> int:
    value = status.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(name)
    return value


def _refusal(error: Any) -> str | None:
    """Say why a worker refused a configuration: places and reasons, which quote no value."""
    if not isinstance(error, dict):
        return None
    problems = error.get("problems") or []
    places = [
        f"{problem.get('field') or problem.get('file', '')}: {problem.get('message', '')}"
        for problem in problems[:2]
        if isinstance(problem, dict)
    ]
    return "; ".join([str(error.get("code", "unknown")), *places])[:512]


def read_report(status: Any) -> WorkerReport:
    """Read the answer of `GET /status`; raises ValueError for what is none."""
    if not isinstance(status, dict):
        raise ValueError("not an object")
    error = status.get("last_reload_error")
    cpus = status.get("effective_cpus")
    checkpoint = status.get("checkpoint")
    periods, throttled = status.get("cpu_periods"), status.get("cpu_periods_throttled")
    return WorkerReport(
        serving=status.get("not_ready", "") is None,
        retiring=status.get("not_ready") in ("retiring", "draining"),
        in_flight=_number(status, "in_flight"),
        connections=_number(status, "connections"),
        config_digest=str(status.get("config_digest", ""))[:64],
        file_digest=str(status.get("config_file_digest", ""))[:64],
        refused=_refusal(error),
        needs_restart=isinstance(error, dict) and error.get("code") == "config_needs_restart",
        cpus=len(cpus) if isinstance(cpus, list) else 0,
        throttled=isinstance(periods, int)
        and isinstance(throttled, int)
        and throttled * _THROTTLED_SHARE > periods,
        checkpoint=checkpoint if isinstance(checkpoint, str) else "",
    )


def _address(pod: Manifest) -> str | None:
    """Return a pod's address as a URL spells it; None while it has none, or once it is on its way out."""
    address = (pod.get("status") or {}).get("podIP")
    if not address or pod["metadata"].get("deletionTimestamp"):
        return None
    return f"[{address}]" if ":" in address else str(address)


class Workers:
    """All workers of all gateways. `clock` is monotonic seconds, `time_now` seconds since 1970."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        time_now: Callable[[], float] = time.time,
        port: int = ADMIN_PORT,
    ) -> None:
        self._port = port
        self._clock = clock
        self._time = time_now
        self._session: ClientSession | None = None
        #: By the pod's namespace, gateway and uid.
        self._kept: dict[tuple[str, str], dict[str, _Kept]] = {}

    def now(self) -> float:
        """Return the time of a look, in seconds since 1970."""
        return self._time()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop what is kept of a gateway that is gone."""
        self._kept.pop((namespace, gateway), None)

    def awaited(self, namespace: str, gateway: str) -> bool:
        """Return whether a worker may not have said yet what it makes of a new configuration."""
        now = self._clock()
        kept = self._kept.get((namespace, gateway), {}).values()
        return any(now - found.marked < _DELIVERY_SECONDS for found in kept)

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest], ask: frozenset[int]
    ) -> dict[int, WorkerReport]:
        """Return what the workers tell, by shard; those in `ask` are asked whatever is kept of them."""
        kept = self._kept.setdefault((namespace, gateway), {})
        here = {pod["metadata"]["uid"]: pod for pod in pods if _address(pod)}
        for uid in kept.keys() - here.keys():
            del kept[uid]
        stale = [pod for uid, pod in here.items() if ordinal(pod) in ask or self._stale(kept.get(uid), pod)]
        reports = await asyncio.gather(*(self._ask(pod) for pod in stale))
        for pod, report in zip(stale, reports, strict=True):
            self._keep(kept, pod, report)
        return {ordinal(pod): kept[uid].report for uid, pod in here.items()}

    def last(self, namespace: str, gateway: str, pods: Iterable[Manifest]) -> dict[int, WorkerReport]:
        """Return what is kept of the workers, by shard, however old."""
        kept = self._kept.get((namespace, gateway), {})
        uids = {pod["metadata"]["uid"]: ordinal(pod) for pod in pods}
        return {number: kept[uid].report for uid, number in uids.items() if uid in kept}

    def _stale(self, kept: _Kept | None, pod: Manifest) -> bool:
        if kept is None or (_readiness(pod), _mark(pod)) != (kept.ready, kept.mark):
            return True
        now = self._clock()
        age = now - kept.asked
        if now - kept.marked < _DELIVERY_SECONDS and age >= _DELIVERY_POLL_SECONDS:
            return True
        return age >= (_KEPT_SECONDS if kept.report.reachable else _SILENCE_KEPT_SECONDS)

    def _keep(self, kept: dict[str, _Kept], pod: Manifest, report: WorkerReport) -> None:
        uid, now, mark = pod["metadata"]["uid"], self._clock(), _mark(pod)
        before = kept.get(uid)
        # A worker that is new has read the newest configuration at its start.
        marked = float("-inf") if before is None else before.marked if before.mark == mark else now
        kept[uid] = _Kept(report, now, _readiness(pod), mark, marked)

    async def _ask(self, pod: Manifest) -> WorkerReport:
        try:
            return read_report(json.loads(await self._call("GET", pod, "/status", None)))
        except (ClientError, OSError, TimeoutError, ValueError):
            return UNREACHABLE

    async def retire(self, pod: Manifest, token: str) -> bool:
        """Tell a worker to retire; return whether it does."""
        return await self._tell("PUT", pod, token)

    async def stay(self, pod: Manifest, token: str) -> bool:
        """Take a retirement back; return whether the worker stays."""
        return await self._tell("DELETE", pod, token)

    async def _tell(self, method: str, pod: Manifest, token: str) -> bool:
        try:
            await self._call(method, pod, "/retirement", token)
        except (ClientError, OSError, TimeoutError, ValueError):
            return False
        return True

    async def _call(self, method: str, pod: Manifest, path: str, token: str | None) -> bytes:
        address = _address(pod)
        if address is None:
            raise ValueError("no address")
        if self._session is None:
            # No cookies, no proxy of the environment, no redirect: the token goes to this pod alone.
            connector = TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS)
            self._session = ClientSession(connector=connector, timeout=_TIMEOUT)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._session.request(
            method, f"http://{address}:{self._port}{path}", headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_ANSWER_BYTES:
                    raise ValueError("too long")
            return bytes(body)


def _readiness(pod: Manifest) -> object:
    ready = pod_conditions(pod).get("Ready", {})
    return ready.get("status"), ready.get("lastTransitionTime")


def _mark(pod: Manifest) -> object:
    return (pod["metadata"].get("annotations") or {}).get(CONFIG_ANNOTATION)
