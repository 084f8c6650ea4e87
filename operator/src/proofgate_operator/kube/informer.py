"""The store's eyes: one list and then one watch without end, for each kind and namespace.

A watch that ends begins again where it was. One that cannot (410), or that was refused, begins with a list,
after a pause that grows; so nothing is missed, only late.
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

#: Called with kind, namespace, name and the gateway whose label the object bears (empty: none).
OnUpdate = Callable[[str, str, str, str], None]

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 30.0
#: From so many failures in a row on, after some ten seconds, it is told that the API server does not answer.
_REPORTED_FAILURES = 6

_log = logging.getLogger(__name__)


@dataclass
class Informer:
    """Follows one kind in one namespace, or in all where `namespace` is None."""

    client: Client
    kind: str
    namespace: str | None
    selector: str
    on_update: OnUpdate
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        #: When the API server last said anything, be it that it refuses; monotonic seconds.
        self.heard = self.clock()
        self._version: str | None = None
        self._listed = False
        self._failures = 0
        #: The last watch was refused: a list is a look, and yet nothing is heard between two of them.
        self._unwatched = False

    @property
    def name(self) -> str:
        """What is followed, for people."""
        return f"{self.kind} in {self.namespace or 'all namespaces'}"

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            began = self.clock()
            try:
                await self._follow()
                # A server that ends watches at once must not be asked without a pause.
                pause = 0.0 if self.clock() - began > 1 else _FIRST_PAUSE_SECONDS
            except Exception as error:
                # Whatever it is, a watch that ended would be worse.
                pause = self._handle_error(error)
            self.heard = self.clock()
            await asyncio.sleep(pause)

    def _handle_error(self, error: Exception) -> float:
        """Return the seconds to wait after an error, and forget the version if it is of no use any more."""
        quiet_end = isinstance(error, TimeoutError | ClientError) and self._failures == 0
        self._failures += 1
        resumable = (
            error.transient if isinstance(error, ApiError) else isinstance(error, ClientError | OSError)
        )
        if not resumable:
            self._version = None
        read = error.read if isinstance(error, ReadFailed) else ReadRequest("list", self.kind, self.namespace)
        outcome = outcome_of(read, error)
        self._unwatched = outcome is ReadOutcome.MAY_NOT_LOOK and read.verb == "watch"
        # Where only the watch is refused, each list is a look.
        if outcome is ReadOutcome.MAY_NOT_LOOK and read.verb == "list":
            self._block_namespace(
                error if isinstance(error, ReadFailed) else ReadFailed(read, outcome, error)
            )
        elif not quiet_end:
            if self._failures >= _REPORTED_FAILURES and self._listed:
                failure = error if isinstance(error, ReadFailed) else ReadFailed(read, outcome, error)
                if self._store.mark_unavailable(self.kind, self.namespace, failure):
                    self._requeue_dependents()
            # Without its message where it might quote what it is about.
            told = (
                str(error) if isinstance(error, ApiError) and self.kind != "Secret" else type(error).__name__
            )
            _log.warning("restarting the watch of %s: %s", self.name, told)
        pause = min(_FIRST_PAUSE_SECONDS * (1 << min(self._failures, 8)), _MAX_PAUSE_SECONDS)
        asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
        return max(pause, asked) * random.uniform(1, 1.5)

    def _block_namespace(self, error: ReadFailed) -> None:
        """Go on with what is known of a namespace that refuses, and ask it again now and then."""
        if self.namespace not in self._store.blocked_namespaces():
            where = f"namespace {self.namespace} is" if self.namespace else "the cluster is"
            _log.warning("%s not served until its objects can be listed: %s", where, error)
        if self._store.block(self.kind, self.namespace, error):
            self._requeue_dependents()
        metrics.BLOCKED_NAMESPACES.set(len(self._store.blocked_namespaces()))

    def _requeue_dependents(self) -> None:
        """Have all gateways reconciled that depend on what is followed here."""
        for namespace, gateway in self._store.gateways().values():
            if self.namespace in (None, namespace):
                self.on_update(KIND, namespace, gateway, gateway)
        # For gateways elsewhere, which tenants of this namespace name.
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
        """List everything; return the version to watch from."""
        held: set[tuple[str, str]] = set()
        version, barred = "", self._store.is_blocked(self.kind, self.namespace)
        pages = self.client.pages(
            self.kind, self.namespace, self.selector, metadata_only=self.kind in METADATA_ONLY_KINDS
        )
        async for page in pages:
            self.heard = self.clock()
            version = page["metadata"]["resourceVersion"]
            # An empty list of metadata has null in place of its items.
            for item in page["items"] or ():
                held.add((item["metadata"]["namespace"], item["metadata"]["name"]))
                # A list gives its items neither.
                self._handle_event(
                    {**item, "apiVersion": RESOURCES[self.kind].api_version, "kind": self.kind}
                )
        for key, owner in self._store.replace(self.kind, self.namespace, held, version):
            self.on_update(*key, owner)
        self._listed = True
        # A watch that is refused is told until one is not.
        recovered = not self._unwatched and self._store.mark_available(self.kind, self.namespace)
        if recovered or barred:
            self._requeue_dependents()
        metrics.BLOCKED_NAMESPACES.set(len(self._store.blocked_namespaces()))
        return version
