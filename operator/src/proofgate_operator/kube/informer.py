"""Keeps the store up to date: one list, then a continuous watch, for each kind and namespace.

A watch that ends is resumed from its last version. A watch that cannot be resumed (410) or was refused
restarts with a list, after a growing delay. So no change is missed; it only arrives late.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import ClientError

from proofgate_operator import metrics
from proofgate_operator.api import KIND
from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome, ReadRequest, outcome_of
from proofgate_operator.kube.resources import RESOURCES
from proofgate_operator.kube.store import METADATA_ONLY_KINDS, Store

#: Called with the kind, namespace and name of an object, and the gateway of its label (empty: no label).
OnUpdate = Callable[[str, str, str, str], None]

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 30.0
#: The number of consecutive failures, some ten seconds, from which the API server is reported as unavailable.
_REPORTED_FAILURES = 6

_log = logging.getLogger(__name__)


@dataclass
class Informer:
    """Follows one kind in one namespace; with `namespace` None, in all namespaces."""

    client: Client
    kind: str
    namespace: str | None
    selector: str
    on_update: OnUpdate
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        #: When the API server last sent anything, also a refusal; monotonic seconds.
        self.heard = self.clock()
        self._version: str | None = None
        self._listed = False
        self._failures = 0
        #: Whether the last watch was refused: lists still succeed, but changes between them arrive late.
        self._unwatched = False

    @property
    def name(self) -> str:
        """The kind and namespace that are followed, for log messages."""
        return f"{self.kind} in {self.namespace or 'all namespaces'}"

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            began = self.clock()
            try:
                await self._follow()
                # Delay the next request to a server that ends watches immediately.
                pause = 0.0 if self.clock() - began > 1 else _FIRST_PAUSE_SECONDS
            except Exception as error:
                # Any exception: the informer must not stop.
                pause = self._handle_error(error)
            self.heard = self.clock()
            await asyncio.sleep(pause)

    def _handle_error(self, error: Exception) -> float:
        """Return the seconds to wait after an error, and forget the version if it can no longer be used."""
        quiet_end = isinstance(error, TimeoutError | ClientError) and self._failures == 0
        self._failures += 1
        resumable = (
            error.transient if isinstance(error, ApiError) else isinstance(error, ClientError | OSError)
        )
        if not resumable:
            self._version = None
        read = error.read if isinstance(error, ReadFailed) else ReadRequest("list", self.kind, self.namespace)
        outcome = outcome_of(read, error)
        self._unwatched = outcome is ReadOutcome.ACCESS_DENIED and read.verb == "watch"
        # If only the watch is refused, the lists still read the namespace.
        if outcome is ReadOutcome.ACCESS_DENIED and read.verb == "list":
            self._block_namespace(
                error if isinstance(error, ReadFailed) else ReadFailed(read, outcome, error)
            )
        elif not quiet_end:
            if self._failures >= _REPORTED_FAILURES and self._listed:
                failure = error if isinstance(error, ReadFailed) else ReadFailed(read, outcome, error)
                if self._store.mark_unavailable(self.kind, self.namespace, failure):
                    self._requeue_dependents()
            # Without the message if it might quote a Secret.
            told = (
                str(error) if isinstance(error, ApiError) and self.kind != "Secret" else type(error).__name__
            )
            _log.warning("restarting the watch of %s: %s", self.name, told)
        pause = min(_FIRST_PAUSE_SECONDS * (1 << min(self._failures, 8)), _MAX_PAUSE_SECONDS)
        asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
        return max(pause, asked) * random.uniform(1, 1.5)

    def _block_namespace(self, error: ReadFailed) -> None:
        """Keep the known state of a namespace that refuses the list, and retry now and then."""
        if self.namespace not in self._store.blocked_namespaces():
            where = f"namespace {self.namespace} is" if self.namespace else "the cluster is"
            _log.warning("%s not served until its objects can be listed: %s", where, error)
        if self._store.block(self.kind, self.namespace, error):
            self._requeue_dependents()
        metrics.BLOCKED_NAMESPACES.set(len(self._store.blocked_namespaces()))

    def _requeue_dependents(self) -> None:
        """Requeue all gateways that depend on the followed objects."""
        for namespace, gateway in self._store.gateways().values():
            if self.namespace in (None, namespace):
                self.on_update(KIND, namespace, gateway, gateway)
        # For gateways in other namespaces that tenants of this namespace name.
        self.on_update(TENANT_KIND, self.namespace or "", "", "")

    @property
    def _store(self) -> Store:
        return self.client.store

    async def _follow(self) -> None:
        metadata_only = self.kind in METADATA_ONLY_KINDS
        metrics.WATCHES_STARTED.labels(self.kind, "resume" if self._version else "list").inc()
        if self._version is None:
            self._version = await self._list()
        events = self.client.watch(
            self.kind, self.namespace, self.selector, self._version, metadata_only=metadata_only
        )
        async for event in events:
            found = event["object"]
            self.heard = self.clock()
            self._failures, self._unwatched = 0, False
            if self._store.mark_available(self.kind, self.namespace):
                self._requeue_dependents()
            if event["type"] == "BOOKMARK":
                pass
            elif event["type"] == "DELETED":
                key = (self.kind, found["metadata"]["namespace"], found["metadata"]["name"])
                owner = self._store.owner(key)
                if self._store.remove(self.kind, found):
                    self.on_update(*key, owner)
            else:
                self._handle_event(found)
            self._version = found["metadata"]["resourceVersion"]

    def _handle_event(self, found: Manifest) -> None:
        metadata = found["metadata"]
        key = (self.kind, metadata["namespace"], metadata["name"])
        before = self._store.owner(key)
        if self._store.upsert(self.kind, found):
            now = self._store.owner(key)
            self.on_update(*key, now)
            if before and before != now:
                self.on_update(*key, before)

    async def _list(self) -> str:
        """List all objects; return the version from which to watch."""
        held: set[tuple[str, str]] = set()
        version, barred = "", self._store.is_blocked(self.kind, self.namespace)
        pages = self.client.pages(
            self.kind, self.namespace, self.selector, metadata_only=self.kind in METADATA_ONLY_KINDS
        )
        async for page in pages:
            self.heard = self.clock()
            version = page["metadata"]["resourceVersion"]
            # An empty list of metadata has null instead of items.
            for item in page["items"] or ():
                held.add((item["metadata"]["namespace"], item["metadata"]["name"]))
                # Items of a list have neither kind nor version.
                self._handle_event(
                    {**item, "apiVersion": RESOURCES[self.kind].api_version, "kind": self.kind}
                )
        for key, owner in self._store.replace(self.kind, self.namespace, held, version):
            self.on_update(*key, owner)
        self._listed = True
        # A refused watch is reported until a watch succeeds.
        recovered = not self._unwatched and self._store.mark_available(self.kind, self.namespace)
        if recovered or barred:
            self._requeue_dependents()
        metrics.BLOCKED_NAMESPACES.set(len(self._store.blocked_namespaces()))
        return version
