"""Leader election: the active replica is the holder of a `coordination.k8s.io` Lease.

The holder renews the Lease. If it could not do so for `renew_seconds`, it must stop, well before another
replica may take the Lease. Other replicas take the Lease if the holder released it, or if they observed it
unchanged for its whole duration: the clocks of different machines are never compared.
"""

import asyncio
import datetime
import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError

from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.resources import RESOURCES

#: Errors of a request to the API server that may succeed on retry.
RETRYABLE_ERRORS = (ApiError, ClientError, OSError, TimeoutError)

_log = logging.getLogger(__name__)


class LeadershipLost(Exception):
    """The Lease could not be renewed in time, or another process holds it: the former holder must stop."""


@dataclass
class Election:
    """One replica's part in the election. `identity` must be unique among all processes ever started.

    In seconds: `duration` after which others may take the Lease, `renew` after which its holder gives up,
    `retry` between two requests. `clock` returns monotonic seconds.
    """

    client: Client
    namespace: str
    name: str
    identity: str
    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._seen: Manifest | None = None
        self._seen_at = 0.0
        self._renewed_at = -math.inf

    @property
    def _path(self) -> str:
        return RESOURCES["Lease"].path(self.namespace, self.name)

    async def acquire(self) -> None:
        """Return once the Lease is held. If the API server is unavailable, retry until it answers."""
        while True:
            try:
                if await self.try_acquire_or_renew():
                    _log.info("active: %s holds the Lease %s", self.identity, self.name)
                    return
            except RETRYABLE_ERRORS as error:
                _log.warning("cannot acquire the Lease %s: %s", self.name, error)
            await asyncio.sleep(self.retry_period * random.uniform(0.8, 1.2))

    async def renew_until_lost(self) -> None:
        """Renew the Lease continuously; raises `LeadershipLost` when renewals failed for too long."""
        while True:
            await asyncio.sleep(self.retry_period)
            left = self._renewed_at + self.renew_deadline - self.clock()
            if left <= 0:
                raise LeadershipLost(f"the Lease {self.name} was not renewed for {self.renew_deadline:g} s")
            try:
                async with asyncio.timeout(left):
                    held = await self.try_acquire_or_renew()
            except RETRYABLE_ERRORS as error:
                _log.warning("cannot renew the Lease %s: %s", self.name, str(error) or type(error).__name__)
                continue
            if not held:
                raise LeadershipLost(f"another holder has the Lease {self.name}")

    async def release(self) -> None:
        """Release the Lease if it is held, so that the next holder need not wait."""
        try:
            async with asyncio.timeout(self.retry_period):
                if self._seen and self._holder(self._seen) == self.identity:
                    spec = {**self._seen["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._write({**self._seen, "spec": spec})
                    _log.info("released the Lease %s", self.name)
        except RETRYABLE_ERRORS as error:
            _log.warning("cannot release the Lease %s: %s", self.name, str(error) or type(error).__name__)

    @property
    def last_holder(self) -> str:
        """The holder of the Lease when it was last read; empty if it had none."""
        return self._holder(self._seen) if self._seen else ""

    @staticmethod
    def _holder(lease: Manifest) -> str:
        return (lease.get("spec") or {}).get("holderIdentity") or ""

    def _observe(self, lease: Manifest | None) -> None:
        version = lease["metadata"]["resourceVersion"] if lease else None
        if self._seen is None or self._seen["metadata"]["resourceVersion"] != version:
            self._seen_at = self.clock()
        self._seen = lease

    def _expired(self, lease: Manifest) -> bool:
        duration = (lease.get("spec") or {}).get("leaseDurationSeconds") or self.duration
        return self.clock() - self._seen_at >= duration

    async def try_acquire_or_renew(self) -> bool:
        """Acquire or renew the Lease if that is allowed; return whether it is held."""
        began = self.clock()
        if self._seen is None or self._holder(self._seen) != self.identity:
            self._observe(await self.client.get("Lease", self.namespace, self.name))
        live = self._seen
        if live and self._holder(live) not in ("", self.identity) and not self._expired(live):
            return False
        try:
            await self._write(self._claim_lease(live))
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            # It changed meanwhile, perhaps by our own write whose answer was lost: read again who holds it.
            self._observe(await self.client.get("Lease", self.namespace, self.name))
            return self._seen is not None and self._holder(self._seen) == self.identity
        self._renewed_at = began
        return True

    def _claim_lease(self, live: Manifest | None) -> Manifest:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before: dict[str, Any] = (live or {}).get("spec") or {}
        spec = {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.duration,
            "renewTime": now,
        }
        if before.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = before.get("leaseTransitions", -1) + 1
        head = {"name": self.name, "namespace": self.namespace}
        return {**(live or {"metadata": head}), "spec": spec}

    async def _write(self, lease: Manifest) -> None:
        """Create or update the Lease; its version makes the API server refuse a write based on an old
        state."""
        kind = {"apiVersion": RESOURCES["Lease"].api_version, "kind": "Lease"}
        if "resourceVersion" in lease["metadata"]:
            written = await self.client.request("PUT", self._path, body={**lease, **kind})
        else:
            path = RESOURCES["Lease"].path(self.namespace)
            written = await self.client.request("POST", path, body={**lease, **kind})
        self._observe(written)
