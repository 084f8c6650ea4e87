"""The fake cluster behind HTTP on loopback, for the real client: pages, watches, bookmarks, faults."""

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator

from aiohttp import web
from kubernetes.aio import client as kubernetes_client

from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.reads import ReadRequest
from tests.fake_cluster import KIND_OF, FakeCluster, Manifest, selects

_PAGE = 5


class Emulator:
    """Answers requests from a `FakeCluster`; the test injects faults."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        #: Versions below this are too old to watch from.
        self.compacted = 0
        #: The kinds of the watches started so far.
        self.watches: list[str] = []
        self._open: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[Client]:
        """Serve for the duration of the block; yields a client of the server."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        configuration = kubernetes_client.Configuration(host=f"http://127.0.0.1:{port}")
        client = Client(kubernetes_client.ApiClient(configuration))
        try:
            yield client
        finally:
            await client.close()
            self.cut()
            await runner.cleanup()

    def cut(self) -> None:
        """Close every watch without a message."""
        for task in self._open:
            task.cancel()

    def compact(self) -> None:
        """Drop the history: a watch from an older version gets 410."""
        self.cluster.announce()
        self.compacted = self.cluster.history[-1][1] if self.cluster.history else 0

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        if query.get("watch"):
            return await self._watch(request, query)
        text = await request.text()
        try:
            answer = copy.deepcopy(
                self.cluster.answer(
                    request.method,
                    request.path,
                    query=query,
                    body=json.loads(text) if text else None,
                    content_type=request.content_type,
                )
            )
        except ApiError as error:
            return _refusal(error)
        if "PartialObjectMetadata" in request.headers["Accept"]:
            # An empty list is null, as in the API server's answer.
            answer["items"] = [{"metadata": item["metadata"]} for item in answer["items"]] or None
        if "limit" in query and answer["items"]:
            first = int(query.get("continue", "0"))
            following = first + min(int(query["limit"]), _PAGE)
            if following < len(answer["items"]):
                answer["metadata"]["continue"] = str(following)
            answer["items"] = answer["items"][first:following]
        return web.json_response(answer)

    async def _watch(self, request: web.Request, query: dict[str, str]) -> web.StreamResponse:
        self.cluster.announce()
        parts = request.path.strip("/").split("/")
        namespace = None
        if len(parts) > 4 and parts[-3] == "namespaces":
            namespace = parts[-2]
            parts = [*parts[:-3], parts[-1]]
        kind = KIND_OF[("/".join(parts[1:-1]), parts[-1])]
        self.watches.append(kind)
        if blinked := self.cluster.blink(ReadRequest("watch", kind, namespace)):
            return _refusal(blinked)
        response = web.StreamResponse()
        await response.prepare(request)
        if int(query["resourceVersion"]) < self.compacted:
            gone = {"code": 410, "reason": "Expired", "message": "too old resource version"}
            await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return response
        metadata_only = "PartialObjectMetadata" in request.headers["Accept"]
        feeding = asyncio.create_task(self._feed(response, kind, namespace, query, metadata_only))
        self._open.add(feeding)
        try:
            with contextlib.suppress(ConnectionError):
                await feeding
        except asyncio.CancelledError:
            if request.transport:
                request.transport.abort()
            raise
        finally:
            feeding.cancel()
            self._open.discard(feeding)
        return response

    async def _feed(
        self,
        response: web.StreamResponse,
        kind: str,
        namespace: str | None,
        query: dict[str, str],
        metadata_only: bool,
    ) -> None:
        version = int(query["resourceVersion"])
        selector = query.get("labelSelector", "")
        position = 0
        while True:
            self.cluster.announce()
            news = self.cluster.history[position:]
            position += len(news)
            for type_, at, found in news:
                here = namespace in (None, found["metadata"]["namespace"])
                if found["kind"] == kind and here and at > version:
                    version = at
                    shown = {"metadata": found["metadata"]} if metadata_only else found
                    told = type_ if selects(selector, found) else "DELETED"
                    await _send(response, told, shown)
            await _send(response, "BOOKMARK", {"metadata": {"resourceVersion": str(version)}})
            await asyncio.sleep(0.01)


def _refusal(error: ApiError) -> web.Response:
    headers = {"Retry-After": f"{error.retry_after:g}"} if error.retry_after is not None else {}
    if error.reason == "Unknown":
        # A proxy in front of the API server answers an unknown path with plain text.
        return web.Response(status=error.status, text="404 page not found", headers=headers)
    said = {"kind": "Status", "reason": error.reason, "message": error.message}
    said |= {"details": {"name": error.subject}} if error.subject else {}
    return web.json_response(said, status=error.status, headers=headers)


async def _send(response: web.StreamResponse, type_: str, found: Manifest) -> None:
    await response.write(json.dumps({"type": type_, "object": found}).encode() + b"\n")
